package forgetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// thread is one conversation on a line of a pull or merge request.
type thread struct {
	id       int64
	review   int64
	path     string
	line     int
	hunk     string
	commit   string
	resolved bool
	comments []*comment
}

// review is what one person said about the whole.
type review struct {
	id     int64
	state  string // lower case
	body   string
	author *account
	commit string
	at     time.Time
}

// ReviewLine is a comment on one line of the new file.
type ReviewLine struct {
	Path string
	Line int
	Body string
}

// Thread is a copy of a thread's state.
type Thread struct {
	Path     string
	Line     int
	Resolved bool
	Comments []Comment
}

// addThreads writes a review's comments on lines of the head as it is.
func (s *site) addThreads(is *issue, head string, rv int64, by *account, lines []ReviewLine) []*thread {
	var made []*thread
	shown := map[ReviewLine]string{} // each costs a process
	for _, l := range lines {
		at := ReviewLine{Path: l.Path, Line: l.Line}
		if _, known := shown[at]; !known {
			shown[at] = s.hunk(head, l)
		}
		t := &thread{id: s.id(), review: rv, path: l.Path, line: l.Line, commit: head, hunk: shown[at]}
		t.comments = []*comment{s.said(by, l.Body)}
		made = append(made, t)
	}
	is.pull.threads = append(is.pull.threads, made...)
	is.updated = s.now()
	return made
}

func (s *site) said(by *account, body string) *comment {
	return &comment{id: s.id(), body: body, author: by, created: s.now(), updated: s.now()}
}

// hunk is the file down to the line, as the diff of a new file shows it.
func (s *site) hunk(commit string, l ReviewLine) string {
	data, err := s.repo.file(context.Background(), commit, l.Path)
	if err != nil {
		return ""
	}
	all := strings.Split(string(data), "\n")
	shown := all[:min(l.Line, len(all))]
	return fmt.Sprintf("@@ -0,0 +1,%d @@\n+%s", len(all), strings.Join(shown, "\n+"))
}

// onThread finds one by its place among all of a pull request.
func onThread(is *issue, n int, f func(*thread)) error {
	if is == nil || is.pull == nil || n < 0 || n >= len(is.pull.threads) {
		return errors.New("there is no such thread")
	}
	f(is.pull.threads[n])
	return nil
}

func threadsOf(is *issue) []Thread {
	if is == nil || is.pull == nil {
		return nil
	}
	var out []Thread
	for _, t := range is.pull.threads {
		out = append(out, Thread{Path: t.path, Line: t.line, Resolved: t.resolved, Comments: commentsOf(&issue{comments: t.comments})})
	}
	return out
}

// threadWith finds the thread that a comment stands in.
func threadWith(is *issue, id int64) *thread {
	for _, t := range is.pull.threads {
		if slices.ContainsFunc(t.comments, func(m *comment) bool { return m.id == id }) {
			return t
		}
	}
	return nil
}
