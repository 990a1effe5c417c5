package app

import (
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"github.com/proctor-ci/proctor/internal/agent"
	"github.com/proctor-ci/proctor/internal/config"
	"github.com/proctor-ci/proctor/internal/egress"
	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/gate"
	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/guard"
	"github.com/proctor-ci/proctor/internal/judge"
	"github.com/proctor-ci/proctor/internal/money"
	"github.com/proctor-ci/proctor/internal/policy"
	"github.com/proctor-ci/proctor/internal/prompt"
	"github.com/proctor-ci/proctor/internal/publish"
	"github.com/proctor-ci/proctor/internal/sandbox"
	"github.com/proctor-ci/proctor/internal/telemetry"
	"github.com/proctor-ci/proctor/internal/trigger"
)

// session is one run on one machine. Its stations fill it in order: intake, prepare, loop, publish.
type session struct {
	env Env
	req request
	log *slog.Logger

	id     string
	dir    string   // workspaces
	lock   *os.File // in dir, held while the run lives
	red    *evidence.Redactor
	events *evidence.Events
	rec    evidence.Record
	status *statusKeeper

	git     *git.Git
	store   *git.Store
	remote  git.Remote
	cfg     config.Config
	cfgPath string

	trigger    trigger.Trigger
	labelEvent int64 // id of the one that asked, 0 where none did
	issue      *forge.Issue
	change     *forge.PullRequest // that a command was written on
	order      order
	anew       bool   // a command asked to begin at the base commit
	round      *round // on an open pull request of ours; nil: none
	newRound   bool   // it begins here
	astray     string // why an earlier run's round cannot be gone on with
	goal       goal
	comments   []prompt.Comment // of writers, oldest first
	labels     policy.Labels

	box        *sandbox.Box
	toolDirs   []string
	gates      *gate.Runner
	proofBox   *sandbox.Box
	proofGates *gate.Runner
	proofSetup *gate.Runner  // what makes a proof ready, with egress; its gates have none
	egress     *egress.Proxy // nil: nothing is listed
	agentTree  *git.Worktree
	gateTree   *git.Worktree
	agentHome  string
	agentTmp   string
	coder      agent.Agent
	ahead      *agent.Waiting // its next process, where one waits already
	another    bool           // a further tick may come
	meter      purse
	guard      *guard.Guard
	judge      *judge.Judge
	trace      *telemetry.Tracer // nil: nobody wants one

	heldFiles  map[string]git.Entry // held-out files that are not the repository's own, by where they are laid
	gateCommit git.ID               // what the gates' directory shows
	readyFor   string               // the dependencies that it is set up for
	agentReady bool                 // the agent's directory was set up
	firsts     map[string]evidence.FailFirst

	saved  checkpoint
	kept   kept
	lease  *git.Lease
	unhold func() // ends the lease's renewal before the loop
	target publish.Target
	proved git.ID // the commit that passed the proof; with history: squash not the last tick's

	snap      git.Snapshot
	verdict   guard.Verdict
	before    money.USD // what the issue had cost before this process
	unsettled money.USD // part of before that is not known: held when an earlier machine was lost
	unwiped   error     // a proof that could not be removed
	redSince  time.Time // when the proof began that held-out gates failed, until the next tick starts
	day       allowance
	queued    bool     // the request waits for room
	released  bool     // it waited, and was started by an id alone
	approval  git.Note // what the id stands for, where it was found

	handed   *handed      // of a split run: what the agent's job left
	line     []git.Commit // its commits, oldest first
	found    verified     // what the verify job says of them
	booked   bool         // what it spent is written down
	toPeople bool         // what CI asked for ends here, and the issue says so
}

// run is the one path. It always returns a finished record that lies on disk, whatever happened.
func run(ctx context.Context, env Env, req request) evidence.Record {
	s := newSession(env, req)
	s.begin()
	err := s.workSafely(ctx)
	if err != nil {
		s.bookLate(ctx)
	}
	s.finish(ctx, err)
	return s.rec
}

func newSession(env Env, req request) *session {
	return &session{env: env, req: req, log: slog.New(slog.DiscardHandler)}
}

// workSafely turns a panic into a told ending: what was saved stays, and the issue hears of it.
func (s *session) workSafely(ctx context.Context) (err error) {
	defer func() {
		if r := recover(); r != nil {
			fmt.Fprintln(s.env.Stderr, s.red.String(fmt.Sprintf("proctor: panic: %v\n%s", r, debug.Stack())))
			err = fmt.Errorf("a fault of the harness: %v", r)
		}
	}()
	return s.work(ctx)
}

// work is the stations up to the terminal. A nil error means that the record has its terminal.
func (s *session) work(ctx context.Context) error {
	for _, station := range s.stations() {
		if err := station(ctx); err != nil {
			return err
		}
		if s.rec.Terminal != "" && s.rec.Terminal != evidence.Done {
			return nil
		}
	}
	return nil
}

