package app

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/loop"
)

const (
	handoverFile   = "handover.json"
	handoverSchema = 1
	maxHandover    = 64 << 10 // far more than one of ours has
)

// handover is handover.json: what the agent's job passes on, beside the record and the bundle. Nothing in it is believed; it names what has to
// fit, so that a mistake is told by its name. The sums show a transfer that went wrong: who can change the files can change them too.
type handover struct {
	Schema   int             `json:"schema"`
	CI       string          `json:"ci_run"` // page of the workflow run
	Run      string          `json:"run"`
	Issue    int             `json:"issue,omitempty"`
	Snapshot string          `json:"snapshot"` // hash of what was approved
	Base     evidence.Commit `json:"base"`
	Head     evidence.Commit `json:"head,omitzero"` // what is said to be proved; absent where nothing is
	Config   string          `json:"config"`        // digest
	Record   string          `json:"record_sha256"`
	Bundle   string          `json:"bundle_sha256,omitempty"`
}

// handed is a handover that was read and fits this job.
type handed struct {
	handover
	rec evidence.Record
	dir string
}

// ready is the agent job's last station: the record names the commit that is handed over.
func (s *session) ready(ctx context.Context) error {
	if s.rec.Terminal != evidence.Done || s.req.dryRun {
		return nil
	}
	if err := s.nameHead(ctx); err != nil {
		return err
	}
	s.rec.Next = "the verify job repeats the proof"
	return nil
}

// passOn writes what the next jobs need, behind the record. A run that ended otherwise hands over why, and its last good commit for people.
func (s *session) passOn(ctx context.Context) {
	h := handover{
		Schema: handoverSchema, CI: s.req.runURL, Run: s.id, Issue: s.trigger.Issue.Number, Snapshot: s.rec.Trigger.Snapshot,
		Base: s.rec.Base, Config: s.rec.Config.Digest,
	}
	var err error
	if s.rec.Head != nil {
		file := filepath.Join(s.req.reports, bundleFile)
		if err := s.store.Bundle(ctx, file, first(s.rec.Branch, s.branchName()), git.ID(s.rec.Head.ID)); err != nil {
			s.say("the commit could not be handed over: " + err.Error())
			return
		}
		if h.Bundle, err = sumOf(file); err == nil && s.rec.Terminal == evidence.Done {
			h.Head = *s.rec.Head
		}
	}
	if err == nil {
		h.Record, err = sumOf(filepath.Join(s.req.reports, evidence.RecordFile))
	}
	if err == nil {
		err = writeJSON(filepath.Join(s.req.reports, handoverFile), h)
	}
	if err != nil {
		s.say("the run could not be handed over to the next job: " + err.Error())
	}
}

// splitWords says a next step where there is no checkpoint: the agent's job may write none.
var splitWords = strings.NewReplacer(
	" or add to it with /proctor budget", "",
	"label the issue again, or /proctor resume, to go on", "label the issue again",
	"label again to resume", "label again",
	"add the label again to go on", "add the label again",
	"add the label again to resume", "add the label again",
	"Add the label again to resume", "Add the label again",
)

// splitNext is the next step of a run whose work nobody goes on with.
func splitNext(r evidence.Record) string {
	t, _ := evidence.FindTerminal(r.Terminal)
	if !t.Resumable {
		return r.Next
	}
	next := splitWords.Replace(r.Next)
	if r.Head == nil {
		return next
	}
	return strings.TrimRight(next, ".") + ". The next run begins anew; what this one came to is " + bundleFile + " in the artifact of the agent's job"
}

func writeJSON(file string, v any) error {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(raw, '\n'), 0o644)
}

// sumOf is the SHA-256 of a plain file.
func sumOf(file string) (string, error) {
	if info, err := os.Lstat(file); err != nil {
		return "", err
	} else if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is no plain file", filepath.Base(file))
	}
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// unfit is a handover that no job goes on with.
func unfit(what, next string) error {
	return refused("what the agent's job handed over does not fit: "+what, next)
}

const sameRun = "run the agent, verify and publish jobs in one workflow run, and give each the artifact of that run's agent job (proctor init --ci github --staged writes such a workflow)"

// errNoHandover: the agent's job was lost before it could hand anything over.
var errNoHandover = errors.New("the agent's job left no handover")

