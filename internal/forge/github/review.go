package github

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v66/github"

	"github.com/proctor-ci/proctor/internal/forge"
)

var (
	_ forge.ThreadTalker = (*Client)(nil)
	_ forge.ReviewReader = (*Client)(nil)
)

// threadsQuery: only GraphQL says which threads are resolved. It asks from the newest back, and of each thread for its first comment
// too, which an answer names: however much is written, it is the oldest that is left out.
// https://docs.github.com/graphql/reference/objects#pullrequestreviewthread
const threadsQuery = `query($owner:String!,$name:String!,$number:Int!,$before:String){repository(owner:$owner,name:$name){pullRequest(number:$number){` +
	`reviewThreads(last:50,before:$before){pageInfo{hasPreviousPage startCursor} nodes{id isResolved path line ` +
	`first:comments(first:1){nodes{...said}} comments(last:50){nodes{...said}}}}}}}` +
	`fragment said on PullRequestReviewComment{url body createdAt diffHunk author{__typename login ... on User{databaseId} ... on Bot{databaseId}}}`

// maxThreadPages bounds what is read of one pull request.
const maxThreadPages = 10

type gqlThread struct {
	ID         string  `json:"id"`
	IsResolved bool    `json:"isResolved"`
	Path       string  `json:"path"`
	Line       int     `json:"line"` // null where the line is gone
	First      gqlSaid `json:"first"`
	Comments   gqlSaid `json:"comments"`
}

type gqlSaid struct {
	Nodes []gqlComment `json:"nodes"`
}

type gqlComment struct {
	URL       string    `json:"url"`
	Body      string    `json:"body"`
	CreatedAt time.Time `json:"createdAt"`
	DiffHunk  string    `json:"diffHunk"`
	Author    *struct { // null: the account is gone
		Kind       string `json:"__typename"`
		Login      string `json:"login"`
		DatabaseID int64  `json:"databaseId"`
	} `json:"author"`
}

