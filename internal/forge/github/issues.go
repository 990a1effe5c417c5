package github

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v66/github"

	"github.com/proctor-ci/proctor/internal/forge"
)

// Issue as it is now. One that was transferred to another repository is ErrMoved: its text, labels and
// people are not this repository's any more.
func (c *Client) Issue(ctx context.Context, number int) (forge.Issue, error) {
	k := call{what: c.in("read issue " + hash(number)), needs: permIssuesRead, missing: "check the issue number"}
	var is *github.Issue
	err := c.do(ctx, k, func(ctx context.Context, _ int) (resp *github.Response, err error) {
		is, resp, err = c.api.Issues.Get(ctx, c.owner, c.repo, number)
		return resp, err
	})
	if err != nil {
		return forge.Issue{}, err
	}
	if err := c.sameRepository(ctx, k, is); err != nil {
		return forge.Issue{}, err
	}
	return issue(is), nil
}

// sameRepository allows for a renamed repository: the API follows both renames and transfers without a word.
func (c *Client) sameRepository(ctx context.Context, k call, is *github.Issue) error {
	_, full, _ := strings.Cut(is.GetRepositoryURL(), "/repos/")
	if full == "" || strings.EqualFold(full, c.owner+"/"+c.repo) {
		return nil
	}
	r, err := c.Repository(ctx)
	if err != nil {
		return err
	}
	if strings.EqualFold(full, r.Owner+"/"+r.Name) {
		return nil
	}
	return &forge.Error{Op: k.what, Status: http.StatusMovedPermanently, Kind: forge.ErrMoved,
		Said: forge.Said("now " + is.GetHTMLURL()), Next: "add the label to the issue in its new repository"}
}

func issue(is *github.Issue) forge.Issue {
	out := forge.Issue{
		Number: is.GetNumber(), ID: is.GetID(), Title: is.GetTitle(), Body: is.GetBody(), State: is.GetState(),
		Locked: is.GetLocked(), IsPull: is.IsPullRequest(), Author: user(is.User), URL: is.GetHTMLURL(),
		UpdatedAt: is.GetUpdatedAt().Time,
	}
	for _, l := range is.Labels {
		out.Labels = append(out.Labels, l.GetName())
	}
	return out
}

// LabelEvent looks from the newest page back: an old issue's history can be long, and the label is
// usually what happened last.
func (c *Client) LabelEvent(ctx context.Context, number int, label string) (forge.LabelEvent, error) {
	k := call{what: c.in("read the label events of issue " + hash(number)), needs: permIssuesRead, missing: "check the issue number"}
	events, last, err := c.issueEvents(ctx, k, number, 1)
	if err != nil {
		return forge.LabelEvent{}, err
	}
	first := events
	for page := last; page >= 1; page-- {
		if page == 1 {
			events = first
		} else if events, _, err = c.issueEvents(ctx, k, number, page); err != nil {
			return forge.LabelEvent{}, err
		}
		for _, e := range slices.Backward(events) {
			if e.GetEvent() == "labeled" && strings.EqualFold(e.GetLabel().GetName(), label) {
				return forge.LabelEvent{ID: e.GetID(), Actor: user(e.GetActor()), At: e.GetCreatedAt().Time}, nil
			}
		}
	}
	return forge.LabelEvent{}, &forge.Error{Op: k.what, Kind: forge.ErrNotFound,
		Said: forge.Said("the label " + label + " was never added"), Next: "add the label " + label + " to the issue"}
}

func (c *Client) issueEvents(ctx context.Context, k call, number, page int) (events []*github.IssueEvent, last int, err error) {
	err = c.do(ctx, k, func(ctx context.Context, _ int) (*github.Response, error) {
		var resp *github.Response
		var err error
		events, resp, err = c.api.Issues.ListIssueEvents(ctx, c.owner, c.repo, number, &github.ListOptions{Page: page, PerPage: perPage})
		if err == nil {
			last = max(resp.LastPage, page)
		}
		return resp, err
	})
	return events, last, err
}

// Comments of an issue or a pull request, oldest first, all pages.
func (c *Client) Comments(ctx context.Context, number int) ([]forge.Comment, error) {
	var out []forge.Comment
	k := call{what: c.in("read the comments of " + hash(number)), needs: permIssuesRead, missing: "check the issue number"}
	err := pages(ctx, c, k, 0, func(ctx context.Context, at github.ListOptions) ([]*github.IssueComment, *github.Response, error) {
		return c.api.Issues.ListComments(ctx, c.owner, c.repo, number, &github.IssueListCommentsOptions{ListOptions: at})
	}, func(page []*github.IssueComment) bool {
		for _, m := range page {
			out = append(out, comment(m))
		}
		return false
	})
	return out, err
}