// readHandover reads what lies in the directory and holds it to itself, to this workflow run and to the base commit that this job has from the
// forge. errNoHandover when there is none; what does not fit is a refusal.
func (s *session) readHandover() (*handed, error) {
	h := handed{dir: s.req.handover}
	raw, err := readBounded(filepath.Join(h.dir, handoverFile), maxHandover)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoHandover
	}
	if err != nil {
		return nil, unfit(err.Error(), sameRun)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&h.handover); err != nil {
		return nil, unfit(handoverFile+" is none of ours: "+err.Error(), "use one version of proctor in all jobs")
	}
	if h.Schema != handoverSchema {
		return nil, unfit(fmt.Sprintf("%s has schema %d, want %d", handoverFile, h.Schema, handoverSchema), "use one version of proctor in all jobs")
	}
	file := filepath.Join(h.dir, evidence.RecordFile)
	if sum, err := sumOf(file); err != nil || sum != h.Record {
		return nil, unfit(evidence.RecordFile+" is not the file that "+handoverFile+" names: its bytes were changed", "look at the agent job's machine, then ask again")
	}
	if h.rec, err = evidence.Read(file); err != nil {
		return nil, unfit(err.Error(), "use one version of proctor in all jobs")
	}
	return &h, s.fits(h)
}

// fits compares the handover with what this job knows by itself.
func (s *session) fits(h handed) error {
	switch {
	case h.CI != s.req.runURL:
		return unfit(fmt.Sprintf("it is of the workflow run %q and this one is %q", h.CI, s.req.runURL), sameRun)
	case h.Base != s.rec.Base:
		return unfit(fmt.Sprintf("it was made on base commit %s and this job has checked out %s", short(h.Base.ID), short(s.rec.Base.ID)), "let every job check out the same commit of the default branch, as actions/checkout does without a ref:")
	case h.Config != s.rec.Config.Digest:
		return unfit("it was made under another configuration than the base commit's", "use one version of proctor in all jobs")
	case h.rec.Run != h.Run, h.rec.Base != h.Base, h.rec.Config.Digest != h.Config, h.rec.Trigger.Snapshot != h.Snapshot, h.rec.Trigger.Issue != h.Issue:
		return unfit("the record and "+handoverFile+" name different runs", "look at the agent job's machine, then ask again")
	case h.Head != (evidence.Commit{}) && (h.rec.Head == nil || *h.rec.Head != h.Head || h.rec.Terminal != evidence.Done || len(h.rec.Ticks) == 0):
		return unfit("the record does not call commit "+short(h.Head.ID)+" proved", "look at the agent job's machine, then ask again")
	}
	return nil
}

func readBounded(file string, limit int64) ([]byte, error) {
	info, err := os.Lstat(file)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > limit {
		return nil, fmt.Errorf("%s is no file of at most %d bytes", filepath.Base(file), limit)
	}
	return os.ReadFile(file)
}

// unpack brings the commit that is handed over into the store and shows that it is what was named: by its id, which is of its content.
func (s *session) unpack(ctx context.Context) ([]git.Commit, error) {
	h := s.handed
	file := filepath.Join(h.dir, bundleFile)
	if sum, err := sumOf(file); err != nil || sum != h.Bundle {
		return nil, unfit(bundleFile+" is not the file that "+handoverFile+" names: its bytes were changed", "look at the agent job's machine, then ask again")
	}
	if err := s.store.Unbundle(ctx, file, git.ID(h.Head.ID)); err != nil {
		return nil, unfit(err.Error(), "look at the agent job's machine, then ask again")
	}
	tree, err := s.store.Tree(ctx, git.ID(h.Head.ID))
	if err != nil {
		return nil, err
	}
	if string(tree) != h.Head.Tree {
		return nil, unfit(fmt.Sprintf("commit %s has tree %s, and %s is named", short(h.Head.ID), tree, h.Head.Tree), "look at the agent job's machine, then ask again")
	}
	line, err := s.store.Line(ctx, git.ID(h.Head.ID))
	if err != nil {
		return nil, unfit(err.Error(), "look at the agent job's machine, then ask again")
	}
	if len(line) == 0 {
		return nil, unfit("its commit is the base commit, so that nothing was changed", "look at the agent job's machine, then ask again")
	}
	return line, nil
}

// patrol holds every commit that would be pushed to the patch policy: what a later one takes out was in an earlier one all the same.
func (s *session) patrol(ctx context.Context, line []git.Commit) error {
	parent := s.store.BaseTree()
	for _, c := range line {
		changes, err := s.store.Diff(ctx, s.store.BaseTree(), c.Tree)
		if err != nil {
			return fmt.Errorf("compare commit %s with the base: %w", c.ID, err)
		}
		t := s.tick(1)
		*t = evidence.Tick{N: t.N, Started: t.Started, Commit: &evidence.Commit{ID: string(c.ID), Tree: string(c.Tree)}}
		s.snap = git.Snapshot{Commit: c.ID, Tree: c.Tree, Changes: changes}
		seen, err := s.Guard(ctx, 1, loop.Commit{ID: string(c.Parents[0]), Tree: string(parent)}, loop.Commit{ID: string(c.ID), Tree: string(c.Tree)})
		if err != nil {
			return err
		}
		if seen.Level != loop.GuardPass {
			return &ended{terminal: evidence.SafetyHalt, reason: fmt.Sprintf("commit %s that the agent's job handed over breaks a rule: %s", short(string(c.ID)), seen.Detail)}
		}
		parent = c.Tree
	}
	return nil
}