type gqlThreads struct {
	Data struct {
		Repository struct {
			PullRequest *struct {
				ReviewThreads struct {
					PageInfo struct {
						HasPreviousPage bool   `json:"hasPreviousPage"`
						StartCursor     string `json:"startCursor"`
					} `json:"pageInfo"`
					Nodes []gqlThread `json:"nodes"`
				} `json:"reviewThreads"`
			} `json:"pullRequest"`
		} `json:"repository"`
	} `json:"data"`
	Errors []struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"errors"`
}

// Threads implements forge.ThreadTalker.
func (c *Client) Threads(ctx context.Context, number int) ([]forge.Thread, error) {
	k := call{what: c.in("read the review threads of " + hash(number)), needs: permPullsRead, missing: "check the pull request number"}
	var out []forge.Thread // newest first
	before := ""
	for range maxThreadPages {
		page, err := c.threadPage(ctx, k, number, before)
		if err != nil {
			return nil, err
		}
		threads := page.Data.Repository.PullRequest.ReviewThreads
		for _, t := range slices.Backward(threads.Nodes) { // a page is oldest first whichever way it is asked for
			if len(t.Comments.Nodes) > 0 {
				out = append(out, t.thread())
			}
		}
		if before = threads.PageInfo.StartCursor; !threads.PageInfo.HasPreviousPage {
			break
		}
	}
	slices.Reverse(out)
	return out, nil
}

// threadPage asks for one page. GraphQL answers 200 to what it refuses, with the reason in the body.
func (c *Client) threadPage(ctx context.Context, k call, number int, before string) (gqlThreads, error) {
	vars := map[string]any{"owner": c.owner, "name": c.repo, "number": number}
	if before != "" {
		vars["before"] = before
	}
	var page gqlThreads
	err := c.do(ctx, k, func(ctx context.Context, _ int) (*github.Response, error) {
		page = gqlThreads{}
		req, err := c.api.NewRequest(http.MethodPost, c.graphql, map[string]any{"query": threadsQuery, "variables": vars})
		if err != nil {
			return nil, err
		}
		return c.api.Do(ctx, req, &page)
	})
	switch {
	case err != nil:
		return page, err
	case len(page.Errors) > 0 && page.Errors[0].Type != "NOT_FOUND":
		return page, &forge.Error{Op: k.what, Kind: forge.ErrForbidden, Said: forge.Said(page.Errors[0].Message), Next: c.fill("give the token the permission `{needs}` in {web}", k)}
	case page.Data.Repository.PullRequest == nil:
		return page, &forge.Error{Op: k.what, Kind: forge.ErrNotFound, Said: "there is no such pull request", Next: k.missing}
	}
	return page, nil
}

func (t gqlThread) thread() forge.Thread {
	said := t.Comments.Nodes
	if first := t.First.Nodes; len(first) > 0 && first[0].URL != said[0].URL {
		said = append(slices.Clone(first), said...)
	}
	out := forge.Thread{ID: t.ID, Path: t.Path, Line: t.Line, Hunk: said[0].DiffHunk, Resolved: t.IsResolved}
	for _, m := range said {
		out.Comments = append(out.Comments, m.comment())
	}
	out.First = out.Comments[0].ID
	return out
}

// comment: the id that REST takes is the one in the address; GraphQL's databaseId has 32 bits and the ids have outgrown them.
func (m gqlComment) comment() forge.Comment {
	_, digits, _ := strings.Cut(m.URL, "#discussion_r")
	id, _ := strconv.ParseInt(digits, 10, 64)
	out := forge.Comment{ID: id, Body: m.Body, CreatedAt: m.CreatedAt, URL: m.URL}
	if a := m.Author; a != nil {
		login := a.Login
		if a.Kind == "Bot" && !strings.HasSuffix(login, "[bot]") {
			login += "[bot]" // GraphQL leaves out what REST writes
		}
		out.Author = forge.User{Login: login, ID: a.DatabaseID, Bot: isBot(login, a.Kind)}
	}
	return out
}

// AnswerThread replies to a thread's first comment. After a lost answer it looks for its own words first.
func (c *Client) AnswerThread(ctx context.Context, number int, t forge.Thread, body string) error {
	k := call{what: c.in("answer a review thread of " + hash(number)), needs: permPulls, missing: "the comment was deleted"}
	if err := c.fits(k, "comment", body); err != nil {
		return err
	}
	if t.First == 0 {
		return &forge.Error{Op: k.what, Kind: forge.ErrInvalid, Said: "the thread has no comment that could be answered"}
	}
	return c.do(ctx, k, func(ctx context.Context, attempt int) (*github.Response, error) {
		if attempt > 0 {
			if said, err := c.saidInThread(ctx, number, t.ID, body); said || err != nil {
				return nil, err
			}
		}
		// The library's own call goes to another path, whose description wants a commit and a path as well.
		path := fmt.Sprintf("repos/%s/%s/pulls/%d/comments/%d/replies", c.owner, c.repo, number, t.First)
		req, err := c.api.NewRequest(http.MethodPost, path, map[string]string{"body": body})
		if err != nil {
			return nil, err
		}
		return c.api.Do(ctx, req, nil)
	})
}

func (c *Client) saidInThread(ctx context.Context, number int, id, body string) (bool, error) {
	threads, err := c.Threads(ctx, number)
	if err != nil {
		return false, err
	}
	for _, t := range threads {
		for _, m := range t.Comments {
			if t.ID == id && m.Body == body {
				return true, nil
			}
		}
	}
	return false, nil
}

// Reviews implements forge.ReviewReader.
func (c *Client) Reviews(ctx context.Context, number int) ([]forge.Review, error) {
	k := call{what: c.in("read the reviews of " + hash(number)), needs: permPullsRead, missing: "check the pull request number"}
	var out []forge.Review
	opt := &github.ListOptions{Page: 1, PerPage: perPage}
	for opt.Page != 0 {
		var page []*github.PullRequestReview
		next := 0
		err := c.do(ctx, k, func(ctx context.Context, _ int) (resp *github.Response, err error) {
			page, resp, err = c.api.PullRequests.ListReviews(ctx, c.owner, c.repo, number, opt)
			if err == nil {
				next = resp.NextPage
				if skip := resp.LastPage - maxListPages; opt.Page == 1 && skip > 0 { // the newest stand on the last pages
					page, next = nil, skip+1
				}
			}
			return resp, err
		})
		if err != nil {
			return nil, err
		}
		for _, r := range page {
			out = append(out, review(r))
		}
		opt.Page = next
	}
	return out, nil
}

// Review implements forge.ReviewReader.
func (c *Client) Review(ctx context.Context, number int, id int64) (forge.Review, error) {
	k := call{what: c.in("read a review of " + hash(number)), needs: permPullsRead, missing: "the review is gone"}
	var r *github.PullRequestReview
	err := c.do(ctx, k, func(ctx context.Context, _ int) (resp *github.Response, err error) {
		r, resp, err = c.api.PullRequests.GetReview(ctx, c.owner, c.repo, number, id)
		return resp, err
	})
	if err != nil {
		return forge.Review{}, err
	}
	return review(r), nil
}

func review(r *github.PullRequestReview) forge.Review {
	return forge.Review{ID: r.GetID(), State: strings.ToLower(r.GetState()), Body: r.GetBody(), Author: user(r.User), At: r.GetSubmittedAt().Time}
}
