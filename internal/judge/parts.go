package judge

import (
	"errors"
	"fmt"
	"strings"
)

// part is what one question shows of the diff.
type part struct{ text string }

var errNothing = errors.New("there is no change to review")

// split packs files into parts of at most max bytes, by file where it fits, else by hunk, else by lines of a
// hunk. Every byte of every file's diff is in exactly one part; what cannot be split so is an error, never cut.
func split(files []File, max int) ([]part, error) {
	var parts []part
	var b strings.Builder
	flush := func() {
		if b.Len() > 0 {
			parts = append(parts, part{b.String()})
			b.Reset()
		}
	}
	for _, f := range files {
		if f.unshown != "" {
			return nil, errors.New(f.unshown + "; keep generated files out of the change")
		}
		for _, piece := range f.pieces(max) {
			if len(piece) > max {
				return nil, fmt.Errorf("a line of %s is longer than the %d bytes that one question may show; keep generated files out of the change", f.header, max)
			}
			if b.Len()+len(piece) > max {
				flush()
			}
			b.WriteString(piece)
		}
	}
	flush()
	if len(parts) == 0 {
		return nil, errNothing
	}
	return parts, nil
}

// pieces are the file's diff in stretches of at most max bytes where its lines allow that, each under the file's header.
func (f File) pieces(max int) []string {
	head := f.header + "\n"
	whole := head + strings.Join(f.hunks, "") + "\n"
	if len(whole) <= max || len(f.hunks) == 0 {
		return []string{whole}
	}
	var out []string
	for i, h := range f.hunks {
		title := fmt.Sprintf("%s (hunk %d of %d)\n", f.header, i+1, len(f.hunks))
		if len(title)+len(h) <= max {
			out = append(out, title+h)
			continue
		}
		at, _, _ := strings.Cut(h, "\n")
		piece := title
		for line := range strings.Lines(h) {
			if len(piece)+len(line) > max && piece != title {
				out = append(out, piece)
				title = fmt.Sprintf("%s (hunk %d of %d, %s, continued)\n", f.header, i+1, len(f.hunks), at)
				piece = title
			}
			piece += line
		}
		out = append(out, piece)
	}
	return out
}
