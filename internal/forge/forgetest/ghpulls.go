package forgetest

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sort"
	"strings"
	"time"
	"unicode/utf8"
)

// pull is what a pull request has beyond its issue.
type pull struct {
	id         int64
	head, base string
	headSHA    string // fixed when the branch is gone
	baseSHA    string
	draft      bool
	merged     time.Time
	reviewers  []string
	fork       bool // the head lives in a fork
	reviews    []*review
	threads    []*thread
}

func (g *GitHub) pullRoutes() []route {
	return []route{
		{"GET /repos/{owner}/{repo}/pulls", "pull_requests", "read", listPulls},
		{"POST /repos/{owner}/{repo}/pulls", "pull_requests", "write", createPull},
		{"GET /repos/{owner}/{repo}/pulls/{number}", "pull_requests", "read", getPull},
		{"PATCH /repos/{owner}/{repo}/pulls/{number}", "pull_requests", "write", editPull},
		{"POST /repos/{owner}/{repo}/pulls/{number}/requested_reviewers", "pull_requests", "write", requestReviewers},
		{"GET /repos/{owner}/{repo}/pulls/{number}/reviews", "pull_requests", "read", listReviews},
		{"GET /repos/{owner}/{repo}/pulls/{number}/reviews/{id}", "pull_requests", "read", getReview},
		{"POST /repos/{owner}/{repo}/pulls/{number}/comments/{id}/replies", "pull_requests", "write", replyReview},
	}
}

func listPulls(c *call) (int, any, error) {
	q := c.r.URL.Query()
	state := or(q.Get("state"), "open")
	owner, head, filtered := strings.Cut(q.Get("head"), ":") // without a colon GitHub ignores the filter
	var out []obj
	for _, is := range c.g.sortedIssues() {
		p := is.pull
		switch {
		case p == nil, state != "all" && is.state != state, q.Get("base") != "" && p.base != q.Get("base"):
		case filtered && (p.head != head || !strings.EqualFold(owner, c.g.opt.Owner)):
		default:
			out = append(out, c.g.pullJSON(is))
		}
	}
	slices.Reverse(out) // newest first
	if out == nil {
		out = []obj{}
	}
	return http.StatusOK, page(c, out), nil
}

func (g *GitHub) sortedIssues() []*issue {
	all := make([]*issue, 0, len(g.issues))
	for _, is := range g.issues {
		all = append(all, is)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].number < all[j].number })
	return all
}

func createPull(c *call) (int, any, error) {
	var in struct {
		Title, Head, Base, Body string
		Draft                   bool
	}
	if err := c.decode(&in); err != nil {
		return 0, nil, err
	}
	_, head, ok := strings.Cut(in.Head, ":")
	if !ok {
		head = in.Head
	}
	baseSHA, headSHA, err := c.checkPull(in.Title, in.Body, head, in.Base, in.Draft)
	if err != nil {
		return 0, nil, err
	}
	g := c.g
	is := g.newIssue(g.user(c.token.Login), in.Title, in.Body)
	is.pull = &pull{id: g.id(), head: head, base: in.Base, draft: in.Draft, headSHA: headSHA, baseSHA: baseSHA}
	o := g.fullPullJSON(is)
	c.w.Header().Set("Location", o["url"].(string))
	return http.StatusCreated, o, nil
}

// checkPull refuses in GitHub's order and words.
func (c *call) checkPull(title, body, head, base string, draft bool) (baseSHA, headSHA string, err error) {
	g := c.g
	if c.token.Job && !g.actionsPRs {
		return "", "", refuse(http.StatusForbidden, "GitHub Actions is not permitted to create or approve pull requests.")
	}
	if err := c.mayWrite("write"); err != nil {
		return "", "", err
	}
	if baseSHA, err = g.repo.branch(base); err != nil {
		return "", "", invalid("PullRequest", "base", "invalid", "")
	}
	if headSHA, err = g.repo.branch(head); err != nil {
		return "", "", invalid("PullRequest", "head", "invalid", "")
	}
	for _, is := range g.issues {
		if is.pull != nil && is.state == "open" && is.pull.head == head && is.pull.base == base && !is.pull.fork {
			return "", "", invalid("PullRequest", "", "custom", fmt.Sprintf("A pull request already exists for %s:%s.", g.opt.Owner, head))
		}
	}
	if draft && g.draftsOff {
		return "", "", refuse(http.StatusUnprocessableEntity, "Draft pull requests are not supported in this repository.")
	}
	if n, err := g.repo.ahead(context.Background(), baseSHA, headSHA); err != nil || n == "0" {
		return "", "", invalid("PullRequest", "", "custom", fmt.Sprintf("No commits between %s and %s", base, head))
	}
	if title == "" {
		return "", "", invalid("PullRequest", "title", "missing_field", "")
	}
	if utf8.RuneCountInString(body) > maxBody {
		return "", "", invalid("PullRequest", "body", "custom", fmt.Sprintf("body is too long (maximum is %d characters)", maxBody))
	}
	return baseSHA, headSHA, nil
}

// pullOf the path.
func (c *call) pullOf() (*issue, error) {
	is := c.g.issues[c.number()]
	if is == nil || is.pull == nil {
		return nil, notFound()
	}
	return is, nil
}

func getPull(c *call) (int, any, error) {
	is, err := c.pullOf()
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, c.g.fullPullJSON(is), nil
}

