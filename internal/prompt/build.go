package prompt

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/proctor-ci/proctor/internal/inert"
)

// DefaultLimit is how many bytes a prompt has at most: far below what a model reads at once, far
// above what an issue needs. It goes by stdin or file; one argument could not hold it.
const DefaultLimit = 200 << 10

// Input is everything a prompt is made of. Texts of issues, comments and programs are raw: Build
// takes out of them what nobody could see.
type Input struct {
	Tick, MaxTicks int
	Left           Left
	Rules          Rules
	Goal           Goal
	Comments       []Comment // of writers, oldest first
	Anchors        []Anchor
	Plan           *Plan  // nil: none
	Round          *Round // nil: the change begins here
	Feedback       []Feedback
	Random         io.Reader // crypto/rand.Reader; the markers come from it
	Limit          int       // bytes; 0: DefaultLimit
	// DataFile is where the caller puts Prompt.Data, outside what the agent may write. When it is
	// empty the data stands in Prompt.Text.
	DataFile string
}

// Left is what the run may still use; what is empty is not told.
type Left struct {
	Cost string // as printed: "$3.2000"
	Time time.Duration
}

// Rules of the exam, from the base commit's configuration.
type Rules struct {
	Gates     []string // commands the harness runs at each tick
	HeldOut   bool     // there is an acceptance gate
	Sealed    []string // never told: patterns of Protected that equal one are left out
	Protected []string
	Allow     []string // told unless it is "**"
	Deny      []string
	MaxFiles  int // 0: not told
	MaxLines  int // 0: not told
}

// Goal is an issue, or a goal in words with Number 0.
type Goal struct {
	Number     int
	Title      string
	Body       string // Markdown
	ApprovedBy string // login
	Snapshot   string // hash of what was approved
}

// Comment on the issue, by somebody with write access.
type Comment struct {
	Author string
	Body   string // Markdown
}

// Anchor is an instruction file of the repository at the base commit.
type Anchor struct {
	Path string
	Text []byte
}

// Prompt is what an agent is given.
type Prompt struct {
	Text    string // for stdin: begins with words of ours, valid UTF-8
	Data    string // for Input.DataFile; "" without one
	Removed []Removed
	Cut     []Cut
}

// Removed is a Removal and the text it was taken from: "title", "body", "comment 2", "AGENTS.md".
type Removed struct {
	Where string
	Removal
}

// Cut says that a part did not fit: "body", "comments", "feedback", or a file's path.
type Cut struct {
	Part         string
	Shown, Total int // bytes
}

// Build assembles the prompt in its fixed order: rules of ours, then the goal, comments,
// instruction files, feedback, the plan and what a review asks for, each as data between markers that nobody can know beforehand, then
// how far the run is. It fails when nothing of the goal is visible, when output of the proof is
// among the feedback (it would unseal the held-out tests), or when Random does.
func Build(in Input) (Prompt, error) {
	var p Prompt
	parts, err := p.collect(in)
	if err != nil {
		return Prompt{}, err
	}
	ats := false
	if in.DataFile == "" {
		ats = defuseParts(parts) // before anything is measured
	}
	mark, err := newMarker(in.Random, parts)
	if err != nil {
		return Prompt{}, fmt.Errorf("build prompt: %w", err)
	}
	opening, closing := defuse(rulesText(in)+dataText(in, mark, ats)), stateText(in)
	limit := in.Limit
	if limit <= 0 {
		limit = DefaultLimit
	}
	room := limit - len(opening) - len(closing)
	if room < leastRoom {
		return Prompt{}, fmt.Errorf("build prompt: a limit of %d bytes leaves no room for the task beside the rules; allow %d or more", limit, limit-room+leastRoom)
	}
	p.shrink(parts, room)
	data := renderParts(parts, mark)
	if in.DataFile != "" {
		p.Text, p.Data = opening+closing, data
		return p, nil
	}
	p.Text = opening + data + closing
	return p, nil
}

// leastRoom is what a task of a few lines with its feedback needs.
const leastRoom = 4 << 10

// part is a kind of data with the share of the limit it always gets.
type part struct {
	name     string
	heading  string
	share    int // percent of the room
	sections []section
	newest   bool // when it has to shrink, the last sections are kept
}

// section is one text between markers.
type section struct {
	label string
	intro string // of ours, before the marker
	text  string
	ends  bool // when it has to shrink, both ends are kept
	total int  // bytes before it was cut, 0 when it was not
}

const maxTitle = 1000

// collect cleans every text and sorts it into parts.
func (p *Prompt) collect(in Input) ([]*part, error) {
	title, removed := VisibleTitle(in.Goal.Title)
	p.removed("title", removed)
	body, removed := Visible(in.Goal.Body)
	p.removed("body", removed)
	if title == "" && body == "" {
		return nil, errors.New("build prompt: the goal has no visible text; write what is wanted into the issue and ask again")
	}
	goal := &part{name: "body", heading: goalHeading(in.Goal), share: 58}
	if in.Round != nil {
		goal.share -= roundShare
	}
	if title != "" {
		if len(title) > maxTitle {
			p.Cut = append(p.Cut, Cut{Part: "title", Shown: maxTitle, Total: len(title)})
		}
		goal.sections = append(goal.sections, section{label: "title", text: cutBytes(title, maxTitle)})
	}
	if body != "" {
		goal.sections = append(goal.sections, section{label: "body", text: body})
	}

	comments := &part{name: "comments", heading: "Comments on it by people with write access, oldest first.", share: 12, newest: true}
	for i, c := range in.Comments {
		where := fmt.Sprintf("comment %d", i+1)
		text, removed := Visible(c.Body)
		p.removed(where, removed)
		if text != "" {
			comments.sections = append(comments.sections, section{label: where, intro: "By " + Inline(c.Author, 60) + ":", text: text})
		}
	}

	anchors := &part{name: "instructions", heading: "The repository's own instructions for work on it, from the base commit.", share: 12}
	for _, a := range in.Anchors {
		var l ledger
		text := strings.TrimSpace(inert.Clean(string(a.Text), l.add))
		p.removed(a.Path, l.list())
		if text != "" {
			anchors.sections = append(anchors.sections, section{label: Inline(a.Path, 100), text: text})
		}
	}

	feedback := &part{name: "feedback", heading: "What came of the attempt before this one. Your files are as that attempt left them.", share: 12}
	for _, f := range in.Feedback {
		s, err := f.section()
		if err != nil {
			return nil, err
		}
		feedback.sections = append(feedback.sections, s)
	}
	return []*part{goal, comments, anchors, feedback, in.Plan.part(), in.Round.part(p)}, nil
}

func (p *Prompt) removed(where string, list []Removal) {
	for _, r := range list {
		p.Removed = append(p.Removed, Removed{Where: where, Removal: r})
	}
}
