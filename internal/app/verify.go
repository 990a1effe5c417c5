package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/gate"
	"github.com/proctor-ci/proctor/internal/git"
)

// verifyOptions are the flags of `proctor verify`.
type verifyOptions struct {
	repo, logs, heldDir string
	json                bool
}

// exitDiffers: the proof was repeated and says something else.
const exitDiffers = 2

// Results of a verification.
const (
	reproduced  = "reproduced"
	differs     = "differs"
	notRepeated = "could_not_run"
)

func verifyCommand(env Env, code *int) *cobra.Command {
	var o verifyOptions
	c := &cobra.Command{
		Use:   "verify PULL-REQUEST|RECORD|COMMIT",
		Short: "Repeat a proof in a clean checkout and compare it with what was claimed",
		Long: `Verify takes the number or the address of a pull or merge request, a run record (proctor-run.json or its directory),
or a commit or branch that a run left in this checkout. It checks out exactly the commit that was proved, reads the
configuration from its base commit, looks at the change by the patch policy, runs the proof's gates again in the same
confinement, and compares ids and exits with the claim. Where the base commit is on no branch that the change could be merged
into, no gate is run.

What the held-out gate prints is shown here, to you: it is in no log, record or pull request. In a CI job it is not shown.
No model is called and no key is needed. GITHUB_TOKEN or GITLAB_TOKEN is used where it is set, and only for its own host.

Exit code 0: reproduced. 2: something differs. 5: the proof could not be repeated. 1: it is not clear what to verify.`,
		Example: `  proctor verify 12
  proctor verify https://gitlab.com/group/shop/-/merge_requests/3
  proctor verify ./proctor/proctor-run.json
  proctor verify proctor/goal-1f2e3d4c5b6a`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			v := &verification{opts: o, session: &session{env: env, log: slog.New(slog.DiscardHandler), status: &statusKeeper{}}}
			err := v.run(cmd.Context(), args[0])
			*code = v.out.ExitCode
			if o.json {
				// The object says it all; an error beside it would be a second answer.
				return v.print(env.Stdout)
			}
			if err != nil {
				return err
			}
			v.tell()
			return nil
		},
	}
	f := c.Flags()
	f.StringVar(&o.repo, "repo", "", "owner/name where the pull request is (default: from the remote origin)")
	f.StringVar(&o.logs, "logs", "", "directory for the whole output of every gate, the held-out one too")
	f.StringVar(&o.heldDir, "acceptance-dir", "", "directory with the held-out files, where gates.acceptance.dir is input")
	f.BoolVar(&o.json, "json", false, "print the comparison as one JSON object and nothing else")
	return c
}

// verification is one repeated proof. Of the session it uses what a proof needs, and nothing that spends or
// writes to a forge.
type verification struct {
	*session
	opts   verifyOptions
	of     subject
	view   *account
	held   []gate.Result // what was printed beside the sealed files
	out    comparison
	astray bool   // the base commit is on no branch that rules: its configuration is nobody's
	tree   string // of the commit that was proved, once it was read

	told      bool   // a comment asked: what gates print is shown to nobody, and of a held-out one's exit no more than passed or not
	strictest string // a mode of sandbox.mode that the base commit's cannot go below; "" for none
}

// comparison is what --json prints.
type comparison struct {
	Result   string   `json:"result"` // "reproduced", "differs" or "could_not_run"
	ExitCode int      `json:"exit_code"`
	Subject  string   `json:"subject"`
	Run      string   `json:"run,omitempty"`
	Base     string   `json:"base,omitempty"`
	Head     string   `json:"head,omitempty"`
	Checks   []check  `json:"checks"`
	Notes    []string `json:"notes"`
	Reason   string   `json:"reason,omitempty"` // why it could not run
	Next     string   `json:"next,omitempty"`
}

// check is one thing that was compared.
type check struct {
	Name    string `json:"name"`
	Claimed string `json:"claimed"`
	Now     string `json:"now"`
	Same    bool   `json:"same"`
}

func (v *verification) run(ctx context.Context, target string) error {
	v.out = comparison{Subject: target, Checks: []check{}, Notes: []string{}}
	err := v.repeat(ctx, target)
	_ = v.events.Close() // nil-safe; its file goes with the directory
	v.clear()
	v.out.Notes = append(v.out.Notes, v.rec.Notes...)
	if err == nil {
		v.out.Result, v.out.ExitCode = reproduced, 0
		for _, c := range v.out.Checks {
			if !c.Same {
				v.out.Result, v.out.ExitCode = differs, exitDiffers
			}
		}
		return nil
	}
	e := terminalOf(ctx, err)
	v.out.Result, v.out.Reason, v.out.Next = notRepeated, v.red.String(e.reason), e.next
	switch e.terminal {
	case evidence.UsageError:
		v.out.ExitCode = exitUsage
	case evidence.Cancelled:
		v.out.ExitCode = 130
	default:
		v.out.ExitCode = exitInfrastructure
	}
	return &ended{terminal: e.terminal, reason: v.out.Reason, next: e.next, err: err}
}

