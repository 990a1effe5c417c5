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

var _ forge.ThreadTalker = (*Client)(nil)

// Only GraphQL says which threads are resolved. Both questions ask from the newest back: however much is written, it is the oldest that is
// left out. Of each thread the first comment is asked for too, which an answer names.
// https://docs.github.com/graphql/reference/objects#pullrequestreviewthread
const (
	threadsQuery = `query($owner:String!,$name:String!,$number:Int!,$before:String){repository(owner:$owner,name:$name){pullRequest(number:$number){` +
		`reviewThreads(last:50,before:$before){pageInfo{hasPreviousPage startCursor} nodes{id isResolved path line ` +
		`first:comments(first:1){nodes{...said}} comments(last:50){pageInfo{hasPreviousPage startCursor} nodes{...said}}}}}}}` + saidFragment
	saidQuery = `query($id:ID!,$before:String){node(id:$id){... on PullRequestReviewThread{` +
		`comments(last:50,before:$before){pageInfo{hasPreviousPage startCursor} nodes{...said}}}}}` + saidFragment
	saidFragment = `fragment said on PullRequestReviewComment{url body createdAt diffHunk author{__typename login ... on User{databaseId} ... on Bot{databaseId}}}`
)

// Bounds of the calls for one pull request, of which outsiders can write as much as they like.
const (
	maxThreadPages = 200 // threads, resolved ones too, 50 a page
	maxSaidPages   = 200 // older comments of all of them, 50 a page
)

type gqlPage struct {
	HasPreviousPage bool   `json:"hasPreviousPage"`
	StartCursor     string `json:"startCursor"`
}

type gqlThread struct {
	ID         string  `json:"id"`
	IsResolved bool    `json:"isResolved"`
	Path       string  `json:"path"`
	Line       int     `json:"line"` // null where the line is gone
	First      gqlSaid `json:"first"`
	Comments   gqlSaid `json:"comments"`
}

type gqlSaid struct {
	PageInfo gqlPage      `json:"pageInfo"`
	Nodes    []gqlComment `json:"nodes"` // oldest first, whichever way they are asked for
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
	PageInfo gqlPage     `json:"pageInfo"`
	Nodes    []gqlThread `json:"nodes"`
}

// threadReader is one reading of a pull request's threads.
type threadReader struct {
	c       *Client
	k       call
	number  int
	answers func(forge.Comment) bool
	spare   int // pages of older comments that may still be read
}

// Threads implements forge.ThreadTalker.
func (c *Client) Threads(ctx context.Context, number int, answers func(forge.Comment) bool) (forge.Newest[forge.Thread], error) {
	k := call{what: c.in("read the review threads of " + hash(number)), needs: permPullsRead, missing: "check the pull request number"}
	r := &threadReader{c: c, k: k, number: number, answers: answers, spare: maxSaidPages}
	out, err := r.read(ctx)
	slices.Reverse(out.All)
	return out, err
}

// read gives them newest first.
func (r *threadReader) read(ctx context.Context) (out forge.Newest[forge.Thread], err error) {
	open, page := 0, gqlThreads{}
	for range maxThreadPages {
		if page, err = r.page(ctx, page.PageInfo.StartCursor); err != nil {
			return forge.Newest[forge.Thread]{}, err
		}
		for _, t := range slices.Backward(page.Nodes) {
			if len(t.First.Nodes) == 0 || len(t.Comments.Nodes) == 0 {
				continue
			}
			if !t.IsResolved {
				if open++; open > forge.MaxThreads {
					out.Cut = true
					return out, nil
				}
			}
			whole, err := r.thread(ctx, t)
			if err != nil {
				return forge.Newest[forge.Thread]{}, err
			}
			out.All = append(out.All, whole)
		}
		if !page.PageInfo.HasPreviousPage {
			return out, nil
		}
	}
	out.Cut = true
	return out, nil
}

