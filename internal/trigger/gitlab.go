package trigger

import (
	"strings"

	"github.com/proctor-ci/proctor/internal/pattern"
)

type glUser struct {
	ID       int64  `json:"id"`
	Username string `json:"username"`
}

// glBot is how GitLab names the accounts behind project and group access tokens.
// https://docs.gitlab.com/user/project/settings/project_access_tokens/#bot-users-for-projects
var glBot = pattern.Of(`^(project|group)_\d+_bot(_|\d|$)`)

// GitLabBot tells whether an account of that name stands behind a token: GitLab says "bot" of an account only to itself.
func GitLabBot(login string) bool { return glBot.MatchString(login) }

func (u glUser) actor() Actor {
	return Actor{Login: u.Username, ID: u.ID, Bot: GitLabBot(u.Username)}
}

type glLabel struct {
	Title string `json:"title"`
}

type glObject struct {
	ID           int64     `json:"id"`
	IID          int       `json:"iid"`
	Title        string    `json:"title"`
	Description  string    `json:"description"`
	State        string    `json:"state"`
	Action       string    `json:"action"`
	URL          string    `json:"url"`
	AuthorID     int64     `json:"author_id"`
	Confidential bool      `json:"confidential"`
	Locked       bool      `json:"discussion_locked"`
	Labels       []glLabel `json:"labels"`

	Note         string `json:"note"`
	NoteableType string `json:"noteable_type"`
	System       bool   `json:"system"`
	Internal     bool   `json:"internal"`
	CreatedAt    string `json:"created_at"`
	UpdatedAt    string `json:"updated_at"`

	SourceBranch    string `json:"source_branch"`
	TargetBranch    string `json:"target_branch"`
	SourceProjectID int64  `json:"source_project_id"`
	TargetProjectID int64  `json:"target_project_id"`
	Draft           bool   `json:"work_in_progress"`
	LastCommit      struct {
		ID string `json:"id"`
	} `json:"last_commit"`
}

type glEvent struct {
	User    glUser `json:"user"`
	Project struct {
		ID                int64  `json:"id"`
		PathWithNamespace string `json:"path_with_namespace"`
		DefaultBranch     string `json:"default_branch"`
		VisibilityLevel   int    `json:"visibility_level"`
	} `json:"project"`
	Object       glObject `json:"object_attributes"`
	Issue        glObject `json:"issue"`
	MergeRequest glObject `json:"merge_request"`
	Changes      struct {
		Labels *struct {
			Previous []glLabel `json:"previous"`
			Current  []glLabel `json:"current"`
		} `json:"labels"`
		Reviewers struct {
			Previous []glReviewer `json:"previous"`
			Current  []glReviewer `json:"current"`
		} `json:"reviewers"`
	} `json:"changes"`
}

// publicLevel is GitLab's visibility_level of a public project.
const publicLevel = 20

// ParseGitLab reads a project or group hook's body. event is X-Gitlab-Event. The same rules as
// ParseGitHub; GitLab has no event for one label, so the label must be in changes.labels.current
// and not in changes.labels.previous. Issue.Number and Change.Number are iids.
func ParseGitLab(event string, body []byte, o Options) (Trigger, error) {
	kind := strings.TrimPrefix(event, "Confidential ")
	if kind != "Issue Hook" && kind != "Note Hook" && kind != "Merge Request Hook" && kind != "Pipeline Hook" {
		return Trigger{}, ignored(ReasonEvent, "event %s", name(event))
	}
	var e glEvent
	if err := decode(body, &e); err != nil {
		return Trigger{}, err
	}
	o = o.withDefaults()
	owner, repo, ok := cutLast(e.Project.PathWithNamespace, "/")
	if !ok || e.User.Username == "" {
		return Trigger{}, malformed("%s without a project and a user", event)
	}
	t := Trigger{
		Forge: GitLab, Event: event, Action: e.Object.Action, Actor: e.User.actor(),
		Repo: Repo{
			Owner: owner, Name: repo, ID: e.Project.ID, DefaultBranch: e.Project.DefaultBranch,
			Private: e.Project.VisibilityLevel < publicLevel,
		},
	}
	var err error
	switch kind {
	case "Issue Hook":
		t, err = gitlabIssue(t, e, o)
	case "Merge Request Hook":
		t, err = gitlabMerge(t, e, o)
	case "Pipeline Hook":
		t, err = gitlabPipeline(t, body)
	default:
		t, err = gitlabNote(t, e, o)
	}
	if err != nil {
		return Trigger{}, err
	}
	t.Issue.Confidential = t.Issue.Confidential || kind != event
	return t, nil
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i <= 0 || i+len(sep) == len(s) {
		return "", "", false
	}
	return s[:i], s[i+len(sep):], true
}

