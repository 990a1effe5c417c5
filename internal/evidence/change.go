package evidence

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/proctor-ci/proctor/internal/inert"
)

// ChangeSchema is the version of Change; a reader leaves a newer one alone.
const ChangeSchema = 1

// Bounds of a Change, in bytes but for files. A record names as many files.
const (
	maxChangeFiles = 300
	maxChangeText  = 200_000
	maxChangeLine  = 2000
	maxChangeFile  = 4 << 20 // what is read of a file that may be anybody's
)

// Change is proctor-change.json: what the run's commit changes, as text without secrets. It lies beside the
// record, which names paths and counts lines; nothing decides by it.
type Change struct {
	Schema   int           `json:"schema"`
	Run      string        `json:"run"`
	Base     Commit        `json:"base"`
	Head     Commit        `json:"head"`
	Files    []ChangedFile `json:"files"`
	FilesCut int           `json:"files_cut,omitempty"`
}

// ChangedFile is one path of it.
type ChangedFile struct {
	FileDelta
	Words    []string `json:"words,omitempty"` // what lines do not show: modes, links, sizes of what is no text
	Hunks    []Hunk   `json:"hunks,omitempty"`
	LinesCut int      `json:"lines_cut,omitempty"` // at the end
}

// Hunk is a stretch of lines, each behind ' ', '-', '+' or, where it is a remark, '\'. Old and New are the numbers
// of its first line on either side.
type Hunk struct {
	Old   int      `json:"old"`
	New   int      `json:"new"`
	Lines []string `json:"lines"`
}

// WriteChange writes c to ChangeFile in dir as that of the run's head, redacted and within bounds. Lines in which the
// patch policy saw a credential are left out whole.
func WriteChange(dir string, r Record, c Change, red *Redactor) error {
	if r.Head == nil {
		return errors.New("write change: the run has no commit")
	}
	c.Schema, c.Run, c.Base, c.Head = ChangeSchema, r.Run, r.Base, *r.Head
	c = redacted(red, c).within().withRisks(r)
	b, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("encode change: %w", err)
	}
	return WriteFile(filepath.Join(dir, ChangeFile), append(b, '\n'))
}

