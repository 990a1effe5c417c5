package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/failfirst"
	"github.com/proctor-ci/proctor/internal/gate"
	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/guard/tamper"
	"github.com/proctor-ci/proctor/internal/loop"
	"github.com/proctor-ci/proctor/internal/prompt"
)

// failFirst is where a gate runs that tries added tests on the base code, for the record.
const failFirst = "fail-first"

// Verdicts on added tests. Only the first shows that they tell the base code from the change.
const (
	firstAssertion  = "assertion"
	firstThrown     = "error"
	firstCollection = "collection"
	firstPassed     = "passed"
	firstUnknown    = "unknown"
	firstNone       = "none"
)

// tryFirst runs the added tests without the rest of the change, on the base code, and says what came of it. green is
// what the gate of the candidate said; it stands unless added tests are required to fail first and did not.
func (s *session) tryFirst(ctx context.Context, green loop.GateSeen) (loop.GateSeen, error) {
	mode := s.cfg.Prove.TestsFailFirst
	if mode == "off" {
		return green, nil
	}
	tests, err := s.addedTests(ctx)
	if err != nil {
		return green, err
	}
	n := s.now()
	f, known := s.firsts[tests.key]
	if known {
		f.Same, f.Gate = true, nil
	} else if f, err = s.judgeFirst(ctx, tests, n); err != nil {
		return green, err
	}
	f.Mode = mode
	if ctx.Err() == nil && !known {
		if s.firsts == nil {
			s.firsts = map[string]evidence.FailFirst{}
		}
		s.firsts[tests.key] = f
	}
	return s.keepFirst(f, n, green), nil
}

// keepFirst puts the verdict into the record, and into the way of `done` where it has to be.
func (s *session) keepFirst(f evidence.FailFirst, n int, green loop.GateSeen) loop.GateSeen {
	t := s.tick(n)
	t.First = &f
	if f.Verdict == firstNone || f.Verdict == firstAssertion {
		return green
	}
	level := "flag"
	if f.Mode == "require" {
		level = "block"
	}
	t.Guard = append(t.Guard, evidence.Finding{Rule: "tests-fail-first", Level: level, Detail: f.Detail})
	if f.Mode != "require" {
		return green
	}
	next := "Let the added tests fail on the base code by an assertion: check behaviour that is wrong there, through names that exist there."
	return loop.GateSeen{
		Status: loop.GateFailed, From: "fail_first", Fingerprint: f.Verdict, Detail: f.Detail,
		Feedback: "tests-fail-first: " + f.Detail + ". Next: " + next,
	}
}

// addedTests are the tests that the candidate adds, and what has to lie in the base code to run them.
type addedTests struct {
	names   []string             // at most maxAdded
	changes map[string]git.Entry // test files, over the base
	mixed   []string             // files in which tests and code cannot be told apart
	key     string               // names this very set of files
}

const (
	maxAdded    = 50
	maxTestFile = 2 << 20
)

func (s *session) addedTests(ctx context.Context) (addedTests, error) {
	a := addedTests{changes: map[string]git.Entry{}}
	var key []string
	for _, c := range s.snap.Changes {
		if !c.New.Mode.IsFile() && c.New.Mode != git.ModeSymlink {
			continue
		}
		inTests, mixes := failfirst.TestFile(c.Path), failfirst.MixesCode(c.Path)
		if !inTests && !mixes {
			continue
		}
		f, err := s.bothSides(ctx, c)
		if err != nil {
			return a, err
		}
		names := tamper.Added(f)
		entry := c.New
		if mixes {
			if len(names) == 0 {
				continue
			}
			text, ok := failfirst.SpliceRust(string(f.Before), string(f.After))
			if !ok || !f.Was {
				a.mixed, a.names = append(a.mixed, c.Path), append(a.names, names...)
				continue
			}
			if entry.ID, err = s.store.WriteBlob([]byte(text)); err != nil {
				return a, fmt.Errorf("keep the tests of %s: %w", prompt.Inline(c.Path, 120), err)
			}
		}
		a.names = append(a.names, names...)
		a.changes[c.Path] = entry
		key = append(key, c.Path+"\x00"+string(entry.ID))
	}
	slices.Sort(key)
	sum := sha256.Sum256([]byte(strings.Join(append(key, a.mixed...), "\n")))
	a.key = hex.EncodeToString(sum[:])
	if len(a.names) > maxAdded {
		a.names = a.names[:maxAdded]
	}
	return a, nil
}

func (s *session) bothSides(ctx context.Context, c git.Change) (f tamper.File, err error) {
	f = tamper.File{Path: c.Path, Was: c.Old.Mode.IsFile(), Is: c.New.Mode.IsFile()}
	var large *git.TooLargeError
	read := func(e git.Entry) ([]byte, error) {
		b, err := s.store.ReadBlob(ctx, e.ID, maxTestFile)
		if errors.As(err, &large) {
			return nil, nil // data beside tests
		}
		return b, err
	}
	if f.Was {
		if f.Before, err = read(c.Old); err != nil {
			return f, fmt.Errorf("read %s of the base commit: %w", prompt.Inline(c.Path, 120), err)
		}
	}
	if f.Is {
		if f.After, err = read(c.New); err != nil {
			return f, fmt.Errorf("read %s of the candidate: %w", prompt.Inline(c.Path, 120), err)
		}
	}
	return f, nil
}

