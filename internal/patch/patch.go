package patch

import (
	"bytes"
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/linediff"
	"github.com/proctor-ci/proctor/internal/pattern"
)

// Blobs reads objects; [git.Store] is one.
type Blobs interface {
	Size(ctx context.Context, id git.ID) (int64, error)
	ReadBlob(ctx context.Context, id git.ID, max int64) ([]byte, error)
}

// Options say how a change is read.
type Options struct {
	Around int   // unchanged lines that surround each change
	Max    int64 // bytes of the longest file whose text is shown
	// Mask gives a whole text as it may be shown, line for line; nil: as it is. What differs is decided before.
	Mask func(text []byte) []byte
}

// File is one changed path.
type File struct {
	Change           git.Change
	OldSize, NewSize int64 // bytes of a content that changed; 0 where there is none
	Binary           bool  // told by its sizes
	Long             bool  // longer than Options.Max; a long source file is not Binary
	Text
}

// Text is what differs between two texts.
type Text struct {
	// Ends says how many lines ended in CR LF, where that changed; lines are compared and shown without.
	Ends           string
	Ended          bool // every line on both sides ends in CR LF, and the hunks' lines in CR
	Hunks          []Hunk
	Added, Removed int
}

// Hunk is a stretch of lines. Old and New are the numbers of its first line on either side, from 1.
type Hunk struct {
	Old, OldLines, New, NewLines int
	Lines                        []Line
}

// Line is one line without its line feed.
type Line struct {
	Mark byte // ' ', '-' or '+'
	Text string
	Open bool // it ends the file and has no line feed
}

// Read reads one change. No attribute of the repository has a say, and nothing is left out for being generated.
func Read(ctx context.Context, c git.Change, blobs Blobs, o Options) (File, error) {
	f := File{Change: c}
	before, size, err := content(ctx, c, c.Old, blobs, o.Max)
	if err != nil {
		return f, err
	}
	f.OldSize = size
	after, size, err := content(ctx, c, c.New, blobs, o.Max)
	if err != nil {
		return f, err
	}
	f.NewSize = size
	if f.Long = max(f.OldSize, f.NewSize) > o.Max; f.Long {
		f.Binary = !source.MatchString(c.Path)
		return f, nil
	}
	if f.Binary = isBinary(c.Path, before) || isBinary(c.Path, after); !f.Binary {
		f.Text = Compare(before, after, o)
	}
	return f, nil
}

// content gives one side's text and size; a side that is too long has no text, one that has no content or did not change neither.
func content(ctx context.Context, c git.Change, e git.Entry, blobs Blobs, max int64) ([]byte, int64, error) {
	if !e.Mode.IsFile() && e.Mode != git.ModeSymlink || c.Old.ID == c.New.ID {
		return nil, 0, nil
	}
	size, err := blobs.Size(ctx, e.ID)
	if err != nil {
		return nil, 0, fmt.Errorf("read %q: %w", c.Path, err)
	}
	if size > max {
		return nil, size, nil
	}
	b, err := blobs.ReadBlob(ctx, e.ID, max)
	if err != nil {
		return nil, 0, fmt.Errorf("read %q: %w", c.Path, err)
	}
	return b, size, nil
}

// source are names whose content is run or read by people: it is shown however it looks.
var source = pattern.Of(`(?i)\.(?:go|py|pyi|[cm]?[jt]sx?|vue|svelte|rs|java|kts?|groovy|scala|rb|php|cs|fs|c|cc|cpp|h|hpp|m|swift|dart|ex|exs|erl|clj|hs|lua|pl|r|sql|sh|bash|zsh|ps1|bat|html?|css|scss|xml|ya?ml|toml|json|ini|cfg|conf|md|txt|gradle|tf|proto)$|(?:^|/)(?:Makefile|Dockerfile|[^./]+)$`)

// isBinary: a NUL makes no file binary here, or one byte would hide a source file. Three bytes in ten must be
// none of a text.
func isBinary(path string, b []byte) bool {
	if source.MatchString(path) && !bytes.HasPrefix(b, []byte("\x7fELF")) {
		return false
	}
	odd := 0
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 || r < ' ' && r != '\n' && r != '\r' && r != '\t' && r != '\f' {
			odd++
		}
		i += n
	}
	return odd*10 > 3*len(b)
}

// Compare compares two texts line by line.
func Compare(before, after []byte, o Options) Text {
	a, b := linediff.Split(before), linediff.Split(after)
	shownA, shownB := a, b
	if o.Mask != nil {
		shownA, shownB = masked(a, before, o.Mask), masked(b, after, o.Mask)
	}
	var t Text
	if crlf(a) != crlf(b) && len(a) > 0 && len(b) > 0 {
		t.Ends = fmt.Sprintf("line ends: %d of %d lines ended in CR LF before, %d of %d after; they are not shown below", crlf(a), len(a), crlf(b), len(b))
		a, b, shownA, shownB = withoutCR(a), withoutCR(b), withoutCR(shownA), withoutCR(shownB)
	}
	t.Ended = len(a)+len(b) > 0 && crlf(a)+crlf(b) == len(a)+len(b)
	edits := linediff.Edits(a, b)
	for _, e := range edits {
		t.Added += e.BEnd - e.B
		t.Removed += e.AEnd - e.A
	}
	for _, h := range linediff.Hunks(edits, o.Around) {
		t.Hunks = append(t.Hunks, hunk(shownA, shownB, h, o.Around))
	}
	return t
}

// masked is lines as mask shows them. One that gives another number of lines says nothing of which is which, and
// then nothing is shown.
func masked(lines [][]byte, text []byte, mask func([]byte) []byte) [][]byte {
	out := linediff.Split(mask(text))
	if len(out) == len(lines) {
		return out
	}
	return make([][]byte, len(lines))
}

func hunk(a, b [][]byte, edits []linediff.Edit, around int) Hunk {
	first, last := edits[0], edits[len(edits)-1]
	lead := min(around, first.A)
	trail := min(around, len(a)-last.AEnd)
	h := Hunk{Old: first.A - lead + 1, OldLines: last.AEnd + trail - first.A + lead, New: first.B - lead + 1, NewLines: last.BEnd + trail - first.B + lead}
	put := func(mark byte, ls [][]byte) {
		for _, l := range ls {
			text := bytes.TrimSuffix(l, []byte("\n"))
			h.Lines = append(h.Lines, Line{mark, string(text), len(text) == len(l)})
		}
	}
	at := first.A - lead
	for _, e := range edits {
		put(' ', a[at:e.A])
		put('-', a[e.A:e.AEnd])
		put('+', b[e.B:e.BEnd])
		at = e.AEnd
	}
	put(' ', a[at:at+trail])
	return h
}

func crlf(ls [][]byte) int {
	n := 0
	for _, l := range ls {
		if bytes.HasSuffix(l, []byte("\r\n")) {
			n++
		}
	}
	return n
}

func withoutCR(ls [][]byte) [][]byte {
	out := make([][]byte, len(ls))
	for i, l := range ls {
		out[i] = l
		if bytes.HasSuffix(l, []byte("\r\n")) {
			out[i] = append(bytes.Clone(l[:len(l)-2]), '\n')
		}
	}
	return out
}