// gitlabIssue also takes "open": an issue that is created with the label sends no other event.
func gitlabIssue(t Trigger, e glEvent, o Options) (Trigger, error) {
	if a := e.Object.Action; a != "update" && a != "open" {
		return Trigger{}, ignored(ReasonAction, "issue %s", name(a))
	}
	if e.Changes.Labels == nil || !hasLabel(e.Changes.Labels.Current, o.Label) || hasLabel(e.Changes.Labels.Previous, o.Label) {
		return Trigger{}, ignored(ReasonLabel, "label %s was not added", name(o.Label))
	}
	if e.Object.IID <= 0 {
		return Trigger{}, malformed("%s without an iid", t.Event)
	}
	if t.Actor.Is(o.Self) {
		return Trigger{}, ignored(ReasonSelf, "the label was added by %s", name(t.Actor.Login))
	}
	t.Kind, t.Label, t.Issue = KindLabel, o.Label, e.Object.issue()
	return t, nil
}

func gitlabNote(t Trigger, e glEvent, o Options) (Trigger, error) {
	n := e.Object
	if !n.isNew() {
		return Trigger{}, ignored(ReasonAction, "note %s", name(n.Action))
	}
	if n.System {
		return Trigger{}, ignored(ReasonSystemNote, "")
	}
	if n.NoteableType != "Issue" && n.NoteableType != "MergeRequest" {
		return Trigger{}, ignored(ReasonSubject, "note on %s", name(n.NoteableType))
	}
	if t.Actor.Is(o.Self) {
		return Trigger{}, ignored(ReasonSelf, "the note is our own")
	}
	c, ok := FindCommand(n.Note, o.Prefix)
	if !ok {
		return Trigger{}, ignored(ReasonNoCommand, "")
	}
	c.CommentID = n.ID
	t.Kind, t.Command = KindComment, &c
	subject := e.Issue
	if n.NoteableType == "MergeRequest" {
		subject = e.MergeRequest
		t.Change = subject.change()
	}
	if subject.IID <= 0 || n.ID == 0 {
		return Trigger{}, malformed("%s without the iid of its subject and a note id", t.Event)
	}
	t.Issue = subject.issue()
	t.Issue.IsPull = t.Change != nil
	t.Issue.Confidential = t.Issue.Confidential || n.Internal
	return t, nil
}

// isNew: older servers send no action on notes, but the same two times on a new one.
func (o glObject) isNew() bool {
	return o.Action == "create" || o.Action == "" && o.CreatedAt != "" && o.CreatedAt == o.UpdatedAt
}

func (o glObject) issue() Issue {
	out := Issue{
		Number: o.IID, ID: o.ID, Title: o.Title, Body: o.Description, Author: Actor{ID: o.AuthorID},
		State: o.State, Locked: o.Locked, Confidential: o.Confidential, URL: o.URL,
	}
	switch out.State {
	case "opened":
		out.State = "open"
	case "merged":
		out.State = "closed" // ChangeRef.Merged tells the difference
	}
	for _, l := range o.Labels {
		out.Labels = append(out.Labels, l.Title)
	}
	return out
}

func (o glObject) change() *ChangeRef {
	return &ChangeRef{
		Number: o.IID, Head: o.SourceBranch, Base: o.TargetBranch, HeadSHA: o.LastCommit.ID, Draft: o.Draft,
		Merged: o.State == "merged", FromFork: o.SourceProjectID != o.TargetProjectID,
	}
}

func hasLabel(ls []glLabel, want string) bool {
	for _, l := range ls {
		// GitLab's label names differ by case.
		if l.Title == want {
			return true
		}
	}
	return false
}
