package forgetest

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

func (g *GitHub) reviewJSON(is *issue, r *review) obj {
	html := fmt.Sprintf("%s#pullrequestreview-%d", g.issueURL(is), r.id)
	pull := fmt.Sprintf("%s/pulls/%d", g.repoURL(), is.number)
	return obj{
		"id": r.id, "node_id": nodeID("PRR_", r.id), "user": g.userJSON(r.author), "body": r.body, "state": strings.ToUpper(r.state), "html_url": html,
		"pull_request_url": pull, "_links": obj{"html": href(html), "pull_request": href(pull)}, "submitted_at": stampOf(r.at),
		"commit_id": r.commit, "author_association": g.association(r.author),
	}
}

func listReviews(c *call) (int, any, error) {
	is, err := c.pullOf()
	if err != nil {
		return 0, nil, err
	}
	out := []obj{}
	for _, r := range page(c, is.pull.reviews) {
		out = append(out, c.g.reviewJSON(is, r))
	}
	return http.StatusOK, out, nil
}

func getReview(c *call) (int, any, error) {
	is, err := c.pullOf()
	if err != nil {
		return 0, nil, err
	}
	for _, r := range is.pull.reviews {
		if fmt.Sprint(r.id) == c.r.PathValue("id") {
			return http.StatusOK, c.g.reviewJSON(is, r), nil
		}
	}
	return 0, nil, notFound()
}

// replyReview answers a thread; only a first comment can be answered.
func replyReview(c *call) (int, any, error) {
	is, err := c.pullOf()
	if err != nil {
		return 0, nil, err
	}
	var in struct {
		Body string `json:"body"`
	}
	if err := c.decode(&in); err != nil {
		return 0, nil, err
	}
	id, _ := strconv.ParseInt(c.r.PathValue("id"), 10, 64)
	t := threadWith(is, id)
	switch {
	case t == nil || t.comments[0].id != id:
		return 0, nil, notFound()
	case in.Body == "":
		return 0, nil, invalid("PullRequestReviewComment", "body", "missing_field", "")
	case utf8.RuneCountInString(in.Body) > maxBody:
		return 0, nil, invalid("PullRequestReviewComment", "body", "custom", fmt.Sprintf("body is too long (maximum is %d characters)", maxBody))
	}
	m := c.g.said(c.g.user(c.token.Login), in.Body)
	t.comments = append(t.comments, m)
	return http.StatusCreated, c.g.reviewCommentJSON(is, t, m), nil
}

func (g *GitHub) reviewCommentJSON(is *issue, t *thread, m *comment) obj {
	self := fmt.Sprintf("%s/pulls/comments/%d", g.repoURL(), m.id)
	pull := fmt.Sprintf("%s/pulls/%d", g.repoURL(), is.number)
	return obj{
		"url": self, "pull_request_review_id": t.review, "id": m.id, "node_id": nodeID("PRRC_", m.id), "diff_hunk": t.hunk, "path": t.path,
		"position": t.line, "original_position": t.line, "commit_id": t.commit, "original_commit_id": t.commit, "in_reply_to_id": t.comments[0].id,
		"user": g.userJSON(m.author), "body": m.body, "created_at": stampOf(m.created), "updated_at": stampOf(m.updated),
		"html_url": g.discussionURL(is, m), "pull_request_url": pull, "author_association": g.association(m.author),
		"_links":     obj{"self": href(self), "html": href(g.discussionURL(is, m)), "pull_request": href(pull)},
		"start_line": nil, "original_start_line": nil, "start_side": nil, "line": t.line, "original_line": t.line, "side": "RIGHT", "subject_type": "line",
		"reactions": g.reactionsJSON(self, m.reactions),
	}
}

func (g *GitHub) discussionURL(is *issue, m *comment) string {
	return fmt.Sprintf("%s#discussion_r%d", g.issueURL(is), m.id)
}

type threadsAsked struct {
	Owner, Name, Before, ID string
	Number                  int
}

// What the questions ask for, and reviewThreads and threadComments answer.
const (
	gqlPerPage    = 50
	askedThreads  = "reviewThreads(last:50,before:$before){pageInfo{hasPreviousPage startCursor}"
	askedComments = "first:comments(first:1){nodes{...said}} comments(last:50){pageInfo{hasPreviousPage startCursor} nodes{...said}}"
	askedOlder    = "node(id:$id){... on PullRequestReviewThread{comments(last:50,before:$before){pageInfo{hasPreviousPage startCursor} nodes{...said}}}}"
)

// gqlLast is the page of a connection before a cursor, from the newest back, as "last" asks for it.
func gqlLast[T any](all []T, before string) (page []T, info obj) {
	to := len(all)
	if n, err := strconv.Atoi(before); err == nil {
		to = min(n, to)
	}
	from := max(0, to-gqlPerPage)
	return all[from:to], obj{"hasPreviousPage": from > 0, "startCursor": fmt.Sprint(from)}
}

func gqlRefused(data obj, kind, text string) (int, any, error) {
	return http.StatusOK, obj{"data": data, "errors": []obj{{"type": kind, "message": text}}}, nil
}

