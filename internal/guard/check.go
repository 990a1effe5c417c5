package guard

import (
	"context"
	"errors"
	"fmt"

	"github.com/proctor-ci/proctor/internal/guard/secrets"
	"github.com/proctor-ci/proctor/internal/guard/tamper"
)

// maxBaseBlob bounds what is read of the base side; a longer file there is data, not a test.
const maxBaseBlob = 8 << 20

// Guard holds one run's rules and what it has already scanned. It is safe for concurrent use.
type Guard struct {
	rules   Rules
	scanner *scanner
}

// New compiles a guard from the base commit's rules.
func New(rules Rules) (*Guard, error) {
	if err := rules.validate(); err != nil {
		return nil, err
	}
	detector, err := secrets.New(rules.Known)
	if err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	return &Guard{rules: rules, scanner: &scanner{detector: detector, seen: map[string][]secrets.Hit{}}}, nil
}

// Check judges one candidate. Every reason is listed, whichever came first. An error means that an
// object could not be read: there is no verdict then, and none must be assumed.
func (g *Guard) Check(ctx context.Context, in Input) (Verdict, error) {
	if in.Blobs == nil {
		return Verdict{}, errors.New("guard: no object store to read from; set Input.Blobs")
	}
	c := &check{Guard: g, in: in, onBase: map[digest]bool{}, tamper: tamper.New()}
	c.tamper.Tree(in.Paths)
	if err := c.run(ctx); err != nil {
		return Verdict{}, fmt.Errorf("guard: %w", err)
	}
	return c.verdict, nil
}

// check is one call of Check.
type check struct {
	*Guard
	in      Input
	verdict Verdict
	onBase  map[digest]bool // credentials that stood in a changed file before: public already
	tamper  *tamper.Comparison
	exam    []tamper.Sign
}

func (c *check) add(fs ...Finding) { c.verdict.Findings = append(c.verdict.Findings, fs...) }

func (c *check) run(ctx context.Context) error {
	c.verdict.Files = len(c.in.Changes)
	for _, p := range c.in.Problems {
		c.add(fromProblem(p))
	}
	c.add(checkCollisions(c.in)...)
	c.add(checkBareRepos(c.in.Changes)...)

	hits := make(map[int][]secrets.Hit)
	for i, change := range c.in.Changes {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		found, err := c.change(ctx, change)
		if err != nil {
			return err
		}
		hits[i] = found
	}
	// Only now is it known what the base held: a value may have moved from a file that came later.
	for i, change := range c.in.Changes {
		c.add(c.rules.secretFindings(change, hits[i], c.onBase)...)
	}
	if err := c.passing(ctx); err != nil {
		return err
	}
	c.add(c.rules.checkDiffSize(c.verdict)...)
	c.add(c.tampering()...)
	if err := c.share(ctx); err != nil {
		return err
	}
	c.verdict.Findings = sortFindings(c.verdict.Findings)
	c.verdict.Risk, c.verdict.Why = assess(c.verdict, c.in.Changes)
	return nil
}

// change applies the rules that look at one path, and gathers what the others need.
func (c *check) change(ctx context.Context, ch Change) ([]secrets.Hit, error) {
	c.add(c.rules.checkPath(ch)...)
	c.add(checkName(ch)...)
	c.add(checkDependency(ch)...)
	kind, err := c.rules.checkEntry(ctx, ch, c.in.Blobs)
	if err != nil {
		return nil, err
	}
	c.add(kind...)
	if ch.Old.ID == ch.New.ID && present(ch.Old) == present(ch.New) {
		return nil, nil // a mode change
	}
	before, err := c.readBase(ctx, ch)
	if err != nil {
		return nil, err
	}
	after, ok, err := c.readNew(ctx, ch)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, nil
	}
	added, removed := countLines(before, after)
	if c.verdict.Lines == nil {
		c.verdict.Lines = map[string]Lines{}
	}
	c.verdict.Lines[ch.Path] = Lines{Added: added, Removed: removed}
	c.verdict.Added += added
	c.verdict.Removed += removed
	if c.rules.TestTampering != "off" {
		f := tamper.File{Path: ch.Path, Before: before, After: after, Was: isBlob(ch.Old), Is: isBlob(ch.New), BeforeID: string(ch.Old.ID), AfterID: string(ch.New.ID)}
		c.tamper.Add(f)
		c.exam = append(c.exam, c.rules.Exam.Compare(f)...)
	}
	for _, h := range c.scanner.scan(ch, "base "+ch.Old.ID, before) {
		c.onBase[h.Key()] = true
	}
	return c.scanner.scan(ch, ch.New.ID, after), nil
}

// readBase reads the old side; a file too long to be a text that matters counts as absent.
func (c *check) readBase(ctx context.Context, ch Change) ([]byte, error) {
	b, _, err := c.text(ctx, ch.Old)
	if err != nil {
		return nil, fmt.Errorf("read %q of the base: %w", ch.Path, err)
	}
	return b, nil
}

// text reads what is short enough to be a text that matters; long tells of what is not.
func (c *check) text(ctx context.Context, e Entry) (b []byte, long bool, err error) {
	if !isBlob(e) {
		return nil, false, nil
	}
	size, err := c.in.Blobs.Size(ctx, e.ID)
	if err != nil || size > maxBaseBlob {
		return nil, size > maxBaseBlob, err
	}
	b, err = c.in.Blobs.ReadBlob(ctx, e.ID, maxBaseBlob)
	return b, false, err
}

// readNew reads the new side. A file over the limit is reported and not read: it is never pushed, so
// there is nothing to find in it.
func (c *check) readNew(ctx context.Context, ch Change) (text []byte, ok bool, err error) {
	if !isBlob(ch.New) {
		return nil, true, nil
	}
	size, err := c.in.Blobs.Size(ctx, ch.New.ID)
	if err != nil {
		return nil, false, fmt.Errorf("read %q: %w", ch.Path, err)
	}
	if f, over := c.rules.checkFileSize(ch.Path, size); over {
		c.add(f)
		return nil, false, nil
	}
	text, err = c.in.Blobs.ReadBlob(ctx, ch.New.ID, c.rules.fileLimit())
	if err != nil {
		return nil, false, fmt.Errorf("read %q: %w", ch.Path, err)
	}
	return text, true, nil
}

// passing looks at blobs that only a commit on the way holds, not the candidate.
func (c *check) passing(ctx context.Context) error {
	final := map[string]bool{}
	for _, ch := range c.in.Changes {
		final[string(ch.New.ID)+" "+ch.Path] = true
	}
	for _, ch := range c.in.Tick {
		if !isBlob(ch.New) || final[string(ch.New.ID)+" "+ch.Path] {
			continue
		}
		var text []byte
		if !c.scanner.known(ch, ch.New.ID) {
			var ok bool
			var err error
			if text, ok, err = c.readNew(ctx, ch); err != nil {
				return err
			} else if !ok {
				continue
			}
		}
		for _, f := range c.rules.secretFindings(ch, c.scanner.scan(ch, ch.New.ID, text), c.onBase) {
			f.Detail += " in a commit that would be pushed"
			c.add(f)
		}
	}
	return nil
}

func (c *check) tampering() []Finding {
	var out []Finding
	for _, s := range append(c.tamper.Signs(), c.exam...) {
		level := Block
		if s.Weak || c.rules.TestTampering == "flag" {
			level = Flag
		}
		next := s.Next
		if s.Weak {
			next = "see whether the issue asks for it"
		}
		out = append(out, Finding{Rule: Tampering, Level: level, Path: s.Path, Line: s.Line, Detail: s.Detail, Next: next})
	}
	return out
}
