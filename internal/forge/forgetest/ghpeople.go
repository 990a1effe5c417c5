package forgetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// What people do, and what a test or the demo looks at afterwards.

// Issue is a copy of an issue's state.
type Issue struct {
	Number             int
	ID                 int64
	Title, Body, State string
	Locked             bool
	Labels, Assignees  []string
	Author, URL        string
	Comments           []Comment
	Reactions          []string
	LabelEvents        []LabelEvent
	UpdatedAt          time.Time
}

// Comment is a copy of a comment or note.
type Comment struct {
	ID           int64
	Author, Body string
	CreatedAt    time.Time
	Reactions    []string
}

// LabelEvent is one addition or removal.
type LabelEvent struct {
	ID            int64
	Actor, Action string // "labeled" or "unlabeled"
	Label         string
	At            time.Time
}

// Pull is a copy of a pull or merge request's state.
type Pull struct {
	Number                       int
	Title, Body, State           string // "open", "closed", "merged"
	Draft                        bool
	Head, Base, HeadSHA          string
	Author, URL                  string
	Labels, Assignees, Reviewers []string
}

func (g *GitHub) newIssue(by *account, title, body string) *issue {
	g.nextNumber++
	at := g.now()
	is := &issue{id: g.id(), number: int(g.nextNumber), title: title, body: body, author: by, state: "open", created: at, updated: at}
	g.issues[is.number] = is
	return is
}

// OpenIssue writes an issue and gives its number.
func (g *GitHub) OpenIssue(title, body, author string) int {
	g.state.Lock()
	defer g.state.Unlock()
	return g.newIssue(g.addIfNew(author), title, body).number
}

// LabelIssue adds a label as actor would by hand, and sends the webhook if one is set. The delivery is
// complete (answered or failed) when it returns; it is empty without a hook.
func (g *GitHub) LabelIssue(number int, label, actor string) (Delivery, error) {
	d, err := g.labelIssue(number, label, actor)
	if err != nil || d == nil {
		return Delivery{}, err
	}
	g.Settle()
	g.state.Lock()
	defer g.state.Unlock()
	return *d, d.Err
}

func (g *GitHub) labelIssue(number int, label, actor string) (*Delivery, error) {
	g.state.Lock()
	defer g.state.Unlock()
	is := g.issues[number]
	if is == nil {
		return nil, fmt.Errorf("label issue %d: there is no such issue", number)
	}
	if slices.Contains(is.labels, label) {
		return nil, fmt.Errorf("label issue %d: it has the label %q already; remove it first", number, label)
	}
	before := len(g.deliveries)
	g.addLabel(is, label, g.addIfNew(actor), false)
	if len(g.deliveries) == before {
		return nil, nil
	}
	return g.deliveries[len(g.deliveries)-1], nil
}

// Settle waits for deliveries under way.
func (g *GitHub) Settle() {
	for _, d := range g.Deliveries() {
		<-d.done
	}
}

// UnlabelIssue removes a label as actor would.
func (g *GitHub) UnlabelIssue(number int, label, actor string) error {
	return g.onIssue(number, func(is *issue) error {
		i := slices.Index(is.labels, label)
		if i < 0 {
			return fmt.Errorf("unlabel issue %d: it does not have the label %q", number, label)
		}
		is.labels = slices.Delete(is.labels, i, i+1)
		g.addEvent(is, "unlabeled", label, g.addIfNew(actor))
		return nil
	})
}

// EditIssue changes title and body; an empty one stays.
func (g *GitHub) EditIssue(number int, title, body string) error {
	return g.onIssue(number, func(is *issue) error {
		is.title, is.body, is.updated = or(title, is.title), or(body, is.body), g.now()
		return nil
	})
}

// CloseIssue closes an issue or a pull request.
func (g *GitHub) CloseIssue(number int) error {
	return g.onIssue(number, func(is *issue) error {
		is.state, is.closed = "closed", g.now()
		g.emitClosed(is)
		return nil
	})
}

// MergePull marks a pull request as merged; no commit is made.
func (g *GitHub) MergePull(number int) error {
	return g.onIssue(number, func(is *issue) error {
		if is.pull == nil {
			return errors.New("not a pull request")
		}
		is.state, is.closed, is.pull.merged = "closed", g.now(), g.now()
		g.emitClosed(is)
		return nil
	})
}

