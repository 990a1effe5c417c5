package guard

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/git"
)

// store is an object store in memory.
type store map[git.ID]string

func (s store) put(text string) git.ID {
	sum := sha1.Sum([]byte(fmt.Sprintf("blob %d\x00%s", len(text), text)))
	id := git.ID(hex.EncodeToString(sum[:]))
	s[id] = text
	return id
}

func (s store) Size(_ context.Context, id git.ID) (int64, error) {
	text, ok := s[id]
	if !ok {
		return 0, fmt.Errorf("object %s is missing", id)
	}
	return int64(len(text)), nil
}

func (s store) ReadBlob(ctx context.Context, id git.ID, max int64) ([]byte, error) {
	n, err := s.Size(ctx, id)
	if err != nil {
		return nil, err
	}
	if max > 0 && n > max {
		return nil, fmt.Errorf("object %s has %d bytes, more than %d", id, n, max)
	}
	return []byte(s[id]), nil
}

// globs are patterns with ** and *, fold as the policy's own do.
type globs []string

func (g globs) Match(path string) (string, bool) {
	for _, p := range g {
		q := regexp.QuoteMeta(p)
		q = strings.ReplaceAll(q, `\*\*/`, `(?:.*/)?`)
		q = strings.ReplaceAll(q, `\*\*`, `.*`)
		q = strings.ReplaceAll(q, `\*`, `[^/]*`)
		if regexp.MustCompile(`(?is)^` + q + `$`).MatchString(path) {
			return p, true
		}
	}
	return "", false
}

// candidate builds an Input from what files held and hold.
type candidate struct {
	store store
	in    Input
}

func newCandidate() *candidate {
	c := &candidate{store: store{}}
	c.in.Blobs = c.store
	return c
}

func (c *candidate) entry(mode git.Mode, text string) Entry {
	return Entry{Mode: mode, ID: c.store.put(text)}
}

func (c *candidate) added(path, text string) *candidate {
	c.in.Changes = append(c.in.Changes, Change{Path: path, New: c.entry(git.ModeFile, text)})
	return c
}

func (c *candidate) changed(path, before, after string) *candidate {
	c.in.Changes = append(c.in.Changes, Change{Path: path, Old: c.entry(git.ModeFile, before), New: c.entry(git.ModeFile, after)})
	return c
}

func (c *candidate) deleted(path, before string) *candidate {
	c.in.Changes = append(c.in.Changes, Change{Path: path, Old: c.entry(git.ModeFile, before)})
	return c
}

func (c *candidate) linked(path, target string) *candidate {
	c.in.Changes = append(c.in.Changes, Change{Path: path, New: c.entry(git.ModeSymlink, target)})
	return c
}

func (c *candidate) check(t *testing.T, rules Rules) Verdict {
	t.Helper()
	if rules.Always == nil {
		rules.Always = globs{}
	}
	g, err := New(rules)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	v, err := g.Check(context.Background(), c.in)
	if err != nil {
		t.Fatalf("Check: %v", err)
	}
	return v
}

// has says whether a finding of that rule, level and path is in the verdict.
func has(v Verdict, rule Rule, level Level, path string) bool {
	for _, f := range v.Findings {
		if f.Rule == rule && f.Level == level && f.Path == path {
			return true
		}
	}
	return false
}
