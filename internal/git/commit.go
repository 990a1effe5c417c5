package git

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Meta is what a commit of ours says about itself. Empty fields leave their trailer out.
type Meta struct {
	Subject string // first line; empty: "Work on <issue>", or "Work in progress"
	Body    string // paragraphs between the subject and the trailers
	Run     string
	Tick    int
	Issue   string // "42" or "octo/shop#42"
	Agent   string
	CostUSD string // decimal dollars
	Verdict string
}

// Trailer names of our commits.
const (
	TrailerRun     = "Proctor-Run"
	TrailerTick    = "Proctor-Tick"
	TrailerIssue   = "Proctor-Issue"
	TrailerAgent   = "Proctor-Agent"
	TrailerCost    = "Proctor-Cost-USD"
	TrailerVerdict = "Proctor-Verdict"
	// TrailerBase names the commit the run started from: it ends the search for commits that are not ours.
	TrailerBase = "Proctor-Base"
)

// message renders the commit message. No value can forge a trailer or end the message early: values
// are one line, and a body line that reads like a trailer of ours is indented.
func (m Meta) message(base ID) string {
	var b strings.Builder
	subject := oneLine(m.Subject, 200)
	switch {
	case subject != "":
	case m.Issue != "":
		subject = "Work on " + oneLine(m.Issue, 100)
	default:
		subject = "Work in progress"
	}
	if looksLikeTrailer(subject) {
		subject = "Note: " + subject
	}
	b.WriteString(subject + "\n\n")
	for line := range strings.Lines(m.Body) {
		line = printable(strings.TrimRight(line, "\r\n"))
		if looksLikeTrailer(line) {
			line = "  " + line
		}
		b.WriteString(line + "\n")
	}
	if m.Body != "" {
		b.WriteString("\n")
	}
	tick := ""
	if m.Tick > 0 {
		tick = strconv.Itoa(m.Tick)
	}
	for _, t := range [][2]string{
		{TrailerRun, m.Run}, {TrailerTick, tick}, {TrailerIssue, m.Issue}, {TrailerAgent, m.Agent},
		{TrailerCost, m.CostUSD}, {TrailerVerdict, m.Verdict}, {TrailerBase, string(base)},
	} {
		if value := oneLine(t[1], 200); value != "" {
			b.WriteString(t[0] + ": " + value + "\n")
		}
	}
	return b.String()
}

func looksLikeTrailer(line string) bool {
	return strings.HasPrefix(strings.ToLower(strings.TrimSpace(line)), "proctor-") && !strings.HasPrefix(line, "  ")
}

// oneLine folds all white space, drops what is not printable and cuts at max bytes.
func oneLine(s string, max int) string {
	s = strings.Join(strings.Fields(printable(s)), " ")
	for len(s) > max {
		_, n := utf8.DecodeLastRuneInString(s[:max+1])
		s = s[:max+1-n]
	}
	return s
}

func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', r == '\r', r == '\u2028', r == '\u2029', r == '\u0085', r == '\v', r == '\f':
			return ' '
		case r == utf8.RuneError, unicode.IsControl(r), unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, s)
}

// Commit is a commit object, parsed.
type Commit struct {
	ID        ID
	Tree      ID
	Parents   []ID
	Author    string // "Name <address>"
	Committer string // "Name <address>"
	Signed    bool   // it bears a signature, which nobody has verified
	When      time.Time
	Message   string
}

// Trailer is the last trailer of that name in the message's last paragraph, "" when there is none.
func (c Commit) Trailer(name string) string {
	last := c.Message
	if i := strings.LastIndex(strings.TrimRight(last, "\n"), "\n\n"); i >= 0 {
		last = last[i+2:]
	}
	value := ""
	for line := range strings.Lines(last) {
		if key, v, ok := strings.Cut(line, ": "); ok && key == name {
			value = strings.TrimSpace(v)
		}
	}
	return value
}

// ReadCommit parses a commit.
func (s *Store) ReadCommit(ctx context.Context, id ID) (Commit, error) {
	content, err := s.bytes(ctx, id, "commit", 1<<20)
	if err != nil {
		return Commit{}, err
	}
	c, err := s.fmt.parseCommit(string(content))
	if err != nil {
		return Commit{}, fmt.Errorf("commit %s: %w", id, err)
	}
	c.ID = id
	return c, nil
}

func (f format) parseCommit(text string) (c Commit, err error) {
	head, message, _ := strings.Cut(text, "\n\n")
	c.Message = message
	for line := range strings.SplitSeq(head, "\n") {
		key, value, _ := strings.Cut(line, " ")
		switch key {
		case "tree":
			if c.Tree, err = f.objectID(value); err != nil {
				return c, err
			}
		case "parent":
			parent, err := f.objectID(value)
			if err != nil {
				return c, err
			}
			c.Parents = append(c.Parents, parent)
		case "author":
			if i := strings.LastIndex(value, "> "); i >= 0 {
				c.Author = value[:i+1]
			}
		case "gpgsig", "gpgsig-sha256":
			c.Signed = true
		case "committer":
			if i := strings.LastIndex(value, "> "); i >= 0 {
				c.Committer = value[:i+1]
				seconds, _, _ := strings.Cut(value[i+2:], " ")
				unix, _ := strconv.ParseInt(seconds, 10, 64)
				c.When = time.Unix(unix, 0).UTC()
			}
		}
	}
	if c.Tree == "" {
		return c, fmt.Errorf("it names no tree")
	}
	return c, nil
}

// writeCommit stores a commit with our identity and clock, whatever the environment says.
func (s *Store) writeCommit(tree ID, parents []ID, message string) (ID, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "tree %s\n", tree)
	for _, parent := range parents {
		fmt.Fprintf(&b, "parent %s\n", parent)
	}
	who := fmt.Sprintf("%s %d +0000", s.identity(), s.git.now().Unix())
	fmt.Fprintf(&b, "author %s\ncommitter %s\n\n%s", who, who, message)
	return s.loose.write("commit", []byte(b.String()))
}

func (s *Store) identity() string { return s.git.name + " <" + s.git.email + ">" }

// ours reports whether a commit was written by this program, or by a forge for it: its committer and its run trailer say so.
// A person's amendment keeps the message but not the committer.
func (s *Store) ours(c Commit) bool {
	return (c.Committer == s.identity() || c.byForge()) && c.Trailer(TrailerRun) != ""
}

// Tree is the tree of a commit.
func (s *Store) Tree(ctx context.Context, commit ID) (ID, error) {
	c, err := s.ReadCommit(ctx, commit)
	return c.Tree, err
}

// Squash writes one commit with the tree of commit and these parents, the base where none are given. Do it before the
// proof, so that the proved id is the pushed id. A commit that stands alone on them, or is the first of them, stays what it is.
func (s *Store) Squash(ctx context.Context, commit ID, meta Meta, onto ...ID) (ID, error) {
	if len(onto) == 0 {
		onto = []ID{s.base}
	}
	c, err := s.ReadCommit(ctx, commit)
	if err != nil {
		return "", fmt.Errorf("squash %s: %w", commit, err)
	}
	if commit == onto[0] || slices.Equal(c.Parents, onto) {
		return commit, nil
	}
	return s.writeCommit(c.Tree, onto, meta.message(s.base))
}
