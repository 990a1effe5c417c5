package trigger

import "strings"

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