// reviewThreads is GraphQL's PullRequest.reviewThreads from the newest back. Its bots have logins without "[bot]".
func (c *call) reviewThreads(q threadsAsked) (int, any, error) {
	g := c.g
	if this, _ := g.isThis(q.Owner, q.Name); !this || !c.token.may("pull_requests", "read") {
		return gqlRefused(obj{"repository": nil}, "FORBIDDEN", "Resource not accessible by integration")
	}
	is := g.issues[q.Number]
	if is == nil || is.pull == nil {
		return gqlRefused(obj{"repository": obj{"pullRequest": nil}}, "NOT_FOUND", fmt.Sprintf("Could not resolve to a PullRequest with the number of %d.", q.Number))
	}
	threads, info := gqlLast(is.pull.threads, q.Before)
	nodes := []obj{}
	for _, t := range threads {
		nodes = append(nodes, g.threadNode(is, t))
	}
	return http.StatusOK, obj{"data": obj{"repository": obj{"pullRequest": obj{"reviewThreads": obj{"pageInfo": info, "nodes": nodes}}}}}, nil
}

// threadComments is GraphQL's PullRequestReviewThread.comments from the newest back.
func (c *call) threadComments(q threadsAsked) (int, any, error) {
	if !c.token.may("pull_requests", "read") {
		return gqlRefused(obj{"node": nil}, "FORBIDDEN", "Resource not accessible by integration")
	}
	for _, is := range c.g.issues {
		if is.pull == nil {
			continue
		}
		for _, t := range is.pull.threads {
			if nodeID("PRRT_", t.id) == q.ID {
				return http.StatusOK, obj{"data": obj{"node": obj{"comments": c.g.commentNodes(is, t, q.Before)}}}, nil
			}
		}
	}
	return gqlRefused(obj{"node": nil}, "NOT_FOUND", fmt.Sprintf("Could not resolve to a node with the global id of '%s'", q.ID))
}

func (g *GitHub) threadNode(is *issue, t *thread) obj {
	return obj{"id": nodeID("PRRT_", t.id), "isResolved": t.resolved, "path": t.path, "line": t.line,
		"first": obj{"nodes": []obj{g.commentNode(is, t, t.comments[0])}}, "comments": g.commentNodes(is, t, "")}
}

func (g *GitHub) commentNodes(is *issue, t *thread, before string) obj {
	comments, info := gqlLast(t.comments, before)
	nodes := []obj{}
	for _, m := range comments {
		nodes = append(nodes, g.commentNode(is, t, m))
	}
	return obj{"pageInfo": info, "nodes": nodes}
}

func (g *GitHub) commentNode(is *issue, t *thread, m *comment) obj {
	login, _ := strings.CutSuffix(m.author.login, "[bot]")
	return obj{
		"url": g.discussionURL(is, m), "body": m.body, "createdAt": stampOf(m.created), "diffHunk": t.hunk,
		"author": obj{"__typename": m.author.kind, "login": login, "databaseId": m.author.id},
	}
}

// ReviewPull submits a review as a person does: state is "changes_requested", "approved" or "commented". Hooks hear of it, and
// workflows of the pull request's merge commit.
func (g *GitHub) ReviewPull(number int, author, state, body string, lines ...ReviewLine) (int64, error) {
	g.state.Lock()
	defer g.state.Unlock()
	is := g.issues[number]
	if is == nil || is.pull == nil {
		return 0, fmt.Errorf("review pull request %d: there is no such pull request", number)
	}
	r := &review{id: g.id(), state: state, body: body, author: g.addIfNew(author), commit: g.headNow(is), at: g.now()}
	is.pull.reviews = append(is.pull.reviews, r)
	g.addThreads(is, r.commit, r.id, r.author, lines)
	g.emitReview("submitted", is, r)
	return r.id, nil
}

// DismissReview takes a review's request back.
func (g *GitHub) DismissReview(number int, id int64) error {
	return g.onIssue(number, func(is *issue) error {
		i := slices.IndexFunc(is.pull.reviews, func(r *review) bool { return r.id == id })
		if i < 0 {
			return fmt.Errorf("dismiss review %d: there is no such review", id)
		}
		is.pull.reviews[i].state = "dismissed"
		return nil
	})
}

// emitReview tells the hook and the workflows. A workflow runs on refs/pull/N/merge, its file as it is there.
func (g *GitHub) emitReview(action string, is *issue, r *review) {
	o := g.reviewJSON(is, r)
	o["user"], o["state"], o["updated_at"] = g.hookUserJSON(r.author), r.state, stampOf(r.at)
	p := g.withInstallation(obj{"action": action, "review": o, "pull_request": g.pullJSON(is), "repository": g.hookRepoJSON(), "sender": g.hookUserJSON(r.author)})
	g.deliver("pull_request_review", action, p)
	if is.pull.fork || !g.opt.WorkflowTriggers {
		return // a fork's workflow gets no secrets and a token that reads
	}
	ref := fmt.Sprintf("refs/pull/%d/merge", is.number)
	if sha, err := g.repo.merge(context.Background(), ref, is.pull.base, r.commit); err == nil {
		g.startWorkflowsOn(ref, sha, "pull_request_review", action, r.author.login, p)
	}
}

// ReplyInThread writes into the n-th thread as a person does.
func (g *GitHub) ReplyInThread(number, n int, author, body string) error {
	g.state.Lock()
	defer g.state.Unlock()
	return onThread(g.issues[number], n, func(t *thread) { t.comments = append(t.comments, g.said(g.addIfNew(author), body)) })
}

// ResolveThread marks the n-th thread as settled.
func (g *GitHub) ResolveThread(number, n int) error {
	g.state.Lock()
	defer g.state.Unlock()
	return onThread(g.issues[number], n, func(t *thread) { t.resolved = true })
}

// Threads of a pull request, oldest first.
func (g *GitHub) Threads(number int) []Thread {
	g.state.Lock()
	defer g.state.Unlock()
	return threadsOf(g.issues[number])
}
