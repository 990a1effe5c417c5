package forgetest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"
)

const maxNote = 1000000

func (c *glCall) issue() (*issue, error) {
	is := c.g.issues[c.number("iid")]
	if is == nil || is.deleted {
		return nil, glRefuse(http.StatusNotFound, "404 Not found")
	}
	return is, nil
}

func (g *GitLab) issueJSON(is *issue) obj {
	moved := any(nil)
	if is.moved != "" {
		moved = is.id + 1
	}
	return obj{
		"id": is.id, "iid": is.number, "project_id": 4200, "title": is.title, "description": is.body, "state": glState(is.state),
		"created_at": stampOf(is.created), "updated_at": stampOf(is.updated), "closed_at": stampOrNil(is.closed), "labels": slices.Clone(is.labels),
		"author": g.userJSON(is.author), "assignees": g.usersJSON(is.assignees), "confidential": g.secret[is.number], "discussion_locked": is.locked,
		"issue_type": "issue", "web_url": g.issueURL(is), "moved_to_id": moved, "user_notes_count": len(is.comments),
	}
}

func (g *GitLab) usersJSON(logins []string) []obj {
	out := []obj{}
	for _, l := range logins {
		out = append(out, g.userJSON(g.user(l)))
	}
	return out
}

func glState(s string) string {
	if s == "open" {
		return "opened"
	}
	return s
}

func (g *GitLab) issueURL(is *issue) string {
	kind := "issues"
	if is.pull != nil {
		kind = "merge_requests"
	}
	return fmt.Sprintf("%s/-/%s/%d", g.webURL(), kind, is.number)
}

func glGetIssue(c *glCall) (int, any, error) {
	is, err := c.issue()
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, c.g.issueJSON(is), nil
}

func glEditIssue(c *glCall) (int, any, error) {
	is, err := c.issue()
	if err != nil {
		return 0, nil, err
	}
	var in struct {
		AddLabels    string `json:"add_labels"`
		RemoveLabels string `json:"remove_labels"`
	}
	if err := c.decode(&in); err != nil {
		return 0, nil, err
	}
	c.g.changeLabels(is, commas(in.AddLabels), commas(in.RemoveLabels), c.g.user(c.token.Login))
	return http.StatusOK, c.g.issueJSON(is), nil
}

func commas(s string) []string {
	var out []string
	for _, p := range strings.Split(s, ",") {
		if p = strings.TrimSpace(p); p != "" {
			out = append(out, p)
		}
	}
	return out
}

// changeLabels is one change, one hook, as on GitLab: the hook tells before and after.
func (g *GitLab) changeLabels(is *issue, add, remove []string, by *account) {
	before := slices.Clone(is.labels)
	for _, name := range remove {
		if i := slices.Index(is.labels, name); i >= 0 {
			is.labels = slices.Delete(is.labels, i, i+1)
			g.addEvent(is, "unlabeled", name, by)
		}
	}
	for _, name := range add {
		if !slices.Contains(is.labels, name) {
			g.label(name)
			is.labels = append(is.labels, name)
			g.addEvent(is, "labeled", name, by)
		}
	}
	if !slices.Equal(before, is.labels) && is.pull == nil {
		g.emitLabels(is, before, by)
	}
}

func (g *GitLab) addEvent(is *issue, name, label string, by *account) {
	is.events = append(is.events, &event{id: g.id(), name: name, label: label, actor: by, at: g.now()})
	is.updated = g.now()
}

// label is found or made: GitLab makes a missing one when an issue gets it.
func (g *GitLab) label(name string) *label {
	for _, l := range g.labels {
		if l.name == name {
			return l
		}
	}
	l := &label{id: g.id(), name: name, color: "#6699cc"}
	g.labels = append(g.labels, l)
	return l
}

func glLabelEvents(c *glCall) (int, any, error) {
	is, err := c.issue()
	if err != nil {
		return 0, nil, err
	}
	out := []obj{}
	for _, e := range is.events {
		action := "add"
		if e.name == "unlabeled" {
			action = "remove"
		}
		l := c.g.label(e.label)
		out = append(out, obj{"id": e.id, "action": action, "user": c.g.userJSON(e.actor), "created_at": stampOf(e.at), "resource_type": "Issue",
			"resource_id": is.id, "label": obj{"id": l.id, "name": l.name, "color": l.color, "text_color": "#FFFFFF", "description": nil}})
	}
	return http.StatusOK, glPage(c, out), nil
}

func (g *GitLab) noteJSON(is *issue, m *comment) obj {
	return obj{"id": m.id, "body": m.body, "author": g.userJSON(m.author), "created_at": stampOf(m.created), "updated_at": stampOf(m.updated),
		"system": m.author == nil, "noteable_id": is.id, "noteable_type": noteable(is), "noteable_iid": is.number, "project_id": 4200,
		"resolvable": false, "confidential": false, "internal": false}
}