// repeat is the stations of a verification.
func (v *verification) repeat(ctx context.Context, target string) error {
	v.req = request{scratch: os.TempDir(), toolPath: v.env.Getenv("PATH"), home: v.env.Getenv("HOME"), secrets: held(v.env, v.env.Getenv("PROCTOR_GITLAB_TOKEN")), heldDir: v.opts.heldDir, builder: v.env.Getenv("PROCTOR_DOCKER_HOST")}
	v.red = evidence.NewRedactor(v.req.secrets...)
	if top, err := checkoutOf(v.env.Dir); err == nil {
		v.req.checkout = top
	}
	if err := v.room(); err != nil {
		return err
	}
	quiet := v.env.Stdout
	if v.opts.json {
		quiet = io.Discard
	}
	v.view = newAccount(quiet, v.env.Terminal && !v.opts.json, v.env.Now)
	v.req.watch = v.view.Event
	events, err := evidence.CreateEvents(v.place("events"), v.env.Now, v.red, v.heard)
	if err != nil {
		return err
	}
	v.events = events
	if v.of, err = v.find(ctx, target); err != nil {
		return err
	}
	v.out.Subject, v.out.Run, v.out.Base, v.out.Head = v.of.what, v.of.claim.Run, v.of.claim.Base.ID, v.of.claim.OnBranch()
	v.view.say("%s: the proof of %s on %s", v.view.paint(bold, v.of.what), short(v.out.Head), short(v.out.Base))
	return v.compareAll(ctx)
}

// compareAll repeats what the subject claims. Nothing is run by a configuration that never was on a branch which people merge into:
// it could name any gates, and no confinement.
func (v *verification) compareAll(ctx context.Context) error {
	for _, step := range []func(context.Context) error{v.openSubject, v.compareIDs, v.comparePolicy, v.confineProof, v.reprove} {
		if v.astray {
			v.note("no gate was run: the base commit's configuration is on no branch that people merge into, so nobody has said that its gates count")
			return nil
		}
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// confineProof confines as the base commit's configuration says, and no less than the mode that rules today.
func (v *verification) confineProof(ctx context.Context) error {
	v.cfg.Sandbox.Mode = stricter(v.cfg.Sandbox.Mode, v.strictest)
	return v.confine(ctx)
}

// clear removes all that a verification made.
func (v *verification) clear() {
	v.closeEgress()
	if v.store != nil {
		v.store.Close()
	}
	if v.dir == "" {
		return
	}
	if err := git.RemoveAll(v.dir); err != nil {
		v.note("the checkout of the proof could not be removed from " + v.dir + ": " + err.Error())
	}
}

func (v *verification) compare(name, claimed, now string) {
	v.out.Checks = append(v.out.Checks, check{Name: name, Claimed: claimed, Now: now, Same: claimed == now})
}

func (v *verification) print(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v.out)
}

// shownBytes of one gate's output go to the terminal.
const shownBytes = 64 << 10

// tell prints what the held-out gate said, then the comparison.
func (v *verification) tell() {
	for _, r := range v.held {
		v.view.say("\n%s", v.view.paint(bold, "What the "+r.Name+" gate printed, for your eyes only:"))
		for line := range strings.Lines(v.red.String(gate.Feedback(r, shownBytes))) {
			v.view.say("  %s", strings.TrimRight(line, "\n"))
		}
	}
	v.view.say("")
	for _, c := range v.out.Checks {
		word, text := v.view.paint(green, "same  "), c.Now
		if !c.Same {
			word, text = v.view.paint(red, "DIFFER"), fmt.Sprintf("claimed %s, now %s", c.Claimed, c.Now)
		}
		v.view.say("  %s  %-24s %s", word, c.Name, text)
	}
	for _, n := range v.out.Notes {
		v.view.say("  %s    %s", v.view.paint(yellow, "note"), n)
	}
	if v.out.Result == reproduced {
		v.view.say("\n%s  every id and every exit is what was claimed", v.view.paint(green, "REPRODUCED"))
		return
	}
	v.view.say("\n%s  do not merge this on the strength of its claim; read what differs above", v.view.paint(red, "DIFFERS"))
}

// inCI says that what is printed ends in a log that others, agents too, may read.
func (v *verification) inCI() bool { return v.env.Getenv("CI") != "" }

// keepLog writes a gate's whole output where the maintainer asked for it.
func (v *verification) keepLog(r gate.Result, n int) error {
	if v.opts.logs == "" {
		return nil
	}
	if err := os.MkdirAll(v.opts.logs, 0o700); err != nil {
		return usage(fmt.Errorf("flag --logs: %w", err))
	}
	name := fmt.Sprintf("%02d-%s.log", n, fileName(r.Name))
	if err := os.WriteFile(filepath.Join(v.opts.logs, name), []byte(v.red.String(string(r.Output))), 0o600); err != nil {
		return usage(fmt.Errorf("flag --logs: %w", err))
	}
	return nil
}

// fileName keeps a gate's name from being a path.
func fileName(s string) string {
	return strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && (r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
			return r
		}
		return '_'
	}, s)
}

var errNoProof = errors.New("it never came to a proof, so there is nothing to repeat")