func comment(m *github.IssueComment) forge.Comment {
	return forge.Comment{ID: m.GetID(), Body: m.GetBody(), Author: user(m.User), CreatedAt: m.GetCreatedAt().Time, URL: m.GetHTMLURL()}
}

// clockSkew allowed between the forge and us when looking for a comment of our own.
const clockSkew = 2 * time.Minute

// CreateComment writes one comment. After a lost answer it looks for its own words among the newest
// comments, so that a retry does not say them twice.
func (c *Client) CreateComment(ctx context.Context, number int, body string) (forge.Comment, error) {
	k := call{what: c.in("comment on " + hash(number)), needs: permIssues, missing: "check the issue number"}
	if err := c.fits(k, "comment", body); err != nil {
		return forge.Comment{}, err
	}
	started := c.now()
	var m *github.IssueComment
	err := c.do(ctx, k, func(ctx context.Context, attempt int) (resp *github.Response, err error) {
		if attempt > 0 {
			found, resp, err := c.commentSince(ctx, number, body, started)
			if found != nil || err != nil {
				m = found
				return resp, err
			}
		}
		m, resp, err = c.api.Issues.CreateComment(ctx, c.owner, c.repo, number, &github.IssueComment{Body: &body})
		return resp, err
	})
	if err != nil {
		return forge.Comment{}, err
	}
	return comment(m), nil
}

// commentSince finds a comment with exactly these words, nil when there is none.
func (c *Client) commentSince(ctx context.Context, number int, body string, at time.Time) (*github.IssueComment, *github.Response, error) {
	since := at.Add(-clockSkew).UTC().Truncate(time.Second)
	opt := &github.IssueListCommentsOptions{Since: &since, ListOptions: github.ListOptions{Page: 1, PerPage: perPage}}
	for opt.Page != 0 {
		page, resp, err := c.api.Issues.ListComments(ctx, c.owner, c.repo, number, opt)
		if err != nil {
			return nil, resp, err
		}
		for _, m := range page {
			if m.GetBody() == body && !m.GetCreatedAt().Time.Before(since) {
				return m, resp, nil
			}
		}
		opt.Page = resp.NextPage
	}
	return nil, nil, nil
}

// UpdateComment edits in place.
func (c *Client) UpdateComment(ctx context.Context, number int, id int64, body string) error {
	k := call{what: c.in("edit a comment on " + hash(number)), needs: permIssues, missing: "the comment was deleted; a new one is needed"}
	if err := c.fits(k, "comment", body); err != nil {
		return err
	}
	return c.do(ctx, k, func(ctx context.Context, _ int) (*github.Response, error) {
		_, resp, err := c.api.Issues.EditComment(ctx, c.owner, c.repo, id, &github.IssueComment{Body: &body})
		return resp, err
	})
}

// React adds an emoji; GitHub answers a repeated one with the first.
func (c *Client) React(ctx context.Context, number int, commentID int64, r forge.Reaction) error {
	k := call{what: c.in("react to a comment on " + hash(number)), needs: permIssues, missing: "the comment was deleted"}
	return c.do(ctx, k, func(ctx context.Context, _ int) (resp *github.Response, err error) {
		if commentID == 0 {
			_, resp, err = c.api.Reactions.CreateIssueReaction(ctx, c.owner, c.repo, number, string(r))
		} else {
			_, resp, err = c.api.Reactions.CreateIssueCommentReaction(ctx, c.owner, c.repo, commentID, string(r))
		}
		return resp, err
	})
}

// Assign people.
func (c *Client) Assign(ctx context.Context, number int, logins []string) error {
	k := call{what: c.in("assign " + strings.Join(logins, ", ") + " to " + hash(number)), needs: permIssues, missing: "check the number"}
	return c.do(ctx, k, func(ctx context.Context, _ int) (*github.Response, error) {
		is, resp, err := c.api.Issues.AddAssignees(ctx, c.owner, c.repo, number, logins)
		if err != nil {
			return resp, err
		}
		return nil, unassigned(k, is, logins)
	})
}

// unassigned: GitHub drops people it does not accept without saying so.
func unassigned(k call, is *github.Issue, want []string) error {
	for _, login := range want {
		if !slices.ContainsFunc(is.Assignees, func(u *github.User) bool { return strings.EqualFold(u.GetLogin(), login) }) {
			return &forge.Error{Op: k.what, Kind: forge.ErrInvalid, Said: forge.Said(login + " was not accepted"),
				Next: "check that " + login + " may be assigned in this repository"}
		}
	}
	return nil
}

// notFoundLabel tells "the issue does not have this label" from "there is no such issue".
func notFoundLabel(err error) bool {
	var fe *forge.Error
	return errors.As(err, &fe) && fe.Status == http.StatusNotFound && strings.Contains(fe.Said, "Label does not exist")
}
