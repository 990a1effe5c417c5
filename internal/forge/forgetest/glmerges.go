package forgetest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// draft is part of the title on GitLab.
func isDraft(title string) bool {
	low := strings.ToLower(title)
	for _, p := range []string{"draft:", "[draft]", "(draft)"} {
		if strings.HasPrefix(low, p) {
			return true
		}
	}
	return false
}

func (g *GitLab) mergeHead(m *issue) string {
	if m.state == "open" && !m.pull.fork {
		if id, err := g.repo.branch(m.pull.head); err == nil {
			m.pull.headSHA = id
		}
	}
	return m.pull.headSHA
}

func (g *GitLab) mergeJSON(m *issue) obj {
	p, source := m.pull, 4200
	if p.fork {
		source = 4300
	}
	state := glState(m.state)
	if !p.merged.IsZero() {
		state = "merged"
	}
	return obj{
		"id": m.id, "iid": m.number, "project_id": 4200, "title": m.title, "description": m.body, "state": state, "draft": isDraft(m.title),
		"work_in_progress": isDraft(m.title), "source_branch": p.head, "target_branch": p.base, "source_project_id": source, "target_project_id": 4200,
		"sha": g.mergeHead(m), "author": g.userJSON(m.author), "labels": slices.Clone(m.labels), "assignees": g.usersJSON(m.assignees),
		"reviewers": g.usersJSON(p.reviewers), "created_at": stampOf(m.created), "updated_at": stampOf(m.updated), "merged_at": stampOrNil(p.merged),
		"web_url": g.issueURL(m),
	}
}

func (c *glCall) merge() (*issue, error) {
	m := c.g.merges[c.number("iid")]
	if m == nil {
		return nil, glRefuse(http.StatusNotFound, "404 Not found")
	}
	return m, nil
}

func glGetMerge(c *glCall) (int, any, error) {
	m, err := c.merge()
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, c.g.mergeJSON(m), nil
}

func glMerges(c *glCall) (int, any, error) {
	q := c.r.URL.Query()
	out := []obj{}
	for _, m := range sortedByNumber(c.g.merges) {
		o := c.g.mergeJSON(m)
		keep := true
		for param, field := range map[string]string{"state": "state", "source_branch": "source_branch", "target_branch": "target_branch"} {
			want := q.Get(param)
			keep = keep && (want == "" || want == "all" || o[field] == want)
		}
		if keep {
			out = append(out, o)
		}
	}
	slices.Reverse(out)
	return http.StatusOK, glPage(c, out), nil
}

func sortedByNumber(m map[int]*issue) []*issue {
	out := make([]*issue, 0, len(m))
	for _, is := range m {
		out = append(out, is)
	}
	slices.SortFunc(out, func(a, b *issue) int { return a.number - b.number })
	return out
}

func glAddMerge(c *glCall) (int, any, error) {
	var in struct {
		Title        string `json:"title"`
		Description  string `json:"description"`
		SourceBranch string `json:"source_branch"`
		TargetBranch string `json:"target_branch"`
	}
	if err := c.decode(&in); err != nil {
		return 0, nil, err
	}
	g := c.g
	head, headErr := g.repo.branch(in.SourceBranch)
	base, baseErr := g.repo.branch(in.TargetBranch)
	switch {
	case g.mergesOff:
		return 0, nil, glRefuse(http.StatusForbidden, "403 Forbidden - Merge requests are disabled")
	case in.Title == "":
		return 0, nil, glRefuse(http.StatusBadRequest, obj{"title": []string{"can't be blank"}})
	case headErr != nil:
		return 0, nil, glRefuse(http.StatusBadRequest, []string{fmt.Sprintf("Source branch \"%s\" does not exist", in.SourceBranch)})
	case baseErr != nil:
		return 0, nil, glRefuse(http.StatusBadRequest, []string{fmt.Sprintf("Target branch \"%s\" does not exist", in.TargetBranch)})
	}
	for _, m := range sortedByNumber(g.merges) {
		if m.state == "open" && m.pull.head == in.SourceBranch && m.pull.base == in.TargetBranch && !m.pull.fork {
			return 0, nil, glRefuse(http.StatusConflict, []string{fmt.Sprintf("Another open merge request already exists for this source branch: !%d", m.number)})
		}
	}
	m := g.newMerge(g.user(c.token.Login), in.Title, in.Description)
	m.pull = &pull{head: in.SourceBranch, base: in.TargetBranch, headSHA: head, baseSHA: base}
	return http.StatusCreated, g.mergeJSON(m), nil
}

func (g *GitLab) newMerge(by *account, title, body string) *issue {
	at := g.now()
	m := &issue{id: g.id(), number: len(g.merges) + 1, title: title, body: body, author: by, state: "open", created: at, updated: at, pull: &pull{}}
	g.merges[m.number] = m
	return m
}

func glEditMerge(c *glCall) (int, any, error) {
	m, err := c.merge()
	if err != nil {
		return 0, nil, err
	}
	var in struct {
		Title       *string `json:"title"`
		Description *string `json:"description"`
		AddLabels   string  `json:"add_labels"`
		StateEvent  string  `json:"state_event"`
		AssigneeIDs []int64 `json:"assignee_ids"`
		ReviewerIDs []int64 `json:"reviewer_ids"`
	}
	if err := c.decode(&in); err != nil {
		return 0, nil, err
	}
	set(&m.title, in.Title)
	set(&m.body, in.Description)
	if in.StateEvent == "close" {
		if m.state != "open" {
			return 0, nil, glRefuse(http.StatusUnprocessableEntity, "422 Unprocessable entity")
		}
		m.state, m.closed = "closed", c.g.now()
	}
	c.g.changeLabels(m, commas(in.AddLabels), nil, c.g.user(c.token.Login))
	if in.AssigneeIDs != nil {
		m.assignees = c.g.logins(in.AssigneeIDs)
	}
	if in.ReviewerIDs != nil {
		m.pull.reviewers = c.g.logins(in.ReviewerIDs)
	}
	m.updated = c.g.now()
	return http.StatusOK, c.g.mergeJSON(m), nil
}

func (g *GitLab) logins(ids []int64) []string {
	var out []string
	for _, id := range ids {
		for _, a := range g.users {
			if a.id == id && !slices.Contains(out, a.login) {
				out = append(out, a.login)
			}
		}
	}
	return out
}
