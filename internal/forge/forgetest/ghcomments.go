package forgetest

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

func listComments(c *call) (int, any, error) {
	is, err := c.issue()
	if err != nil {
		return 0, nil, err
	}
	since, _ := time.Parse(stamp, c.r.URL.Query().Get("since"))
	out := []obj{}
	for _, m := range is.comments {
		if !m.updated.Before(since) {
			out = append(out, c.g.commentJSON(is, m))
		}
	}
	return http.StatusOK, page(c, out), nil
}

func (c *call) commentBody() (string, error) {
	var in struct {
		Body string `json:"body"`
	}
	if err := c.decode(&in); err != nil {
		return "", err
	}
	if in.Body == "" {
		return "", invalid("IssueComment", "body", "custom", "Body cannot be blank")
	}
	if utf8.RuneCountInString(in.Body) > maxBody {
		return "", invalid("IssueComment", "body", "custom", fmt.Sprintf("body is too long (maximum is %d characters)", maxBody))
	}
	return in.Body, nil
}

func createComment(c *call) (int, any, error) {
	is, err := c.issue()
	if err != nil {
		return 0, nil, err
	}
	if is.locked && c.mayWrite("write") != nil {
		return 0, nil, refuse(http.StatusForbidden, "Unable to create comment because issue is locked.")
	}
	body, err := c.commentBody()
	if err != nil {
		return 0, nil, err
	}
	m := c.g.addComment(is, c.g.user(c.token.Login), body)
	c.g.emitComment("created", is, m, c.token.Job)
	o := c.g.commentJSON(is, m)
	c.w.Header().Set("Location", o["url"].(string))
	return http.StatusCreated, o, nil
}

func (g *GitHub) addComment(is *issue, by *account, body string) *comment {
	at := g.now()
	m := &comment{id: g.id(), body: body, author: by, created: at, updated: at}
	is.comments = append(is.comments, m)
	is.updated = at
	return m
}

// comment of the path.
func (c *call) comment() (*issue, *comment, error) {
	id, _ := strconv.ParseInt(c.r.PathValue("id"), 10, 64)
	for _, is := range c.g.issues {
		for _, m := range is.comments {
			if m.id == id {
				return is, m, nil
			}
		}
	}
	return nil, nil, notFound()
}

func getComment(c *call) (int, any, error) {
	is, m, err := c.comment()
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, c.g.commentJSON(is, m), nil
}

func editComment(c *call) (int, any, error) {
	is, m, err := c.comment()
	if err != nil {
		return 0, nil, err
	}
	if m.author.login != c.token.Login {
		if err := c.mayWrite("write"); err != nil {
			return 0, nil, err
		}
	}
	body, err := c.commentBody()
	if err != nil {
		return 0, nil, err
	}
	m.body, m.updated = body, c.g.now()
	return http.StatusOK, c.g.commentJSON(is, m), nil
}

func reactIssue(c *call) (int, any, error) {
	is, err := c.issue()
	if err != nil {
		return 0, nil, err
	}
	return c.react(&is.reactions)
}

func reactComment(c *call) (int, any, error) {
	_, m, err := c.comment()
	if err != nil {
		return 0, nil, err
	}
	return c.react(&m.reactions)
}

// react answers a repeated reaction with the first and 200.
func (c *call) react(rs *[]reaction) (int, any, error) {
	var in struct {
		Content string `json:"content"`
	}
	if err := c.decode(&in); err != nil {
		return 0, nil, err
	}
	if !slices.Contains(reactionNames(), in.Content) {
		return 0, nil, invalid("Reaction", "content", "invalid", "")
	}
	by, status := c.g.user(c.token.Login), http.StatusOK
	i := slices.IndexFunc(*rs, func(r reaction) bool { return r.by == by && r.content == in.Content })
	if i < 0 {
		*rs = append(*rs, reaction{id: c.g.id(), content: in.Content, by: by})
		i, status = len(*rs)-1, http.StatusCreated
	}
	r := (*rs)[i]
	return status, obj{"id": r.id, "node_id": nodeID("RE_", r.id), "user": c.g.userJSON(by), "content": r.content, "created_at": stampOf(c.g.now())}, nil
}

// addAssignees drops who may not be assigned, without a word, as GitHub does.
func addAssignees(c *call) (int, any, error) {
	is, err := c.issue()
	if err != nil {
		return 0, nil, err
	}
	var in struct {
		Assignees []string `json:"assignees"`
	}
	if err := c.decode(&in); err != nil {
		return 0, nil, err
	}
	for _, login := range in.Assignees {
		if a := c.g.users[strings.ToLower(login)]; a != nil && a.role != "" && !slices.Contains(is.assignees, a.login) {
			is.assignees = append(is.assignees, a.login)
		}
	}
	return http.StatusCreated, c.g.issueJSON(is), nil
}
