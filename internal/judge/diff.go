package judge

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/linediff"
	"github.com/proctor-ci/proctor/internal/pattern"
)

// contextLines surround each change.
const contextLines = 8

// maxFileBytes is the longest file whose text is shown. A longer one bars a verdict, unless its name is none of a
// text's: then its size is told, as for any binary.
const maxFileBytes = 4 << 20

// Blobs reads objects; [git.Store] is one.
type Blobs interface {
	Size(ctx context.Context, id git.ID) (int64, error)
	ReadBlob(ctx context.Context, id git.ID, max int64) ([]byte, error)
}

// File is one changed file as the reviewer sees it.
type File struct {
	Path           string
	Added, Removed int
	header         string
	hunks          []string // each with its @@ line
	unshown        string   // why the change cannot be shown; then there is no verdict
}

// Diff renders every change of a candidate. It reads blobs itself: no attribute, filter or driver of the
// repository has a say in what the reviewer sees, and nothing is left out for being binary or generated.
func Diff(ctx context.Context, changes []git.Change, blobs Blobs) ([]File, error) {
	out := make([]File, 0, len(changes))
	for _, c := range changes {
		f, err := diffFile(ctx, c, blobs)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

func diffFile(ctx context.Context, c git.Change, blobs Blobs) (File, error) {
	f := File{Path: c.Path, header: header(c)}
	before, sizeBefore, err := read(ctx, c, c.Old, blobs)
	if err != nil {
		return f, err
	}
	after, sizeAfter, err := read(ctx, c, c.New, blobs)
	if err != nil {
		return f, err
	}
	long := max(sizeBefore, sizeAfter) > maxFileBytes
	if long && source.MatchString(c.Path) {
		f.unshown = fmt.Sprintf("%s has %d bytes, more than the %d that are shown", name(c.Path), max(sizeBefore, sizeAfter), maxFileBytes)
		return f, nil
	}
	if long || isBinary(c.Path, before) || isBinary(c.Path, after) {
		f.hunks = []string{fmt.Sprintf("binary: %d bytes (%.12s) before, %d bytes (%.12s) after\n", sizeBefore, c.Old.ID, sizeAfter, c.New.ID)}
		return f, nil
	}
	f.hunks, f.Added, f.Removed = hunks(before, after)
	return f, nil
}

// read gives one side's text and size; a side that is too long has no text, one that has no content or did not change neither.
func read(ctx context.Context, c git.Change, e git.Entry, blobs Blobs) ([]byte, int64, error) {
	if !e.Mode.IsFile() && e.Mode != git.ModeSymlink || c.Old.ID == c.New.ID {
		return nil, 0, nil
	}
	size, err := blobs.Size(ctx, e.ID)
	if err != nil {
		return nil, 0, fmt.Errorf("read %q for review: %w", c.Path, err)
	}
	if size > maxFileBytes {
		return nil, size, nil
	}
	b, err := blobs.ReadBlob(ctx, e.ID, maxFileBytes)
	if err != nil {
		return nil, 0, fmt.Errorf("read %q for review: %w", c.Path, err)
	}
	return b, size, nil
}

func header(c git.Change) string {
	what := map[string]string{"A": "added", "D": "deleted", "T": "replaced", "M": "changed"}[c.Status()]
	s := fmt.Sprintf("%s %s", what, name(c.Path))
	switch {
	case c.Status() == "A" && c.New.Mode != git.ModeFile:
		s += fmt.Sprintf(", mode %s", c.New.Mode)
	case c.Old.Mode != 0 && c.New.Mode != 0 && c.Old.Mode != c.New.Mode:
		s += fmt.Sprintf(", mode %s → %s", c.Old.Mode, c.New.Mode)
	}
	return s
}

// name is a path on one line: quoted as soon as anything in it is odd.
func name(path string) string {
	for _, r := range path {
		if !unicode.IsPrint(r) || r == '"' || r == utf8.RuneError {
			return fmt.Sprintf("%+q", path)
		}
	}
	return path
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

// hunks compares lines. Where both sides are equal but for their line ends, these are told in one line and
// not shown on each.
func hunks(before, after []byte) (out []string, added, removed int) {
	a, b := linediff.Split(before), linediff.Split(after)
	note := ""
	if crlf(a) != crlf(b) && len(a) > 0 && len(b) > 0 {
		note = fmt.Sprintf("line ends: %d of %d lines ended in CR LF before, %d of %d after; they are not shown below\n", crlf(a), len(a), crlf(b), len(b))
		a, b = withoutCR(a), withoutCR(b)
	}
	edits := linediff.Edits(a, b)
	if note != "" {
		out = append(out, note)
	}
	for i := 0; i < len(edits); {
		// A hunk goes on while less than two contexts of equal lines separate its changes.
		last := i
		for last+1 < len(edits) && edits[last+1].A-edits[last].AEnd <= 2*contextLines {
			last++
		}
		out = append(out, hunk(a, b, edits[i:last+1]))
		i = last + 1
	}
	for _, e := range edits {
		added += e.BEnd - e.B
		removed += e.AEnd - e.A
	}
	return out, added, removed
}

func hunk(a, b [][]byte, edits []linediff.Edit) string {
	first, last := edits[0], edits[len(edits)-1]
	lead := min(contextLines, first.A)
	trail := min(contextLines, len(a)-last.AEnd)
	var s strings.Builder
	fmt.Fprintf(&s, "@@ -%d,%d +%d,%d @@\n", first.A-lead+1, last.AEnd+trail-first.A+lead, first.B-lead+1, last.BEnd+trail-first.B+lead)
	put := func(mark byte, ls [][]byte) {
		for _, l := range ls {
			s.WriteByte(mark)
			s.WriteString(visible(strings.TrimSuffix(string(l), "\n")))
			s.WriteByte('\n')
			if !bytes.HasSuffix(l, []byte("\n")) {
				s.WriteString("\\ no newline at the end of the file\n")
			}
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
	return s.String()
}

// visible shows what prints as nothing, reorders text or is no text, so that what is reviewed is what runs.
func visible(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\n' || r == '\t' || r == '\r' && i+1 == len(s):
			b.WriteRune(r)
		case unicode.Is(unicode.Cf, r), unicode.IsControl(r), unicode.Is(unicode.Variation_Selector, r), r == 0x2028, r == 0x2029, r == 0x3164, r == 0x115f, r == 0x1160, r == 0xffa0:
			fmt.Fprintf(&b, `\u{%x}`, r)
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
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