func (r *threadReader) page(ctx context.Context, before string) (gqlThreads, error) {
	vars := map[string]any{"owner": r.c.owner, "name": r.c.repo, "number": r.number}
	if before != "" {
		vars["before"] = before
	}
	found, err := ask[struct {
		Repository struct {
			PullRequest *struct {
				ReviewThreads gqlThreads `json:"reviewThreads"`
			} `json:"pullRequest"`
		} `json:"repository"`
	}](ctx, r.c, r.k, threadsQuery, vars)
	if err != nil {
		return gqlThreads{}, err
	}
	if p := found.Repository.PullRequest; p != nil {
		return p.ReviewThreads, nil
	}
	return gqlThreads{}, &forge.Error{Op: r.k.what, Kind: forge.ErrNotFound, Said: "there is no such pull request", Next: r.k.missing}
}

// thread reads an open thread back until somebody answers, or to its beginning.
func (r *threadReader) thread(ctx context.Context, t gqlThread) (forge.Thread, error) {
	part := t.Comments
	said := comments(part.Nodes)
	for part.PageInfo.HasPreviousPage && !t.IsResolved && !slices.ContainsFunc(said, r.answers) && len(said) < forge.MaxThreadComments && r.spare > 0 {
		r.spare--
		var err error
		if part, err = r.c.said(ctx, r.k, t.ID, part.PageInfo.StartCursor); err != nil {
			return forge.Thread{}, err
		}
		said = append(comments(part.Nodes), said...)
	}
	first := t.First.Nodes[0]
	if began := first.comment(); began.ID != said[0].ID {
		said = append([]forge.Comment{began}, said...)
	}
	return forge.Thread{ID: t.ID, Path: t.Path, Line: t.Line, Hunk: first.DiffHunk, Resolved: t.IsResolved, First: said[0].ID, Comments: said, Cut: part.PageInfo.HasPreviousPage}, nil
}

// said asks for comments of a thread, the newest ones or those before a cursor.
func (c *Client) said(ctx context.Context, k call, thread, before string) (gqlSaid, error) {
	vars := map[string]any{"id": thread}
	if before != "" {
		vars["before"] = before
	}
	found, err := ask[struct {
		Node *struct {
			Comments gqlSaid `json:"comments"`
		} `json:"node"`
	}](ctx, c, k, saidQuery, vars)
	if err != nil {
		return gqlSaid{}, err
	}
	if found.Node == nil {
		return gqlSaid{}, &forge.Error{Op: k.what, Kind: forge.ErrNotFound, Said: "one of its threads is gone by now", Next: "ask again"}
	}
	return found.Node.Comments, nil
}

// ask puts one question. GraphQL answers 200 to what it refuses, with the reason in the body; what is not there is null in the answer.
func ask[T any](ctx context.Context, c *Client, k call, query string, vars map[string]any) (T, error) {
	type answer struct {
		Data   T `json:"data"`
		Errors []struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"errors"`
	}
	var got answer
	err := c.do(ctx, k, func(ctx context.Context, _ int) (*github.Response, error) {
		got = answer{}
		req, err := c.api.NewRequest(http.MethodPost, c.graphql, map[string]any{"query": query, "variables": vars})
		if err != nil {
			return nil, err
		}
		return c.api.Do(ctx, req, &got)
	})
	if err != nil || len(got.Errors) == 0 {
		return got.Data, err
	}
	said := forge.Said(got.Errors[0].Message)
	switch got.Errors[0].Type {
	case "NOT_FOUND":
	case "RATE_LIMITED":
		err = &forge.Error{Op: k.what, Kind: forge.ErrRateLimited, Said: said, Next: "run again in an hour: GitHub counts GraphQL calls by the hour"}
	default:
		err = &forge.Error{Op: k.what, Kind: forge.ErrForbidden, Said: said, Next: c.fill("give the token the permission `{needs}` in {web}", k)}
	}
	return got.Data, err
}

func comments(all []gqlComment) []forge.Comment {
	var out []forge.Comment
	for _, m := range all {
		out = append(out, m.comment())
	}
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
			last, err := c.said(ctx, k, t.ID, "")
			if err != nil || slices.ContainsFunc(last.Nodes, func(m gqlComment) bool { return m.Body == body }) {
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