func noteable(is *issue) string {
	if is.pull != nil {
		return "MergeRequest"
	}
	return "Issue"
}

// talk is the issue or the merge request of the path.
func (c *glCall) talk() (*issue, error) {
	if strings.Contains(c.r.URL.Path, "/merge_requests/") {
		return c.merge()
	}
	return c.issue()
}

func glNotes(c *glCall) (int, any, error) {
	is, err := c.talk()
	if err != nil {
		return 0, nil, err
	}
	out := []obj{}
	for _, m := range is.comments {
		out = append(out, c.g.noteJSON(is, m))
	}
	// GitLab writes what happened among the notes; a reader must leave those out.
	for _, e := range is.events {
		n := c.g.noteJSON(is, &comment{id: e.id + 1, body: "added ~" + e.label + " label", author: e.actor, created: e.at, updated: e.at})
		n["system"] = true
		out = append(out, n)
	}
	slices.SortStableFunc(out, func(a, b obj) int { return strings.Compare(a["created_at"].(string), b["created_at"].(string)) })
	if c.r.URL.Query().Get("sort") != "asc" { // GitLab's default is newest first
		slices.Reverse(out)
	}
	return http.StatusOK, glPage(c, out), nil
}

func (c *glCall) noteBody() (string, error) {
	var in struct {
		Body string `json:"body"`
	}
	if err := c.decode(&in); err != nil {
		return "", err
	}
	if in.Body == "" {
		return "", &apiError{http.StatusBadRequest, obj{"error": "body is empty"}}
	}
	if utf8.RuneCountInString(in.Body) > maxNote {
		return "", glRefuse(http.StatusBadRequest, obj{"note": []string{"is too long (maximum is 1000000 characters)"}})
	}
	return in.Body, nil
}

func glAddNote(c *glCall) (int, any, error) {
	is, err := c.talk()
	if err != nil {
		return 0, nil, err
	}
	body, err := c.noteBody()
	if err != nil {
		return 0, nil, err
	}
	m := c.g.addNote(is, c.g.user(c.token.Login), body)
	c.g.emitNote(is, m)
	return http.StatusCreated, c.g.noteJSON(is, m), nil
}

func glGetNote(c *glCall) (int, any, error) {
	is, m, err := c.note()
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, c.g.noteJSON(is, m), nil
}

func (g *GitLab) addNote(is *issue, by *account, body string) *comment {
	at := g.now()
	m := &comment{id: g.id(), body: body, author: by, created: at, updated: at}
	is.comments = append(is.comments, m)
	is.updated = at
	return m
}

func (c *glCall) note() (*issue, *comment, error) {
	is, err := c.talk()
	if err != nil {
		return nil, nil, err
	}
	for _, m := range is.comments {
		if m.id == int64(c.number("note")) {
			return is, m, nil
		}
	}
	return nil, nil, glRefuse(http.StatusNotFound, "404 Not found")
}

func glEditNote(c *glCall) (int, any, error) {
	is, m, err := c.note()
	if err != nil {
		return 0, nil, err
	}
	if m.author.login != c.token.Login && accessLevel(c.g.user(c.token.Login).role) < accessLevel("maintainer") {
		return 0, nil, glRefuse(http.StatusForbidden, "403 Forbidden")
	}
	body, err := c.noteBody()
	if err != nil {
		return 0, nil, err
	}
	m.body, m.updated = body, c.g.now()
	return http.StatusOK, c.g.noteJSON(is, m), nil
}

func glAward(c *glCall) (int, any, error) {
	is, err := c.talk()
	if err != nil {
		return 0, nil, err
	}
	rs := &is.reactions
	if c.r.PathValue("note") != "" {
		_, m, err := c.note()
		if err != nil {
			return 0, nil, err
		}
		rs = &m.reactions
	}
	var in struct {
		Name string `json:"name"`
	}
	if err := c.decode(&in); err != nil {
		return 0, nil, err
	}
	by := c.g.user(c.token.Login)
	if slices.ContainsFunc(*rs, func(r reaction) bool { return r.by == by && r.content == in.Name }) {
		return 0, nil, glRefuse(http.StatusNotFound, "404 Award Emoji Name has already been taken Not Found")
	}
	r := reaction{id: c.g.id(), content: in.Name, by: by}
	*rs = append(*rs, r)
	return http.StatusCreated, obj{"id": r.id, "name": r.content, "user": c.g.userJSON(by), "created_at": stampOf(c.g.now()), "updated_at": stampOf(c.g.now()),
		"awardable_id": is.id, "awardable_type": noteable(is)}, nil
}