// RenameDefaultBranch renames the default branch, as an owner does. Pull requests follow on both forges.
func (g *GitHub) RenameDefaultBranch(to string) error {
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

func (g *GitHub) rebase(old, to string) {
	for _, is := range g.issues {
		if is.pull != nil && is.pull.base == old {
			is.pull.base = to
		}
	}
}

// ClosePull closes a pull request without merging it.
func (g *GitHub) ClosePull(number int) error { return g.CloseIssue(number) }

// DeleteIssue leaves "410 Gone".
func (g *GitHub) DeleteIssue(number int) error {
	return g.onIssue(number, func(is *issue) error { is.deleted = true; return nil })
}

// TransferIssue moves it to another repository ("owner/name").
func (g *GitHub) TransferIssue(number int, to string) error {
	return g.onIssue(number, func(is *issue) error {
		is.moved = fmt.Sprintf("%s/%s/issues/1", g.url, to)
		return nil
	})
}

// Comment writes a comment as a person and gives its id. Hooks and workflows hear of it.
func (g *GitHub) Comment(number int, author, body string) (id int64, err error) {
	err = g.onIssue(number, func(is *issue) error {
		m := g.addComment(is, g.addIfNew(author), body)
		g.emitComment("created", is, m, false)
		id = m.id
		return nil
	})
	return id, err
}

// CommentOnPull is Comment: a pull request is an issue here.
func (g *GitHub) CommentOnPull(number int, author, body string) (int64, error) {
	return g.Comment(number, author, body)
}

// EditComment changes a comment as its author would; an empty body deletes it.
func (g *GitHub) EditComment(id int64, body string) error {
	g.state.Lock()
	defer g.state.Unlock()
	for _, is := range g.issues {
		for i, m := range is.comments {
			switch {
			case m.id != id:
			case body == "":
				is.comments = slices.Delete(is.comments, i, i+1)
				return nil
			default:
				m.body, m.updated = body, g.now()
				g.emitComment("edited", is, m, false)
				return nil
			}
		}
	}
	return fmt.Errorf("edit comment %d: there is no such comment", id)
}

// OpenPull opens a pull request as a person does; from a fork, its head branch need not exist here.
func (g *GitHub) OpenPull(title, head, base, author string, fromFork bool) int {
	g.state.Lock()
	defer g.state.Unlock()
	is := g.newIssue(g.addIfNew(author), title, "")
	if fromFork {
		g.addIfNew("forker")
	}
	is.pull = g.openPull(head, base, fromFork)
	is.pull.id = g.id()
	return is.number
}

// Issue as it is now.
func (g *GitHub) Issue(number int) (Issue, bool) {
	g.state.Lock()
	defer g.state.Unlock()
	is := g.issues[number]
	if is == nil {
		return Issue{}, false
	}
	out := Issue{
		Number: is.number, ID: is.id, Title: is.title, Body: is.body, State: is.state, Locked: is.locked,
		Labels: slices.Clone(is.labels), Assignees: slices.Clone(is.assignees), Author: is.author.login, URL: g.issueURL(is),
		Reactions: contents(is.reactions), UpdatedAt: is.updated,
	}
	out.Comments = commentsOf(is)
	for _, e := range is.events {
		out.LabelEvents = append(out.LabelEvents, LabelEvent{e.id, e.actor.login, e.name, e.label, e.at})
	}
	return out, true
}

func commentsOf(is *issue) []Comment {
	var out []Comment
	for _, m := range is.comments {
		out = append(out, Comment{m.id, m.author.login, m.body, m.created, contents(m.reactions)})
	}
	return out
}

// PullComments are the comments of a pull request's conversation.
func (g *GitHub) PullComments(number int) []Comment {
	is, _ := g.Issue(number)
	return is.Comments
}

func contents(rs []reaction) []string {
	var out []string
	for _, r := range rs {
		out = append(out, r.content)
	}
	return out
}

// Pulls are all pull requests, oldest first.
func (g *GitHub) Pulls() []Pull {
	g.state.Lock()
	defer g.state.Unlock()
	var out []Pull
	for _, is := range g.sortedIssues() {
		p := is.pull
		if p == nil {
			continue
		}
		state := is.state
		if !p.merged.IsZero() {
			state = "merged"
		}
		out = append(out, Pull{
			Number: is.number, Title: is.title, Body: is.body, State: state, Draft: p.draft, Head: p.head, Base: p.base, HeadSHA: g.headNow(is),
			Author: is.author.login, URL: g.issueURL(is), Labels: slices.Clone(is.labels), Assignees: slices.Clone(is.assignees), Reviewers: slices.Clone(p.reviewers),
		})
	}
	return out
}
