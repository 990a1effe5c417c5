package forgetest

import (
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

type label struct {
	id          int64
	name, color string
}

// issue is an issue, or with pull set a pull request: GitHub keeps both in one sequence.
type issue struct {
	id               int64
	number           int
	title, body      string
	author           *account
	state            string
	locked           bool
	deleted          bool
	moved            string // URL of the issue's new home
	labels           []string
	assignees        []string
	created, updated time.Time
	closed           time.Time
	comments         []*comment
	events           []*event
	reactions        []reaction
	pull             *pull
}

type comment struct {
	id               int64
	body             string
	author           *account
	created, updated time.Time
	reactions        []reaction
}

type event struct {
	id          int64
	name, label string
	actor       *account
	at          time.Time
}

type reaction struct {
	id      int64
	content string
	by      *account
}

// maxBody is GitHub's limit for issue, comment and pull request bodies, in characters.
const maxBody = 65536

func (g *GitHub) issueRoutes() []route {
	return []route{
		{"GET /repos/{owner}/{repo}/issues", "issues", "read", listIssues},
		{"GET /repos/{owner}/{repo}/issues/{number}", "issues|pull_requests", "read", getIssue},
		{"POST /repos/{owner}/{repo}/issues/{number}/labels", "issues|pull_requests", "write", addIssueLabels},
		{"DELETE /repos/{owner}/{repo}/issues/{number}/labels/{name}", "issues|pull_requests", "write", removeIssueLabel},
		{"POST /repos/{owner}/{repo}/issues/{number}/comments", "issues|pull_requests", "write", createComment},
		{"GET /repos/{owner}/{repo}/issues/{number}/{part}", "issues|pull_requests", "read", getIssuePart},
		{"PATCH /repos/{owner}/{repo}/issues/comments/{id}", "issues|pull_requests", "write", editComment},
		{"POST /repos/{owner}/{repo}/issues/{number}/reactions", "issues|pull_requests", "write", reactIssue},
		{"POST /repos/{owner}/{repo}/issues/comments/{id}/reactions", "issues|pull_requests", "write", reactComment},
		{"POST /repos/{owner}/{repo}/issues/{number}/assignees", "issues|pull_requests", "write", addAssignees},
		{"GET /repos/{owner}/{repo}/labels/{name}", "issues|pull_requests", "read", getLabel},
		{"POST /repos/{owner}/{repo}/labels", "issues|pull_requests", "write", createLabel},
	}
}

// getIssuePart tells apart what net/http's patterns cannot: /issues/comments/9 and /issues/9/comments.
func getIssuePart(c *call) (int, any, error) {
	if c.r.PathValue("number") == "comments" {
		c.r.SetPathValue("id", c.r.PathValue("part"))
		return getComment(c)
	}
	switch c.r.PathValue("part") {
	case "events", "timeline":
		return listEvents(c)
	case "labels":
		return listIssueLabels(c)
	case "comments":
		return listComments(c)
	}
	return 0, nil, notFound()
}

// issue of the path, or GitHub's refusal.
func (c *call) issue() (*issue, error) {
	is := c.g.issues[c.number()]
	switch {
	case is == nil:
		return nil, notFound()
	case is.deleted:
		return nil, refuse(http.StatusGone, "This issue was deleted")
	case c.g.issuesOff && is.pull == nil:
		return nil, refuse(http.StatusGone, "Issues are disabled for this repo")
	}
	return is, nil
}

func getIssue(c *call) (int, any, error) {
	is, err := c.issue()
	if err != nil {
		return 0, nil, err
	}
	o := c.g.issueJSON(is)
	if is.moved != "" { // what the client sees after it followed the redirect
		o["html_url"] = is.moved
		o["repository_url"] = c.g.APIURL() + "/repos" + strings.TrimPrefix(is.moved[:strings.LastIndex(is.moved, "/issues/")], c.g.url)
	}
	return http.StatusOK, o, nil
}

func listEvents(c *call) (int, any, error) {
	is, err := c.issue()
	if err != nil {
		return 0, nil, err
	}
	out := []obj{}
	for _, e := range is.events {
		out = append(out, c.g.eventJSON(e))
	}
	return http.StatusOK, page(c, out), nil
}

func listIssueLabels(c *call) (int, any, error) {
	is, err := c.issue()
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, page(c, c.g.labelsJSON(is.labels)), nil
}

func addIssueLabels(c *call) (int, any, error) {
	is, err := c.issue()
	if err != nil {
		return 0, nil, err
	}
	if err := c.mayWrite("triage"); err != nil {
		return 0, nil, err
	}
	var in struct {
		Labels []string `json:"labels"`
	}
	if err := c.decode(&in); err != nil {
		return 0, nil, err
	}
	for _, name := range in.Labels {
		if name == "" || utf8.RuneCountInString(name) > 50 {
			return 0, nil, invalid("Label", "name", "invalid", "")
		}
		c.g.addLabel(is, name, c.g.user(c.token.Login), c.token.Job)
	}
	return http.StatusOK, c.g.labelsJSON(is.labels), nil
}

// addLabel changes the issue, writes the event and tells hooks and workflows.
func (g *GitHub) addLabel(is *issue, name string, by *account, fromJob bool) *event {
	l := g.label(name)
	if l == nil {
		l = &label{id: g.id(), name: name, color: "ededed"}
		g.labels = append(g.labels, l)
	}
	if slices.Contains(is.labels, l.name) {
		return nil
	}
	is.labels = append(is.labels, l.name)
	e := g.addEvent(is, "labeled", l.name, by)
	g.emitLabeled(is, l, by, fromJob)
	return e
}

func (g *GitHub) addEvent(is *issue, name, label string, by *account) *event {
	e := &event{id: g.id(), name: name, label: label, actor: by, at: g.now()}
	is.events = append(is.events, e)
	is.updated = e.at
	return e
}

func removeIssueLabel(c *call) (int, any, error) {
	is, err := c.issue()
	if err != nil {
		return 0, nil, err
	}
	if err := c.mayWrite("triage"); err != nil {
		return 0, nil, err
	}
	i := slices.IndexFunc(is.labels, func(l string) bool { return strings.EqualFold(l, c.r.PathValue("name")) })
	if i < 0 {
		return 0, nil, refuse(http.StatusNotFound, "Label does not exist")
	}
	name := is.labels[i]
	is.labels = slices.Delete(is.labels, i, i+1)
	c.g.addEvent(is, "unlabeled", name, c.g.user(c.token.Login))
	return http.StatusOK, c.g.labelsJSON(is.labels), nil
}

// label by name; names are compared without case, as GitHub does.
func (g *GitHub) label(name string) *label {
	for _, l := range g.labels {
		if strings.EqualFold(l.name, name) {
			return l
		}
	}
	return nil
}

func getLabel(c *call) (int, any, error) {
	l := c.g.label(c.r.PathValue("name"))
	if l == nil {
		return 0, nil, notFound()
	}
	return http.StatusOK, c.g.labelJSON(l), nil
}

func createLabel(c *call) (int, any, error) {
	if err := c.mayWrite("write"); err != nil {
		return 0, nil, err
	}
	var in struct {
		Name  string `json:"name"`
		Color string `json:"color"`
	}
	if err := c.decode(&in); err != nil {
		return 0, nil, err
	}
	if in.Name == "" {
		return 0, nil, invalid("Label", "name", "missing_field", "")
	}
	if c.g.label(in.Name) != nil {
		return 0, nil, invalid("Label", "name", "already_exists", "")
	}
	l := &label{id: c.g.id(), name: in.Name, color: or(in.Color, "ededed")}
	c.g.labels = append(c.g.labels, l)
	return http.StatusCreated, c.g.labelJSON(l), nil
}

func (g *GitHub) openIssues() int {
	n := 0
	for _, is := range g.issues {
		if is.state == "open" {
			n++
		}
	}
	return n
}
