package forgetest

import (
	"net/http"
	"slices"
	"strings"
)

// emitClosed tells the hook that an issue or a pull request is over, as its author would have ended it.
func (g *GitHub) emitClosed(is *issue) {
	if is.pull == nil {
		g.deliver("issues", "closed", g.issuePayload("closed", is, is.author))
		return
	}
	g.deliver("pull_request", "closed", g.withInstallation(obj{
		"action": "closed", "number": is.number, "pull_request": g.pullJSON(is), "repository": g.hookRepoJSON(), "sender": g.hookUserJSON(is.author),
	}))
}

// listIssues filters by labels, all of which have to be there; pull requests are issues too.
func listIssues(c *call) (int, any, error) {
	q := c.r.URL.Query()
	out := []obj{}
	for _, is := range c.g.sortedIssues() {
		if state := or(q.Get("state"), "open"); is.deleted || is.moved != "" || state != "all" && is.state != state {
			continue
		}
		has := func(want string) bool {
			return slices.ContainsFunc(is.labels, func(l string) bool { return strings.EqualFold(l, want) })
		}
		if want := q.Get("labels"); want != "" && slices.ContainsFunc(strings.Split(want, ","), func(l string) bool { return !has(l) }) {
			continue
		}
		out = append(out, c.g.issueJSON(is))
	}
	if q.Get("direction") != "asc" {
		slices.Reverse(out)
	}
	return http.StatusOK, page(c, out), nil
}
