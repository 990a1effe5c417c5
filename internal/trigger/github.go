package trigger

import "strings"

// The payload structs name only what is read: a delivery is about 12 kB and decoding it is most of
// what the webhook does (DESIGN §11).

type ghAccount struct {
	Login string `json:"login"`
	ID    int64  `json:"id"`
	Type  string `json:"type"`
}

func (a ghAccount) actor() Actor {
	return Actor{Login: a.Login, ID: a.ID, Bot: a.Type == "Bot" || strings.HasSuffix(a.Login, "[bot]")}
}

type ghRepo struct {
	ID            int64     `json:"id"`
	Name          string    `json:"name"`
	Owner         ghAccount `json:"owner"`
	DefaultBranch string    `json:"default_branch"`
	Private       bool      `json:"private"`
	Archived      bool      `json:"archived"`
}

func (r ghRepo) repo() Repo {
	return Repo{Owner: r.Owner.Login, Name: r.Name, ID: r.ID, DefaultBranch: r.DefaultBranch, Archived: r.Archived, Private: r.Private}
}

type ghIssue struct {
	Number      int       `json:"number"`
	ID          int64     `json:"id"`
	Title       string    `json:"title"`
	Body        string    `json:"body"`
	User        ghAccount `json:"user"`
	State       string    `json:"state"`
	Locked      bool      `json:"locked"`
	HTMLURL     string    `json:"html_url"`
	Labels      []ghLabel `json:"labels"`
	PullRequest *struct{} `json:"pull_request"`
}

type ghLabel struct {
	Name string `json:"name"`
}

func (i ghIssue) issue() Issue {
	out := Issue{
		Number: i.Number, ID: i.ID, Title: i.Title, Body: i.Body, Author: i.User.actor(), State: i.State,
		Locked: i.Locked, IsPull: i.PullRequest != nil, URL: i.HTMLURL,
	}
	for _, l := range i.Labels {
		out.Labels = append(out.Labels, l.Name)
	}
	return out
}

type ghEvent struct {
	Action       string    `json:"action"`
	Repository   ghRepo    `json:"repository"`
	Sender       ghAccount `json:"sender"`
	Installation struct {
		ID int64 `json:"id"`
	} `json:"installation"`
	Issue   ghIssue `json:"issue"`
	Label   ghLabel `json:"label"`
	Comment struct {
		ID   int64     `json:"id"`
		Body string    `json:"body"`
		User ghAccount `json:"user"`
	} `json:"comment"`
	Review struct {
		ID    int64     `json:"id"`
		State string    `json:"state"`
		User  ghAccount `json:"user"`
	} `json:"review"`
	WorkflowRun struct {
		ID           int64  `json:"id"`
		DisplayTitle string `json:"display_title"`
		Event        string `json:"event"`
		Path         string `json:"path"`
		HeadBranch   string `json:"head_branch"`
		HeadSHA      string `json:"head_sha"`
		Status       string `json:"status"`
		Conclusion   string `json:"conclusion"`

		HeadRepository struct {
			ID int64 `json:"id"`
		} `json:"head_repository"`
	} `json:"workflow_run"`
	CheckSuite struct {
		ID         int64  `json:"id"`
		HeadBranch string `json:"head_branch"`
		HeadSHA    string `json:"head_sha"`
		Conclusion string `json:"conclusion"`
		App        struct {
			Slug string `json:"slug"`
		} `json:"app"`
	} `json:"check_suite"`
	Inputs      map[string]any `json:"inputs"`
	PullRequest ghPull         `json:"pull_request"`
}

// ParseGitHub reads a delivery's or an Actions event file's body. event is the name GitHub gives
// (X-GitHub-Event, GITHUB_EVENT_NAME): it is never guessed from the body.
//
// An event that was understood and asks for nothing is *Ignored; a body that is not such an event is
// ErrMalformed. Closed, locked and archived issues, pull requests and bots are facts in the Trigger:
// package policy decides on them.
func ParseGitHub(event string, body []byte, o Options) (Trigger, error) {
	if !githubDoor(event) {
		return Trigger{}, ignored(ReasonEvent, "event %s", name(event))
	}
	var e ghEvent
	if err := decode(body, &e); err != nil {
		return Trigger{}, err
	}
	o = o.withDefaults()
	t := Trigger{
		Forge: GitHub, Event: event, Action: e.Action, Repo: e.Repository.repo(),
		Actor: e.Sender.actor(), Install: e.Installation.ID,
	}
	switch event {
	case "ping":
		t.Kind = KindPing
		return t, nil
	case "installation", "installation_repositories":
		t.Kind = KindInstall
		return t, nil
	}
	if t.Repo.Owner == "" || t.Repo.Name == "" || t.Actor.Login == "" {
		return Trigger{}, malformed("%s without a repository and a sender", event)
	}
	switch event {
	case "issues":
		if e.Action == "closed" {
			return githubClosed(t, e)
		}
		return githubLabel(t, e, o)
	case "pull_request":
		return githubPull(t, e)
	case "pull_request_review":
		return githubReview(t, e, o)
	case "issue_comment":
		return githubComment(t, e, o)
	case "workflow_run":
		return githubRun(t, e)
	case "check_suite":
		return githubSuite(t, e)
	default:
		return githubDispatch(t, e)
	}
}

