package forgetest

import (
	"fmt"
	"net/http"
	"slices"
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
	all := []func() obj{} // only those of the page are written out
	for _, n := range m.comments {
		all = append(all, func() obj {
			return obj{"id": fmt.Sprintf("%040x", n.id), "individual_note": true, "notes": []obj{c.g.noteJSON(m, n)}}
		})
	}
	for _, t := range m.pull.threads {
		all = append(all, func() obj { return c.g.discussionJSON(m, t) })
	}
	out := []obj{}
	for _, write := range glPage(c, all) {
		out = append(out, write())
	}
	return http.StatusOK, out, nil
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

// glReviewStates are GitLab's words for ReviewPull's.
var glReviewStates = map[string]string{"changes_requested": "requested_changes", "approved": "approved", "commented": "reviewed"}

// glReviewers tells each one's newest decision, and since when they are a reviewer.
func glReviewers(c *glCall) (int, any, error) {
	m, err := c.merge()
	if err != nil {
		return 0, nil, err
	}
	out := []obj{}
	for _, r := range m.pull.reviews {
		out = append(out, obj{"user": c.g.userJSON(r.author), "state": r.state, "created_at": stampOf(r.at)})
	}
	return http.StatusOK, out, nil
}

func (g *GitLab) hookReviewers(m *issue) []obj {
	out := []obj{}
	for _, r := range m.pull.reviews {
		u := g.hookUser(r.author)
		u["state"], u["re_requested"] = r.state, false
		out = append(out, u)
	}
	return out
}

// ReviewPull writes a review as a person does, and makes them a reviewer. GitLab keeps the newest state beside the reviewer's name, and
// gives the reviewer's id; its text is a thread on the whole. Hooks hear of it as of an update of the merge request, but of an approval.
func (g *GitLab) ReviewPull(number int, author, state, body string, lines ...ReviewLine) (int64, error) {
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
	by := g.addIfNew(author)
	g.addThreads(m, head, 0, by, lines)
	before := g.hookReviewers(m)
	i := slices.IndexFunc(m.pull.reviews, func(r *review) bool { return r.author == by })
	if i < 0 {
		i = len(m.pull.reviews)
		m.pull.reviews = append(m.pull.reviews, &review{id: by.id, author: by, at: g.now()})
	}
	if m.pull.reviews[i].state = glReviewStates[state]; state != "approved" {
		g.emitReview(m, by, before)
	}
	return by.id, nil
}

// emitReview is the Merge Request Hook of a review that was submitted.
func (g *GitLab) emitReview(m *issue, by *account, before []obj) {
	if g.hook == nil {
		return
	}
	source := 4200
	if m.pull.fork {
		source = 4300
	}
	g.deliver("Merge Request Hook", "update", obj{
		"object_kind": "merge_request", "event_type": "merge_request", "user": g.hookUser(by), "project": g.hookProject(),
		"object_attributes": obj{
			"id": m.id, "iid": m.number, "title": m.title, "description": m.body, "state": glState(m.state), "action": "update", "author_id": m.author.id,
			"source_branch": m.pull.head, "target_branch": m.pull.base, "source_project_id": source, "target_project_id": 4200, "work_in_progress": isDraft(m.title),
			"draft": isDraft(m.title), "last_commit": obj{"id": g.mergeHead(m)}, "created_at": stampOf(m.created), "updated_at": stampOf(m.updated), "url": g.issueURL(m),
		},
		"labels": g.hookLabels(m.labels), "reviewers": g.hookReviewers(m), "changes": obj{"reviewers": obj{"previous": before, "current": g.hookReviewers(m)}},
		"repository": obj{"name": g.opt.Project, "url": g.webURL() + ".git", "description": "", "homepage": g.webURL()},
	})
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
