// Package publishtest owns a forge in memory for tests of what a run leaves on one. It must never be
// more lenient than a real forge.
package publishtest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/forge/github"
	"github.com/proctor-ci/proctor/internal/forge/gitlab"
)

// Forge is one repository. The zero value is not usable: call New. Fields may be set before use.
type Forge struct {
	mu       sync.Mutex
	Kind     string
	Repo     forge.Repository
	Me       *forge.User // nil: the token cannot tell
	Limit    forge.Limits
	Heads    map[string]string // branch → commit
	Pulls    []forge.PullRequest
	Notes    map[int][]forge.Comment // by issue
	Labels   map[int][]string        // of issues and pull requests
	Ready    bool                    // pull requests are opened ready for review, against what was asked
	HeadsNow func(name string) (string, error)
	// Before is asked before each call; an error is the answer. Lose says that the call is carried
	// out and its answer lost.
	Before func(op string) error
	Lose   func(op string) bool
	Calls  []string
	nextID int64
	now    time.Time
}

var (
	_ forge.Forge         = (*Forge)(nil)
	_ forge.PushExplainer = (*Forge)(nil)
)

// New is a repository octo/shop with the default branch main and ourselves as a bot.
func New() *Forge {
	return &Forge{
		Kind:   "github",
		Repo:   forge.Repository{Owner: "octo", Name: "shop", ID: 1, DefaultBranch: "main", WebURL: "https://git.example/octo/shop"},
		Me:     &forge.User{Login: "proctor[bot]", ID: 99, Bot: true},
		Limit:  forge.Limits{CommentBody: 65536, PullRequestBody: 65536},
		Heads:  map[string]string{"main": strings.Repeat("b", 40)},
		Notes:  map[int][]forge.Comment{},
		Labels: map[int][]string{},
		nextID: 100,
		now:    time.Date(2026, 3, 4, 9, 0, 0, 0, time.UTC),
	}
}

// Count is how often an operation was called.
func (f *Forge) Count(op string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, c := range f.Calls {
		if c == op {
			n++
		}
	}
	return n
}

// call notes the operation and runs do under the lock, as Before and Lose have it.
func (f *Forge) call(op string, do func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Calls = append(f.Calls, op)
	if f.Before != nil {
		if err := f.Before(op); err != nil {
			return err
		}
	}
	if err := do(); err != nil {
		return err
	}
	if f.Lose != nil && f.Lose(op) {
		return Error(op, forge.ErrUnavailable, 0, "", "")
	}
	return nil
}

// Error is a forge's refusal.
func Error(op string, kind error, status int, said, next string) error {
	return &forge.Error{Op: op + " in octo/shop", Kind: kind, Status: status, Said: said, Next: next}
}

func notFound(op string) error { return Error(op, forge.ErrNotFound, 404, "Not Found", "") }

func (f *Forge) self() forge.User {
	if f.Me != nil {
		return *f.Me
	}
	return forge.User{Login: "github-actions[bot]", ID: 41898282, Bot: true}
}

func (f *Forge) Repository(context.Context) (r forge.Repository, err error) {
	err = f.call("Repository", func() error { r = f.Repo; return nil })
	return r, err
}

func (f *Forge) Issue(_ context.Context, number int) (i forge.Issue, err error) {
	err = f.call("Issue", func() error { i = forge.Issue{Number: number, State: "open"}; return nil })
	return i, err
}

func (f *Forge) Role(context.Context, string) (r forge.Role, err error) {
	err = f.call("Role", func() error { r = forge.RoleWrite; return nil })
	return r, err
}

func (f *Forge) LabelEvent(context.Context, int, string) (e forge.LabelEvent, err error) {
	return e, f.call("LabelEvent", func() error { return notFound("LabelEvent") })
}

func (f *Forge) SetLabels(_ context.Context, number int, add, remove []string) error {
	return f.call("SetLabels", func() error {
		keep := slices.DeleteFunc(f.Labels[number], func(l string) bool { return slices.Contains(remove, l) })
		for _, l := range add {
			if !slices.Contains(keep, l) {
				keep = append(keep, l)
			}
		}
		f.Labels[number] = keep
		return nil
	})
}

func (f *Forge) Comments(_ context.Context, number int) (c []forge.Comment, err error) {
	err = f.call("Comments", func() error { c = slices.Clone(f.Notes[number]); return nil })
	return c, err
}

func (f *Forge) CreateComment(_ context.Context, number int, body string) (c forge.Comment, err error) {
	err = f.call("CreateComment", func() error {
		if len(body) > f.Limit.CommentBody {
			return Error("create comment", forge.ErrInvalid, 422, "body is too long", "")
		}
		f.nextID++
		c = forge.Comment{ID: f.nextID, Body: body, Author: f.self(), CreatedAt: f.now}
		f.Notes[number] = append(f.Notes[number], c)
		return nil
	})
	if err != nil {
		c = forge.Comment{}
	}
	return c, err
}