// judgeFirst runs the visible commands on the base code with the added tests.
func (s *session) judgeFirst(ctx context.Context, a addedTests, tick int) (evidence.FailFirst, error) {
	f := evidence.FailFirst{Verdict: firstUnknown}
	for _, n := range a.names {
		f.Tests = append(f.Tests, prompt.Inline(n, 120))
	}
	switch {
	case len(a.names) == 0:
		f.Verdict, f.Detail = firstNone, "the change adds no test"
		return f, nil
	case len(a.mixed) > 0:
		f.Detail = fmt.Sprintf("tests and code stand in one file and cannot be told apart (%s), so it is not known whether the added tests fail on the base code", files(a.mixed))
		return f, nil
	}
	result, err := s.runFirst(ctx, a, tick)
	if err != nil || result == nil {
		f.Detail = "the added tests could not be run on the base code, so it is not known whether they fail there"
		return f, err
	}
	s.readFirst(&f, a, *result)
	return f, nil
}

// firstRun is a gate's run on the base code with the added tests, and how the record has it.
type firstRun struct {
	gate.Result
	kept evidence.Gate
}

// runFirst makes a throw-away worktree and gives the deciding gate run; nil when there was none.
func (s *session) runFirst(ctx context.Context, a addedTests, tick int) (*firstRun, error) {
	commit, err := s.store.Variant(ctx, s.store.Base(), a.changes)
	if err != nil {
		s.note("the added tests do not fit over the base code: " + prompt.Inline(err.Error(), 200))
		return nil, nil
	}
	dir, err := os.MkdirTemp(s.dir, "first-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the added tests: %w", err)
	}
	defer func() {
		if err := git.RemoveAll(dir); err != nil {
			s.note("a directory of the run could not be removed: " + err.Error())
		}
	}()
	at, err := s.firstPlace(ctx, dir, commit)
	if err != nil {
		return nil, err
	}
	if r, err := s.prepareAt(ctx, at, tick); err != nil || r != nil {
		return nil, err
	}
	var last *firstRun
	for _, spec := range s.specsOf(gate.Iteration) {
		if spec.Shown != "" {
			continue // a probe runs no tests
		}
		r, kept, err := s.runKept(ctx, spec, at, tick)
		if err != nil {
			return nil, err
		}
		if last = (&firstRun{r, kept}); r.Status != gate.Passed {
			break
		}
	}
	return last, nil
}

func (s *session) firstPlace(ctx context.Context, dir string, commit git.ID) (place, error) {
	// The gates' user has to come by.
	if err := os.Chmod(dir, 0o711); err != nil {
		return place{}, fmt.Errorf("make a directory for the added tests: %w", err)
	}
	sealed, err := s.sealedOrNone()
	if err != nil {
		return place{}, usage(err)
	}
	var opts []git.WorktreeOption
	if id, other := s.box.User(); other {
		opts = append(opts, git.OwnedBy(git.Owner{UID: id.UID, GID: id.GID}))
	}
	tree, err := s.store.NewGate(ctx, filepath.Join(dir, "tree"), sealed, opts...)
	if err != nil {
		return place{}, fmt.Errorf("check out the base code for the added tests: %w", err)
	}
	if err := tree.Sync(ctx, commit); err != nil {
		return place{}, fmt.Errorf("put the added tests into the base code: %w", err)
	}
	if err := s.carry(ctx, tree); err != nil {
		return place{}, err
	}
	home, tmp := filepath.Join(dir, "home"), filepath.Join(dir, "tmp")
	for _, d := range []string{home, tmp} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return place{}, fmt.Errorf("make a directory for the added tests: %w", err)
		}
	}
	if err := s.box.Own(tree.Dir(), home, tmp); err != nil {
		return place{}, err
	}
	return place{where: failFirst, commit: commit, Place: gate.Place{Dir: tree.Dir(), Home: home, Tmp: tmp, ReadOnly: s.readable(), Env: s.gateEnv(home, tmp), KeepOutput: true}}, nil
}

// readFirst turns the gate's answer into a verdict. What is not recognised is said to be unknown.
func (s *session) readFirst(f *evidence.FailFirst, a addedTests, r firstRun) {
	f.Gate = &r.kept
	switch r.Status {
	case gate.Passed:
		f.Verdict, f.Detail = firstPassed, "the added tests do not test the change: the "+r.Name+" gate passes with them on the base code, or it does not run them"
		return
	case gate.Failed:
	default:
		f.Detail = "the gate " + strings.ReplaceAll(string(r.Status), "_", " ") + " on the base code with the added tests, so it is not known whether they fail there"
		return
	}
	got := failfirst.Read(string(r.Output))
	f.Runner = got.Runner
	hits := got.Names(a.names)
	switch {
	case got.Kind == failfirst.Assertion && (len(hits) > 0 || len(got.Failed) == 0 && s.baseGreen()):
		f.Verdict = firstAssertion
		f.Detail = fmt.Sprintf("%d of %d added tests fail on the base code by an assertion (%s)", max(len(hits), 1), len(a.names), got.Runner)
	case got.Kind == failfirst.Assertion:
		f.Detail = "tests fail on the base code, but the added ones are not among those that " + got.Runner + " names"
	case got.Kind == failfirst.Thrown:
		f.Verdict, f.Detail = firstThrown, "on the base code the added tests end in an error before they assert anything ("+got.Runner+"): they show that something is missing there, not that it is wrong"
	case got.Kind == failfirst.Collection:
		f.Verdict, f.Detail = firstCollection, "the added tests do not compile, load or collect on the base code ("+got.Runner+"): they show that something is missing there, not that it is wrong"
	default:
		f.Detail = "what the gate prints is not that of a test runner that is known, so it is not known whether the added tests fail on the base code by an assertion"
	}
}

// baseGreen tells whether the visible gates pass on the base commit, so that whatever fails there with the added
// tests fails because of them.
func (s *session) baseGreen() bool {
	green := false
	for _, g := range s.rec.Baseline {
		if g.Class == string(gate.Iteration) {
			if green = g.Status == string(gate.Passed); !green {
				return false
			}
		}
	}
	return green
}
