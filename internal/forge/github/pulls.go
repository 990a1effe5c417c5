package github

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/google/go-github/v66/github"

	"github.com/proctor-ci/proctor/internal/forge"
)

// FindPullRequest is the open pull request from head, a branch of this repository; one from a fork's
// branch of the same name does not count.
func (c *Client) FindPullRequest(ctx context.Context, head string) (forge.PullRequest, error) {
	k := call{what: c.in("look for the pull request of branch " + head), needs: permPullsRead}
	var found *github.PullRequest
	err := c.do(ctx, k, func(ctx context.Context, _ int) (resp *github.Response, err error) {
		found, resp, err = c.openPull(ctx, head, "")
		return resp, err
	})
	if err != nil {
		return forge.PullRequest{}, err
	}
	if found == nil {
		return forge.PullRequest{}, &forge.Error{Op: k.what, Kind: forge.ErrNotFound, Said: "there is no open pull request from this branch"}
	}
	return pull(found), nil
}

// openPull reads every page: the forge ignores a head filter it cannot parse, so the answer is compared again.
func (c *Client) openPull(ctx context.Context, head, base string) (*github.PullRequest, *github.Response, error) {
	opt := &github.PullRequestListOptions{State: "open", Head: c.owner + ":" + head, Base: base,
		ListOptions: github.ListOptions{Page: 1, PerPage: perPage}}
	var resp *github.Response
	for opt.Page != 0 {
		var page []*github.PullRequest
		var err error
		if page, resp, err = c.api.PullRequests.List(ctx, c.owner, c.repo, opt); err != nil {
			return nil, resp, err
		}
		for _, p := range page {
			if p.GetHead().GetRef() == head && p.GetHead().GetRepo().GetID() == p.GetBase().GetRepo().GetID() {
				return p, resp, nil
			}
		}
		opt.Page = resp.NextPage
	}
	return nil, resp, nil
}

// CreatePullRequest opens a draft. When one is open from the head to the base already (a lost answer,
// an earlier run) it is returned as it is: the caller sees its title and body and edits them.
func (c *Client) CreatePullRequest(ctx context.Context, n forge.NewPullRequest) (forge.PullRequest, error) {
	k := call{what: c.in("create pull request from " + n.Head), needs: permPulls, head: n.Head, base: n.Base}
	if err := errors.Join(c.fits(k, "pull request", n.Body), c.titleFits(k, n.Title)); err != nil {
		return forge.PullRequest{}, err
	}
	var p *github.PullRequest
	err := c.do(ctx, k, func(ctx context.Context, _ int) (resp *github.Response, err error) {
		if p, resp, err = c.openPull(ctx, n.Head, n.Base); p != nil || err != nil {
			return resp, err
		}
		p, resp, err = c.api.PullRequests.Create(ctx, c.owner, c.repo, &github.NewPullRequest{
			Title: &n.Title, Head: &n.Head, Base: &n.Base, Body: &n.Body, Draft: github.Bool(true),
		})
		return resp, err
	})
	if errors.Is(err, forge.ErrConflict) { // somebody, or our lost call, was between the look and the creation
		return c.FindPullRequest(ctx, n.Head)
	}
	if err != nil {
		return forge.PullRequest{}, err
	}
	return pull(p), nil
}

// UpdatePullRequest changes title and body, never the draft state.
func (c *Client) UpdatePullRequest(ctx context.Context, number int, e forge.PullRequestEdit) (forge.PullRequest, error) {
	k := call{what: c.in("update pull request " + hash(number)), needs: permPulls, missing: "check the pull request number"}
	if e.Body != nil {
		if err := c.fits(k, "pull request", *e.Body); err != nil {
			return forge.PullRequest{}, err
		}
	}
	if e.Title != nil {
		if err := c.titleFits(k, *e.Title); err != nil {
			return forge.PullRequest{}, err
		}
	}
	var p *github.PullRequest
	err := c.do(ctx, k, func(ctx context.Context, _ int) (resp *github.Response, err error) {
		p, resp, err = c.api.PullRequests.Edit(ctx, c.owner, c.repo, number, &github.PullRequest{Title: e.Title, Body: e.Body})
		return resp, err
	})
	if err != nil {
		return forge.PullRequest{}, err
	}
	return pull(p), nil
}

// RequestReviewers asks logins, or teams written as "org/team".
func (c *Client) RequestReviewers(ctx context.Context, number int, logins []string) error {
	k := call{what: c.in("ask " + strings.Join(logins, ", ") + " to review " + hash(number)), needs: permPulls, missing: "check the pull request number"}
	var ask github.ReviewersRequest
	for _, l := range logins {
		if _, team, ok := strings.Cut(l, "/"); ok {
			ask.TeamReviewers = append(ask.TeamReviewers, team)
		} else {
			ask.Reviewers = append(ask.Reviewers, l)
		}
	}
	return c.do(ctx, k, func(ctx context.Context, _ int) (*github.Response, error) {
		_, resp, err := c.api.PullRequests.RequestReviewers(ctx, c.owner, c.repo, number, ask)
		return resp, err
	})
}

func pull(p *github.PullRequest) forge.PullRequest {
	state := p.GetState()
	if p.GetMerged() || p.MergedAt != nil {
		state = "merged"
	}
	return forge.PullRequest{
		Number: p.GetNumber(), URL: p.GetHTMLURL(), State: state, Draft: p.GetDraft(),
		Head: p.GetHead().GetRef(), Base: p.GetBase().GetRef(), HeadSHA: p.GetHead().GetSHA(),
		HeadRepoID: p.GetHead().GetRepo().GetID(), Title: p.GetTitle(), Body: p.GetBody(), Author: user(p.User),
	}
}

// fits refuses before sending what the forge would refuse after: the caller cuts, with a pointer to the rest.
func (c *Client) fits(k call, what, body string) error {
	n := utf8.RuneCountInString(body)
	if n <= maxBody {
		return nil
	}
	return &forge.Error{Op: k.what, Kind: forge.ErrTooLarge, Said: fmt.Sprintf("the %s body has %d characters, %d are allowed", what, n, maxBody),
		Next: "shorten it and point at the full report"}
}

func (c *Client) titleFits(k call, title string) error {
	if n := utf8.RuneCountInString(title); n > maxTitle {
		return &forge.Error{Op: k.what, Kind: forge.ErrTooLarge, Said: fmt.Sprintf("the title has %d characters, %d are allowed", n, maxTitle), Next: "shorten the title"}
	}
	return nil
}