func (f *Forge) UpdateComment(_ context.Context, number int, id int64, body string) error {
	return f.call("UpdateComment", func() error {
		for i, c := range f.Notes[number] {
			if c.ID != id {
				continue
			}
			if c.Author.ID != f.self().ID {
				return Error("update comment", forge.ErrForbidden, 403, "Resource not accessible", "")
			}
			f.Notes[number][i].Body = body
			return nil
		}
		return notFound("update comment")
	})
}

func (f *Forge) Branch(_ context.Context, name string) (id string, err error) {
	err = f.call("Branch", func() error {
		if f.HeadsNow != nil {
			id, err = f.HeadsNow(name)
			return err
		}
		if id = f.Heads[name]; id == "" {
			return notFound("look at branch " + name)
		}
		return nil
	})
	return id, err
}

func (f *Forge) FindPullRequest(_ context.Context, head string) (pr forge.PullRequest, err error) {
	err = f.call("FindPullRequest", func() error {
		for _, p := range f.Pulls {
			if p.Head == head && p.State == "open" {
				pr = p
				return nil
			}
		}
		return notFound("find pull request")
	})
	return pr, err
}

func (f *Forge) CreatePullRequest(_ context.Context, n forge.NewPullRequest) (pr forge.PullRequest, err error) {
	err = f.call("CreatePullRequest", func() error {
		if len(n.Body) > f.Limit.PullRequestBody {
			return Error("create pull request", forge.ErrInvalid, 422, "body is too long", "")
		}
		for _, p := range f.Pulls {
			if p.Head == n.Head && p.State == "open" {
				return Error("create pull request", forge.ErrInvalid, 422, "A pull request already exists for octo:"+n.Head, "")
			}
		}
		number := len(f.Pulls) + 7
		pr = forge.PullRequest{
			Number: number, URL: fmt.Sprintf("%s/pull/%d", f.Repo.WebURL, number), State: "open", Draft: !f.Ready, Head: n.Head, Base: n.Base,
			Title: n.Title, Body: n.Body, Author: f.self(), HeadRepoID: f.Repo.ID,
		}
		f.Pulls = append(f.Pulls, pr)
		return nil
	})
	if err != nil {
		pr = forge.PullRequest{}
	}
	return pr, err
}

func (f *Forge) UpdatePullRequest(_ context.Context, number int, e forge.PullRequestEdit) (pr forge.PullRequest, err error) {
	err = f.call("UpdatePullRequest", func() error {
		for i := range f.Pulls {
			p := &f.Pulls[i]
			if p.Number != number {
				continue
			}
			if e.Title != nil {
				p.Title = *e.Title
			}
			if e.Body != nil {
				if len(*e.Body) > f.Limit.PullRequestBody {
					return Error("update pull request", forge.ErrInvalid, 422, "body is too long", "")
				}
				p.Body = *e.Body
			}
			pr = *p
			return nil
		}
		return notFound("update pull request")
	})
	return pr, err
}

func (f *Forge) AddLabelsToPullRequest(_ context.Context, number int, labels []string) error {
	return f.call("AddLabelsToPullRequest", func() error {
		f.Labels[number] = append(f.Labels[number], labels...)
		return nil
	})
}

func (f *Forge) Self(context.Context) (u forge.User, err error) {
	err = f.call("Self", func() error {
		if f.Me == nil {
			return notFound("look at own account")
		}
		u = *f.Me
		return nil
	})
	return u, err
}

// ExplainPush answers as the real client of this kind of forge does.
func (f *Forge) ExplainPush(branch, output string) error {
	server := strings.TrimSuffix(f.Repo.WebURL, "/"+f.Repo.Owner+"/"+f.Repo.Name)
	var client forge.PushExplainer
	var err error
	if f.Kind == "gitlab" {
		client, err = gitlab.New(gitlab.Config{ServerURL: server, Project: f.Repo.Owner + "/" + f.Repo.Name})
	} else {
		client, err = github.New(github.Config{ServerURL: server, Owner: f.Repo.Owner, Repo: f.Repo.Name})
	}
	if err != nil {
		return err
	}
	return client.ExplainPush(branch, output)
}

func (f *Forge) Remote() forge.Remote { return forge.Remote{URL: "https://git.example/octo/shop.git"} }
func (f *Forge) Limits() forge.Limits { return f.Limit }
func (f *Forge) Name() string         { return f.Kind }

// Pusher pushes into a Forge's branches as a server with leases does.
type Pusher struct {
	Forge *Forge
	// Before runs before the push and may change the branch or refuse.
	Before func() error
	// Blind ignores what was expected: a push by force. For positive controls.
	Blind  bool
	Pushed []string // "branch commit"
}

// Push compares and sets.
func (p *Pusher) Push(_ context.Context, branch, commit, expect string) error {
	if p.Before != nil {
		if err := p.Before(); err != nil {
			return err
		}
	}
	p.Forge.mu.Lock()
	defer p.Forge.mu.Unlock()
	if now := p.Forge.Heads[branch]; now != expect && !p.Blind {
		return fmt.Errorf("push %s: stale info: it is at %q", branch, now)
	}
	p.Forge.Heads[branch] = commit
	p.Pushed = append(p.Pushed, branch+" "+commit)
	return nil
}