func githubDoor(event string) bool {
	switch event {
	case "ping", "installation", "installation_repositories", "issues", "issue_comment", "pull_request", "pull_request_review", "workflow_run", "check_suite", "workflow_dispatch":
		return true
	}
	return false
}

// githubLabel decides on the one label of the event, never on the set the issue carries: another
// label on an issue that already has ours asks for nothing.
func githubLabel(t Trigger, e ghEvent, o Options) (Trigger, error) {
	if e.Action != "labeled" {
		return Trigger{}, ignored(ReasonAction, "issues.%s", name(e.Action))
	}
	if !sameLabel(e.Label.Name, o.Label) {
		return Trigger{}, ignored(ReasonLabel, "label %s is not %s", name(e.Label.Name), name(o.Label))
	}
	if e.Issue.Number <= 0 {
		return Trigger{}, malformed("issues.labeled without an issue number")
	}
	if t.Actor.Is(o.Self) {
		return Trigger{}, ignored(ReasonSelf, "the label was added by %s", name(t.Actor.Login))
	}
	t.Kind, t.Label, t.Issue = KindLabel, e.Label.Name, e.Issue.issue()
	return t, nil
}

// githubComment takes new comments only: an edit or a deletion must not run anything, nor one
// comment twice.
func githubComment(t Trigger, e ghEvent, o Options) (Trigger, error) {
	if e.Action != "created" {
		return Trigger{}, ignored(ReasonAction, "issue_comment.%s", name(e.Action))
	}
	if e.Issue.Number <= 0 || e.Comment.ID == 0 {
		return Trigger{}, malformed("issue_comment.created without an issue number and a comment id")
	}
	if t.Actor.Is(o.Self) || e.Comment.User.actor().Is(o.Self) {
		return Trigger{}, ignored(ReasonSelf, "the comment is our own")
	}
	c, ok := FindCommand(e.Comment.Body, o.Prefix)
	if !ok {
		return Trigger{}, ignored(ReasonNoCommand, "")
	}
	c.CommentID = e.Comment.ID
	t.Kind, t.Command, t.Issue = KindComment, &c, e.Issue.issue()
	if t.Issue.IsPull {
		// The head branch is not in this payload; the API has it.
		t.Change = &ChangeRef{Number: e.Issue.Number}
	}
	return t, nil
}

// githubRun takes for ours dispatched runs only: whoever opens a pull request gives the title of the runs that it starts.
func githubRun(t Trigger, e ghEvent) (Trigger, error) {
	r := e.WorkflowRun
	id, ok := FindID(r.DisplayTitle)
	if !ok || r.Event != "workflow_dispatch" {
		return githubFailed(t, e)
	}
	t.Kind, t.ID = KindRun, id
	t.Run = &RunRef{ID: r.ID, Title: r.DisplayTitle, Path: r.Path, Branch: r.HeadBranch, Status: r.Status, Conclusion: r.Conclusion}
	return t, nil
}

// githubDispatch reads a workflow_dispatch. Its sender is a person who used the button, or our own
// App, which names the person it acts for; a person cannot act for another.
func githubDispatch(t Trigger, e ghEvent) (Trigger, error) {
	in := make(map[string]string, len(e.Inputs))
	for k, v := range e.Inputs {
		if s, ok := scalar(v); ok {
			in[k] = s
		}
	}
	d, err := ParseDispatch(in)
	if err != nil {
		return Trigger{}, err
	}
	d.Forge, d.Event, d.Action, d.Repo, d.Install = t.Forge, t.Event, t.Action, t.Repo, t.Install
	if !t.Actor.Bot || d.Actor.Login == "" {
		d.Actor = t.Actor
	}
	return d, nil
}