// ReadChange reads the change that lies beside r in dir; fs.ErrNotExist when there is none. One of another run is an error.
func ReadChange(dir string, r Record) (Change, error) {
	f, err := os.Open(filepath.Join(dir, ChangeFile))
	if err != nil {
		return Change{}, fmt.Errorf("read change: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxChangeFile+1))
	if err != nil {
		return Change{}, fmt.Errorf("read change %s: %w", f.Name(), err)
	}
	if len(b) > maxChangeFile {
		return Change{}, fmt.Errorf("%s is larger than %d MiB", f.Name(), maxChangeFile>>20)
	}
	c, err := decodeChange(b, r)
	if err != nil {
		return c, fmt.Errorf("%s %w", f.Name(), err)
	}
	return c, nil
}

// decodeChange is ReadChange for bytes; errors go on behind the file's name.
func decodeChange(b []byte, r Record) (Change, error) {
	var c Change
	if err := json.Unmarshal(b, &c); err != nil {
		return Change{}, fmt.Errorf("is none of ours: %w", err)
	}
	switch {
	case c.Schema > ChangeSchema:
		return Change{}, fmt.Errorf("has schema %d and this program knows up to %d: use a newer proctor", c.Schema, ChangeSchema)
	case r.Head == nil || c.Run != r.Run || c.Base != r.Base || c.Head != *r.Head:
		return Change{}, errors.New("is not of this run's commit")
	}
	return c.within(), nil
}

// made is the tick whose commit has that tree; nil when no tick of this record has.
func (r Record) made(tree string) *Tick {
	for i := len(r.Ticks) - 1; i >= 0; i-- {
		if t := &r.Ticks[i]; t.Commit != nil && t.Commit.Tree == tree {
			return t
		}
	}
	return nil
}

// withRisks gives each file the lines and the risk that the record has of it, and hides what may be a credential.
func (c Change) withRisks(r Record) Change {
	t := r.made(c.Head.Tree)
	if t == nil {
		return c
	}
	for i := range c.Files {
		f := &c.Files[i]
		for _, d := range t.Files {
			if d.Path == f.Path {
				f.Added, f.Removed, f.Risk = d.Added, d.Removed, d.Risk
			}
		}
		for _, g := range t.Guard {
			if g.Rule == "secret" && g.Path == f.Path {
				f.hide(g.Line)
			}
		}
	}
	return c
}

// hide takes the text of a line on the new side away, of line 0 all that was added.
func (f *ChangedFile) hide(line int) {
	for _, h := range f.Hunks {
		h.each(func(i, _, now int) {
			if h.Lines[i][0] != '-' && (now == line || line == 0) {
				h.Lines[i] = h.Lines[i][:1] + Redacted
			}
		})
	}
}

// each calls fn with the number that a line has on either side; 0 where it is not.
func (h Hunk) each(fn func(i, old, now int)) {
	old, now := h.Old, h.New
	for i, l := range h.Lines {
		switch l[0] {
		case '-':
			fn(i, old, 0)
			old++
		case '+':
			fn(i, 0, now)
			now++
		case ' ':
			fn(i, old, now)
			old++
			now++
		default:
			fn(i, 0, 0)
		}
	}
}

// within is c with files, lines and text inside their bounds. The longest files are cut, so that short ones stay whole.
func (c Change) within() Change {
	if n := len(c.Files) - maxChangeFiles; n > 0 {
		c.Files, c.FilesCut = c.Files[:maxChangeFiles], c.FilesCut+n
	}
	c.Files = slices.Clone(list(c.Files))
	sizes := make([]int, len(c.Files))
	for i := range c.Files {
		f := &c.Files[i]
		f.Path, f.Risk = inert.Cut(f.Path, maxChangeLine), inert.Cut(f.Risk, maxChangeLine)
		f.Status, f.OldMode, f.NewMode = inert.Cut(f.Status, 20), inert.Cut(f.OldMode, 20), inert.Cut(f.NewMode, 20)
		f.Words = slices.Clone(f.Words)[:min(len(f.Words), 10)]
		for k, w := range f.Words {
			f.Words[k] = inert.Cut(w, maxChangeLine)
		}
		f.Hunks = slices.Clone(f.Hunks)
		for k := range f.Hunks {
			f.Hunks[k].Lines = bounded(f.Hunks[k].Lines)
		}
		sizes[i] = f.size()
	}
	share := fair(sizes, maxChangeText)
	for i := range c.Files {
		c.Files[i].cut(share, func(l string) int { return len(l) })
	}
	return c
}

// bounded are lines of a bounded length; one that has no mark is a remark.
func bounded(lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		if l == "" || !strings.ContainsRune(` +-\`, rune(l[0])) {
			l = `\` + l
		}
		if out[i] = l; len(l) > maxChangeLine {
			short := inert.Cut(l, maxChangeLine-40) // with what is said of the rest it is no longer than it may be
			out[i] = fmt.Sprintf("%s… (%d bytes more)", short, len(l)-len(short))
		}
	}
	return out
}

func (f *ChangedFile) size() int {
	n := 0
	for _, h := range f.Hunks {
		for _, l := range h.Lines {
			n += len(l)
		}
	}
	return n
}

// fair is the most that each may have, so that all together keep within total.
func fair(sizes []int, total int) int {
	sorted := slices.Sorted(slices.Values(sizes))
	for i, n := range sorted {
		left := len(sorted) - i
		if n*left > total {
			return total / left
		}
		total -= n
	}
	return math.MaxInt
}

// cut ends the file's lines before they cost more than limit.
func (f *ChangedFile) cut(limit int, cost func(line string) int) {
	for i := range f.Hunks {
		h := &f.Hunks[i]
		for k, l := range h.Lines {
			if limit -= cost(l); limit >= 0 {
				continue
			}
			f.LinesCut += len(h.Lines) - k
			for _, rest := range f.Hunks[i+1:] {
				f.LinesCut += len(rest.Lines)
			}
			h.Lines = h.Lines[:k]
			f.Hunks = f.Hunks[:i+1]
			if k == 0 {
				f.Hunks = f.Hunks[:i]
			}
			return
		}
	}
}