// runTime is the part of a run's id that says when it began, in UTC.
const runTime = "20060102-150405"

// begin sets up what even a run that fails at once leaves behind.
func (s *session) begin() {
	var b [4]byte
	s.env.random(b[:])
	now := s.env.Now().UTC()
	s.id = now.Format(runTime) + "-" + hex.EncodeToString(b[:])
	s.red = evidence.NewRedactor(s.req.secrets...)
	s.rec = evidence.Record{
		Schema: evidence.SchemaVersion, Tool: evidence.Tool{Version: version, Commit: commit},
		Run: s.id, RunURL: s.req.runURL, Started: now, DryRun: s.req.dryRun,
	}
	if s.req.stage.splits() {
		s.rec.Staged = &evidence.Staged{Stage: string(s.req.stage)}
	}
	if s.req.stage == stageAgent {
		s.rec.Staged.Agent = s.id
	}
	s.status = &statusKeeper{}
	s.openTrace()
	events, err := evidence.CreateEvents(s.req.reports, s.env.Now, s.red, s.heard)
	if err != nil {
		// A run without an event log still ends with a record or says why not.
		s.note("no event log: " + err.Error())
		return
	}
	s.events = events
}

// heard is told every event: the account, the status comment.
func (s *session) heard(e evidence.Event) {
	s.status.hear(e)
	s.trace.Apply(e)
	if s.req.watch != nil {
		s.req.watch(e)
	}
}

func (s *session) emit(kind evidence.Kind, tick int, attrs ...slog.Attr) {
	s.events.Emit(kind, tick, attrs...)
}

// note puts one sentence into the record and the account: what was assumed or could not be done.
func (s *session) note(text string) {
	if slices.Contains(s.rec.Notes, text) {
		return
	}
	s.rec.Notes = append(s.rec.Notes, text)
	s.tell(text)
}

// tell puts one sentence into the account alone: the record has a place of its own for it.
func (s *session) tell(text string) {
	s.emit(evidence.Note, 0, slog.String(evidence.KeyNote, text))
}

// open makes the run's directory and the object store, and reads the base commit's configuration.
func (s *session) open(ctx context.Context) error {
	if err := s.room(); err != nil {
		return err
	}
	store, err := s.git.OpenStore(ctx, git.StoreOptions{Checkout: s.req.checkout, Dir: s.place("store"), Base: s.req.base})
	if err != nil {
		return usage(err)
	}
	return s.adopt(ctx, store)
}

// adopt goes on with a store: its base commit rules.
func (s *session) adopt(ctx context.Context, store *git.Store) error {
	s.store = store
	s.rec.Base = evidence.Commit{ID: string(store.Base()), Tree: string(store.BaseTree())}
	return s.configure(ctx)
}

// room makes the run's directory and finds git.
func (s *session) room() error {
	dir, err := os.MkdirTemp(s.scratch(), "proctor-")
	if err != nil {
		return fmt.Errorf("make the run's directory: %w. Next: free space, or set TMPDIR (in a CI job RUNNER_TEMP) to a directory that exists and can be written", err)
	}
	s.dir = dir
	if s.lock, err = lockDir(dir); err != nil {
		return fmt.Errorf("mark the run's directory as in use: %w", err)
	}
	if n, err := clearStale(filepath.Dir(dir)); err != nil {
		s.note("not all that a killed run left in " + filepath.Dir(dir) + " could be removed: " + err.Error())
	} else if n > 0 {
		s.note(fmt.Sprintf("removed what killed runs left in %s: %d directories", filepath.Dir(dir), n))
	}
	// Two untrusted users have directories below it; what is not theirs is closed to both.
	if err := os.Chmod(dir, 0o711); err != nil {
		return fmt.Errorf("open the way through the run's directory: %w", err)
	}
	g, err := git.New(git.Options{Now: s.env.Now, Path: s.req.toolPath, Network: networkVariables(s.env.Getenv)})
	if err != nil {
		return usage(err)
	}
	s.git = g
	return nil
}

// scratch is where the run's directory is made. As root, agents and gates run as users of their own, and a
// job's directory below a closed home would keep them out.
func (s *session) scratch() string {
	if os.Geteuid() != 0 {
		return s.req.scratch
	}
	for d := s.req.scratch; ; d = filepath.Dir(d) {
		if info, err := os.Stat(d); err != nil || info.Mode().Perm()&0o001 == 0 {
			return os.TempDir()
		}
		if d == filepath.Dir(d) {
			return s.req.scratch
		}
	}
}

// networkVariables are the only ones that git's HTTP client may see.
func networkVariables(getenv func(string) string) []string {
	var out []string
	for _, n := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO"} {
		if v := getenv(n); v != "" {
			out = append(out, n+"="+v)
		}
	}
	return out
}

// until is ctx with a time of its own, also after ctx was cancelled: for the last words of a run.
func until(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), d)
}
