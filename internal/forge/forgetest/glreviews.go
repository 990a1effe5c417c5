package forgetest

import (
	"fmt"
	"net/http"
)

func discussionID(t *thread) string { return fmt.Sprintf("%040x", t.id) }

// discussionJSON is a thread on a line, or with no path one on the merge request as a whole.
func (g *GitLab) discussionJSON(m *issue, t *thread) obj {
	notes := []obj{}
	for _, c := range t.comments {
		n := g.noteJSON(m, c)
		n["type"], n["resolvable"], n["resolved"], n["resolved_by"] = "DiscussionNote", true, t.resolved, nil
		if t.path != "" {
			n["type"] = "DiffNote"
			n["position"] = obj{
				"base_sha": m.pull.baseSHA, "start_sha": m.pull.baseSHA, "head_sha": t.commit, "position_type": "text",
				"old_path": t.path, "new_path": t.path, "old_line": nil, "new_line": t.line, "line_range": nil,
			}
		}
		notes = append(notes, n)
	}
	return obj{"id": discussionID(t), "individual_note": false, "notes": notes}
}

// glDiscussions has single notes among the threads, as GitLab does.
func glDiscussions(c *glCall) (int, any, error) {
	m, err := c.merge()
	if err != nil {
		return 0, nil, err
	}
	out := []obj{}
	for _, n := range m.comments {
		out = append(out, obj{"id": fmt.Sprintf("%040x", n.id), "individual_note": true, "notes": []obj{c.g.noteJSON(m, n)}})
	}
	for _, t := range m.pull.threads {
		out = append(out, c.g.discussionJSON(m, t))
	}
	return http.StatusOK, glPage(c, out), nil
}

func (c *glCall) discussion() (*issue, *thread, error) {
	m, err := c.merge()
	if err != nil {
		return nil, nil, err
	}
	for _, t := range m.pull.threads {
		if discussionID(t) == c.r.PathValue("discussion") {
			return m, t, nil
		}
	}
	return nil, nil, glRefuse(http.StatusNotFound, "404 Discussion Not Found")
}

func glGetDiscussion(c *glCall) (int, any, error) {
	m, t, err := c.discussion()
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, c.g.discussionJSON(m, t), nil
}

func glReply(c *glCall) (int, any, error) {
	m, t, err := c.discussion()
	if err != nil {
		return 0, nil, err
	}
	body, err := c.noteBody()
	if err != nil {
		return 0, nil, err
	}
	t.comments = append(t.comments, c.g.said(c.g.user(c.token.Login), body))
	notes := c.g.discussionJSON(m, t)["notes"].([]obj)
	return http.StatusCreated, notes[len(notes)-1], nil
}

// ReviewPull writes a review as a person does. GitLab keeps its state beside the reviewer's name, where nothing here reads it; its
// text is a thread on the whole.
func (g *GitLab) ReviewPull(number int, author, _, body string, lines ...ReviewLine) (int64, error) {
	g.state.Lock()
	defer g.state.Unlock()
	m := g.merges[number]
	if m == nil {
		return 0, fmt.Errorf("review merge request %d: there is no such merge request", number)
	}
	head := g.mergeHead(m)
	if body != "" {
		lines = append([]ReviewLine{{Body: body}}, lines...)
	}
	g.addThreads(m, head, 0, g.addIfNew(author), lines)
	return 0, nil
}

// ReplyInThread writes into the n-th thread as a person does.
func (g *GitLab) ReplyInThread(number, n int, author, body string) error {
	g.state.Lock()
	defer g.state.Unlock()
	return onThread(g.merges[number], n, func(t *thread) { t.comments = append(t.comments, g.said(g.addIfNew(author), body)) })
}

// ResolveThread marks the n-th thread as settled.
func (g *GitLab) ResolveThread(number, n int) error {
	g.state.Lock()
	defer g.state.Unlock()
	return onThread(g.merges[number], n, func(t *thread) { t.resolved = true })
}

// Threads of a merge request, oldest first.
func (g *GitLab) Threads(number int) []Thread {
	g.state.Lock()
	defer g.state.Unlock()
	return threadsOf(g.merges[number])
}
