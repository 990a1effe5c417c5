package trigger

import (
	"slices"
	"strings"
	"time"
)

// githubReview takes a review that asks for changes, as it is submitted: an edit or a dismissal starts nothing. Whether the
// pull request is one of ours, and the reviewer may ask, the run finds out. The number of Issue is the pull request's.
// https://docs.github.com/webhooks/webhook-events-and-payloads#pull_request_review
func githubReview(t Trigger, e ghEvent, o Options) (Trigger, error) {
	if e.Action != "submitted" {
		return Trigger{}, ignored(ReasonAction, "pull_request_review.%s", name(e.Action))
	}
	p, r := e.PullRequest, e.Review
	if p.Number <= 0 || p.Head.Ref == "" || r.ID == 0 {
		return Trigger{}, malformed("pull_request_review.submitted without a number, a head and a review id")
	}
	if !strings.EqualFold(r.State, "changes_requested") {
		return Trigger{}, ignored(ReasonReview, "the review is %s", name(r.State))
	}
	if t.Actor.Is(o.Self) || r.User.actor().Is(o.Self) {
		return Trigger{}, ignored(ReasonSelf, "the review is our own")
	}
	t.Kind, t.Review, t.Issue = KindReview, &ReviewRef{ID: r.ID}, Issue{Number: p.Number, IsPull: true}
	t.Change = p.change(t.Repo)
	return t, nil
}

type glReviewer struct {
	ID    int64  `json:"id"`
	State string `json:"state"`
}

// gitlabReview takes an update in which the person who made it becomes a reviewer who requests changes.
// https://docs.gitlab.com/user/project/integrations/webhook_events/#reviewer-state-tracking
func gitlabReview(t Trigger, e glEvent, o Options) (Trigger, error) {
	requests := func(all []glReviewer) bool {
		return slices.Contains(all, glReviewer{ID: t.Actor.ID, State: "requested_changes"})
	}
	if c := e.Changes.Reviewers; !requests(c.Current) || requests(c.Previous) {
		return Trigger{}, ignored(ReasonReview, "the update requests no changes")
	}
	at, err := glTime(e.Object.UpdatedAt)
	if e.Object.IID <= 0 || e.Object.SourceBranch == "" || t.Actor.ID <= 0 || err != nil {
		return Trigger{}, malformed("%s without an iid, a source branch, a reviewer and a time", t.Event)
	}
	if t.Actor.Is(o.Self) {
		return Trigger{}, ignored(ReasonSelf, "the review is our own")
	}
	t.Kind, t.Review, t.Issue = KindReview, &ReviewRef{ID: t.Actor.ID, At: at}, Issue{Number: e.Object.IID, IsPull: true}
	t.Change = e.Object.change()
	return t, nil
}

// glTime reads a time as newer and as older servers write it.
func glTime(s string) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, s); err == nil {
		return at.UTC().Truncate(time.Second), nil
	}
	return time.Parse("2006-01-02 15:04:05 UTC", s)
}
