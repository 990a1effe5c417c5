package prompt

import (
	"fmt"
	"strings"
)

// Round is a further go at a change that is open for review: what is asked of it now. Texts are raw and untrusted.
type Round struct {
	Wishes    []Wish
	Conflicts []string // paths in which the change and the moved base conflict; none: they do not
	Ours      string   // the marks of the two sides, as git writes them behind "<<<<<<< " and ">>>>>>> "
	Theirs    string
}

// Wish is one thing that people, or a failed check, ask of the change.
type Wish struct {
	From string // "thread 2", "review 1", "command", "check 1"
	By   string // login; "" for a check
	Path string // "" where it is about the whole
	Line int    // 0: not known
	Hunk string // of the diff that it stands below; may be empty
	Text string // Markdown, of a check its log
	Log  bool   // Text is what a program printed
}

const roundRule = "- The change is open for review, and your files hold it. Do in it what is asked for below the task, and leave the rest of it as it is.\n"

const conflictRule = "- The base has moved, and files of the change conflict with it. Settle each conflict so that both sides keep their meaning, and leave no conflict marks.\n"

// rule is what the fixed words say about a round.
func (r *Round) rule() string {
	if r == nil {
		return ""
	}
	if len(r.Conflicts) > 0 {
		return roundRule + conflictRule
	}
	return roundRule
}

// roundShare is what a round gets of the goal's share, in percent of the room.
const roundShare = 20

// maxHunk is how many bytes of a diff stand with a wish, its end: the line that it is about.
const maxHunk = 4 << 10

// part is the round as data. It is never nil, so that parts keep their places.
func (r *Round) part(p *Prompt) *part {
	out := &part{name: "requests", heading: "What is asked of the change now.", share: roundShare}
	if r == nil {
		return out
	}
	if len(r.Conflicts) > 0 {
		var paths []string
		for _, c := range r.Conflicts {
			paths = append(paths, Inline(c, 300))
		}
		intro := fmt.Sprintf("Files in conflict. Behind `<<<<<<< %s` stands the change, in front of `>>>>>>> %s` the base.", Inline(r.Ours, 64), Inline(r.Theirs, 64))
		out.sections = append(out.sections, section{label: "conflicts", intro: intro, text: strings.Join(paths, "\n")})
	}
	for _, w := range r.Wishes {
		text, removed := w.clean()
		p.removed(w.From, removed)
		if text != "" {
			out.sections = append(out.sections, section{label: w.From, intro: w.intro(), text: text, ends: w.Log})
		}
	}
	return out
}

func (w Wish) intro() string {
	s := "What a check of the change printed:"
	if !w.Log {
		s = "By " + Inline(w.By, 60)
		if w.Path != "" {
			s += ", on " + Inline(w.Path, 300)
			if w.Line > 0 {
				s += fmt.Sprintf(":%d", w.Line)
			}
		}
		s += ":"
	}
	return s
}

// clean is the visible text of a wish, below the lines of the diff that it is about.
func (w Wish) clean() (string, []Removal) {
	if w.Log {
		return strings.Trim(terminalText(w.Text), "\n"), nil
	}
	text, removed := Visible(w.Text)
	if text == "" || w.Hunk == "" {
		return text, removed
	}
	return "About this part of the diff:\n" + strings.Trim(terminalText(tail(w.Hunk, maxHunk)), "\n") + "\n\n" + text, removed
}
