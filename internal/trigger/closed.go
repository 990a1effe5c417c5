package trigger

// ghPull is a pull request as its own events tell of it.
type ghPull struct {
	Number int    `json:"number"`
	Merged bool   `json:"merged"`
	Draft  bool   `json:"draft"`
	Head   ghSide `json:"head"`
	Base   ghSide `json:"base"`
}

type ghSide struct {
	Ref  string `json:"ref"`
	SHA  string `json:"sha"`
	Repo struct {
		ID int64 `json:"id"`
	} `json:"repo"`
}

// githubPull takes the end of a pull request: it makes room, and its issue's labels have had their time. The
// number of Issue is the pull request's.
func githubPull(t Trigger, e ghEvent) (Trigger, error) {
	if e.Action != "closed" {
		return Trigger{}, ignored(ReasonAction, "pull_request.%s", name(e.Action))
	}
	p := e.PullRequest
	if p.Number <= 0 || p.Head.Ref == "" {
		return Trigger{}, malformed("pull_request.closed without a number and a head")
	}
	t.Kind, t.Issue = KindClosed, Issue{Number: p.Number, IsPull: true, State: "closed"}
	t.Change = p.change(t.Repo)
	return t, nil
}

// change: the head of a fork that is gone has no repository, and is a fork's.
func (p ghPull) change(in Repo) *ChangeRef {
	return &ChangeRef{Number: p.Number, Head: p.Head.Ref, Base: p.Base.Ref, HeadSHA: p.Head.SHA, Merged: p.Merged, Draft: p.Draft, FromFork: p.Head.Repo.ID != in.ID}
}

// githubClosed takes the end of an issue.
func githubClosed(t Trigger, e ghEvent) (Trigger, error) {
	if e.Issue.Number <= 0 {
		return Trigger{}, malformed("issues.closed without an issue number")
	}
	t.Kind, t.Issue = KindClosed, e.Issue.issue()
	return t, nil
}

// gitlabMerge is githubPull for a merge request.
func gitlabMerge(t Trigger, e glEvent, o Options) (Trigger, error) {
	if e.Object.Action == "update" {
		return gitlabReview(t, e, o)
	}
	if a := e.Object.Action; a != "close" && a != "merge" {
		return Trigger{}, ignored(ReasonAction, "merge request %s", name(a))
	}
	if e.Object.IID <= 0 || e.Object.SourceBranch == "" {
		return Trigger{}, malformed("%s without an iid and a source branch", t.Event)
	}
	t.Kind, t.Issue, t.Change = KindClosed, Issue{Number: e.Object.IID, IsPull: true, State: "closed"}, e.Object.change()
	return t, nil
}