func editPull(c *call) (int, any, error) {
	is, err := c.pullOf()
	if err != nil {
		return 0, nil, err
	}
	if is.author.login != c.token.Login {
		if err := c.mayWrite("write"); err != nil {
			return 0, nil, err
		}
	}
	var in struct {
		Title, Body, State *string
	}
	if err := c.decode(&in); err != nil {
		return 0, nil, err
	}
	if in.Body != nil && utf8.RuneCountInString(*in.Body) > maxBody {
		return 0, nil, invalid("PullRequest", "body", "custom", fmt.Sprintf("body is too long (maximum is %d characters)", maxBody))
	}
	set(&is.title, in.Title)
	set(&is.body, in.Body)
	set(&is.state, in.State)
	is.updated = c.g.now()
	return http.StatusOK, c.g.fullPullJSON(is), nil
}

func set(to *string, v *string) {
	if v != nil {
		*to = *v
	}
}

func requestReviewers(c *call) (int, any, error) {
	is, err := c.pullOf()
	if err != nil {
		return 0, nil, err
	}
	var in struct {
		Reviewers []string `json:"reviewers"`
	}
	if err := c.decode(&in); err != nil {
		return 0, nil, err
	}
	for _, login := range in.Reviewers {
		a := c.g.users[strings.ToLower(login)]
		if a == nil || a.role == "" {
			e := refuse(http.StatusUnprocessableEntity, "Reviews may only be requested from collaborators. One or more of the users or teams you specified is not a collaborator of the "+c.g.fullName()+" repository.")
			return 0, nil, e
		}
		if a == is.author {
			return 0, nil, refuse(http.StatusUnprocessableEntity, "Review cannot be requested from pull request author.")
		}
		if !slices.Contains(is.pull.reviewers, a.login) {
			is.pull.reviewers = append(is.pull.reviewers, a.login)
		}
	}
	return http.StatusCreated, c.g.pullJSON(is), nil
}

// headNow follows the branch while the pull request is open.
func (g *GitHub) headNow(is *issue) string {
	if is.state == "open" && !is.pull.fork {
		if id, err := g.repo.branch(is.pull.head); err == nil {
			is.pull.headSHA = id
		}
	}
	return is.pull.headSHA
}

// pullJSON is a pull request as lists show it.
func (g *GitHub) pullJSON(is *issue) obj {
	p, u := is.pull, fmt.Sprintf("%s/pulls/%d", g.repoURL(), is.number)
	issueURL := fmt.Sprintf("%s/issues/%d", g.repoURL(), is.number)
	head := g.headNow(is)
	o := g.issueJSON(is)
	for _, k := range []string{"comments", "repository_url", "labels_url", "events_url", "timeline_url", "reactions", "pull_request", "performed_via_github_app", "state_reason"} {
		delete(o, k)
	}
	statuses := g.repoURL() + "/statuses/" + head
	for k, v := range (obj{
		"id": p.id, "node_id": nodeID("PR_", p.id), "url": u, "issue_url": issueURL, "draft": p.draft,
		"diff_url": g.issueURL(is) + ".diff", "patch_url": g.issueURL(is) + ".patch", "commits_url": u + "/commits",
		"review_comments_url": u + "/comments", "review_comment_url": g.repoURL() + "/pulls/comments{/number}", "statuses_url": statuses,
		"merged_at": stampOrNil(p.merged), "merge_commit_sha": nil, "auto_merge": nil, "requested_teams": []obj{},
		"requested_reviewers": g.usersJSON(p.reviewers), "head": g.endJSON(p.head, head, p.fork), "base": g.endJSON(p.base, p.baseSHA, false),
		"_links": obj{"self": href(u), "html": href(g.issueURL(is)), "issue": href(issueURL), "comments": href(issueURL + "/comments"),
			"review_comments": href(u + "/comments"), "review_comment": href(g.repoURL() + "/pulls/comments{/number}"),
			"commits": href(u + "/commits"), "statuses": href(statuses)},
	}) {
		o[k] = v
	}
	return o
}

func href(u string) obj { return obj{"href": u} }

// endJSON is one end of a pull request.
func (g *GitHub) endJSON(branch, sha string, fork bool) obj {
	owner := g.user(g.opt.Owner)
	if fork {
		owner = g.user("forker")
	}
	return obj{"label": owner.login + ":" + branch, "ref": branch, "sha": sha, "user": g.userJSON(owner), "repo": g.headRepoJSON(fork)}
}

// headRepoJSON is the repository that a head lies in. The fork of a fork's head is another one of the same name.
func (g *GitHub) headRepoJSON(fork bool) obj {
	repo := g.repoJSON()
	if fork {
		owner := g.user("forker")
		repo["id"], repo["fork"], repo["owner"], repo["full_name"] = int64(501), true, g.userJSON(owner), owner.login+"/"+g.opt.Name
	}
	return repo
}

// fullPullJSON is the answer for one pull request, which has more.
func (g *GitHub) fullPullJSON(is *issue) obj {
	o := g.pullJSON(is)
	st := g.repo.stat(context.Background(), is.pull.baseSHA, is.pull.headSHA)
	for k, v := range (obj{
		"additions": st.added, "deletions": st.deleted, "changed_files": st.files, "commits": st.commits, "comments": len(is.comments), "review_comments": 0,
		"maintainer_can_modify": false, "mergeable": nil, "rebaseable": nil, "mergeable_state": "unknown",
		"merged": !is.pull.merged.IsZero(), "merged_by": nil,
	}) {
		o[k] = v
	}
	return o
}
