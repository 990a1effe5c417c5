package forgetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// OpenIssue writes an issue and gives its iid.
func (g *GitLab) OpenIssue(title, body, author string) int {
	g.state.Lock()
	defer g.state.Unlock()
	at := g.now()
	is := &issue{id: g.id(), number: len(g.issues) + 1, title: title, body: body, author: g.addIfNew(author), state: "open", created: at, updated: at}
	g.issues[is.number] = is
	return is.number
}

// EditIssue changes title and body; an empty one stays.
func (g *GitLab) EditIssue(number int, title, body string) error {
	return g.onIssue(number, func(is *issue) error {
		is.title, is.body = or(title, is.title), or(body, is.body)
		g.stampIssue(is)
		return nil
	})
}

// CloseIssue closes an issue.
func (g *GitLab) CloseIssue(number int) error {
	return g.onIssue(number, func(is *issue) error {
		is.state, is.closed = "closed", g.stampIssue(is)
		return nil
	})
}

// MakeConfidential hides the issue from all but members.
func (g *GitLab) MakeConfidential(number int) error {
	return g.onIssue(number, func(is *issue) error { g.secret[number] = true; return nil })
}

// TransferIssue moves it to another project.
func (g *GitLab) TransferIssue(number int, to string) error {
	return g.onIssue(number, func(is *issue) error {
		is.moved, is.state, is.closed = to, "closed", g.stampIssue(is)
		return nil
	})
}

// Comment writes a note as a person and gives its id.
func (g *GitLab) Comment(number int, author, body string) (id int64, err error) {
	err = g.onIssue(number, func(is *issue) error {
		m := g.addNote(is, g.addIfNew(author), body)
		g.emitNote(is, m)
		id = m.id
		return nil
	})
	return id, err
}

// CommentOnPull writes a note on a merge request as a person and gives its id.
func (g *GitLab) CommentOnPull(number int, author, body string) (int64, error) {
	g.state.Lock()
	defer g.state.Unlock()
	is := g.merges[number]
	if is == nil {
		return 0, fmt.Errorf("merge request %d: there is no such merge request", number)
	}
	m := g.addNote(is, g.addIfNew(author), body)
	g.emitNote(is, m)
	return m.id, nil
}

// OpenPull opens a merge request as a person does; from a fork, its source branch need not exist here.
func (g *GitLab) OpenPull(title, head, base, author string, fromFork bool) int {
	g.state.Lock()
	defer g.state.Unlock()
	m := g.newMerge(g.addIfNew(author), title, "")
	m.pull = g.openPull(head, base, fromFork)
	return m.number
}

// RenameDefaultBranch renames the default branch, as an owner does. Pull requests follow on both forges.
func (g *GitLab) RenameDefaultBranch(to string) error {
	g.state.Lock()
	defer g.state.Unlock()
	old := g.opt.DefaultBranch
	if _, err := git(context.Background(), g.repo.dir, "branch", "-m", old, to); err != nil {
		return err
	}
	g.opt.DefaultBranch = to
	g.rebase(old, to)
	return nil
}

func (g *GitLab) rebase(old, to string) {
	for _, m := range g.merges {
		if m.pull.base == old {
			m.pull.base = to
		}
	}
}

// ClosePull closes a merge request without merging it.
func (g *GitLab) ClosePull(number int) error {
	g.state.Lock()
	defer g.state.Unlock()
	m := g.merges[number]
	if m == nil {
		return errors.New("no such merge request")
	}
	m.state, m.closed = "closed", g.now()
	return nil
}

// MergePull marks a merge request as merged; no commit is made.
func (g *GitLab) MergePull(number int) error {
	g.state.Lock()
	defer g.state.Unlock()
	m := g.merges[number]
	if m == nil {
		return errors.New("no such merge request")
	}
	m.state, m.closed, m.pull.merged = "merged", g.now(), g.now()
	return nil
}

// PullComments are the notes of a merge request.
func (g *GitLab) PullComments(number int) []Comment {
	g.state.Lock()
	defer g.state.Unlock()
	if is := g.merges[number]; is != nil {
		return commentsOf(is)
	}
	return nil
}

// Issue as it is now.
func (g *GitLab) Issue(number int) (Issue, bool) {
	g.state.Lock()
	defer g.state.Unlock()
	is := g.issues[number]
	if is == nil {
		return Issue{}, false
	}
	out := Issue{
		Number: is.number, ID: is.id, Title: is.title, Body: is.body, State: is.state, Locked: is.locked, Labels: slices.Clone(is.labels),
		Assignees: slices.Clone(is.assignees), Author: is.author.login, URL: g.issueURL(is), Reactions: contents(is.reactions), UpdatedAt: is.updated,
	}
	for _, m := range is.comments {
		out.Comments = append(out.Comments, Comment{m.id, m.author.login, m.body, m.created, contents(m.reactions)})
	}
	for _, e := range is.events {
		out.LabelEvents = append(out.LabelEvents, LabelEvent{e.id, e.actor.login, e.name, e.label, e.at})
	}
	return out, true
}

// Pulls are all merge requests, oldest first.
func (g *GitLab) Pulls() []Pull {
	g.state.Lock()
	defer g.state.Unlock()
	var out []Pull
	for _, m := range sortedByNumber(g.merges) {
		state := m.state
		if !m.pull.merged.IsZero() {
			state = "merged"
		}
		out = append(out, Pull{
			Number: m.number, Title: m.title, Body: m.body, State: state, Draft: isDraft(m.title), Head: m.pull.head, Base: m.pull.base, HeadSHA: g.mergeHead(m),
			Author: m.author.login, URL: g.issueURL(m), Labels: slices.Clone(m.labels), Assignees: slices.Clone(m.assignees), Reviewers: slices.Clone(m.pull.reviewers),
		})
	}
	return out
}
