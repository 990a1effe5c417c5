package trigger

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

const reviewEvent = `{"action":%q,"review":{"id":77,"state":%q,"user":{"login":"ann","id":7,"type":"User"},"body":"/proctor run"},
"pull_request":{"number":12,"head":{"ref":"proctor/issue-3","sha":"ab","repo":%s},"base":{"ref":"main"}},
"repository":{"id":5,"name":"shop","owner":{"login":"octo"}},"sender":{"login":%q,"id":%d,"type":"User"}}`

func TestAReviewAsksOnlyWhereItRequestsChanges(t *testing.T) {
	t.Parallel()
	own := `{"id":5}`
	for _, c := range []struct {
		action, state, head, sender string
		id                          int
		want                        Reason
		fork                        bool
	}{
		{action: "submitted", state: "changes_requested", head: own, sender: "ann", id: 7},
		{action: "submitted", state: "CHANGES_REQUESTED", head: own, sender: "ann", id: 7},
		{action: "submitted", state: "changes_requested", head: `{"id":6}`, sender: "ann", id: 7, fork: true},
		{action: "submitted", state: "changes_requested", head: `null`, sender: "ann", id: 7, fork: true},
		{action: "submitted", state: "approved", head: own, sender: "ann", id: 7, want: ReasonReview},
		{action: "submitted", state: "commented", head: own, sender: "ann", id: 7, want: ReasonReview},
		{action: "edited", state: "changes_requested", head: own, sender: "ann", id: 7, want: ReasonAction},
		{action: "dismissed", state: "changes_requested", head: own, sender: "ann", id: 7, want: ReasonAction},
		{action: "submitted", state: "changes_requested", head: own, sender: "proctor-app[bot]", id: 9, want: ReasonSelf},
	} {
		body := fmt.Sprintf(reviewEvent, c.action, c.state, c.head, c.sender, c.id)
		got, err := ParseGitHub("pull_request_review", []byte(body), Options{Self: Actor{ID: 9}})
		var ignored *Ignored
		if c.want != "" {
			if !errors.As(err, &ignored) || ignored.Reason != c.want {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		if err != nil || got.Kind != KindReview || got.Review.ID != 77 || got.Change.Number != 12 || got.Change.Head != "proctor/issue-3" || got.Change.FromFork != c.fork || got.Command != nil {
			t.Errorf("%+v: %+v, %v", c, got, err)
		}
	}
	for _, broken := range []string{`{"action":"submitted"}`, strings.Replace(fmt.Sprintf(reviewEvent, "submitted", "changes_requested", own, "ann", 7), `"id":77,`, "", 1)} {
		if _, err := ParseGitHub("pull_request_review", []byte(broken), Options{}); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", broken, err)
		}
	}
}

const gitlabReviewEvent = `{"object_kind":"merge_request","user":{"id":%d,"username":%q},"project":{"id":42,"path_with_namespace":"group/shop","default_branch":"main"},
"object_attributes":{"iid":9,"action":%q,"state":"opened","updated_at":%q,"source_branch":"proctor/issue-3","target_branch":"main","source_project_id":%d,"target_project_id":42},
"changes":{"reviewers":{"previous":[{"id":7,"username":"ann","state":%q}],"current":[{"id":8,"username":"bob","state":"requested_changes"},{"id":7,"username":"ann","state":%q,"re_requested":false}]}}}`

func TestAReviewOnGitLabAsksOnlyWhereItsAuthorRequestsChanges(t *testing.T) {
	t.Parallel()
	const at = "2026-05-01T12:00:00Z"
	for name, c := range map[string]struct {
		id                int
		login, action, at string
		from              int
		before, now       string
		want              Reason
		fork              bool
	}{
		"changes requested":       {id: 7, login: "ann", from: 42, before: "unreviewed", now: "requested_changes"},
		"an older server's time":  {id: 7, login: "ann", at: "2026-05-01 12:00:00 UTC", from: 42, before: "review_started", now: "requested_changes"},
		"of a fork":               {id: 7, login: "ann", from: 43, before: "unreviewed", now: "requested_changes", fork: true},
		"requested before":        {id: 7, login: "ann", from: 42, before: "requested_changes", now: "requested_changes", want: ReasonReview},
		"only reviewed":           {id: 7, login: "ann", from: 42, before: "unreviewed", now: "reviewed", want: ReasonReview},
		"asked to look again":     {id: 7, login: "ann", from: 42, before: "requested_changes", now: "unreviewed", want: ReasonReview},
		"somebody else's request": {id: 5, login: "eve", from: 42, before: "unreviewed", now: "requested_changes", want: ReasonReview},
		"no update":               {id: 7, login: "ann", action: "reopen", from: 42, before: "unreviewed", now: "requested_changes", want: ReasonAction},
		"our own":                 {id: 8, login: "bob", from: 42, before: "unreviewed", now: "reviewed", want: ReasonSelf},
	} {
		if c.action == "" {
			c.action = "update"
		}
		if c.at == "" {
			c.at = at
		}
		body := fmt.Sprintf(gitlabReviewEvent, c.id, c.login, c.action, c.at, c.from, c.before, c.now)
		got, err := ParseGitLab("Merge Request Hook", []byte(body), Options{Self: Actor{ID: 8}})
		var ignored *Ignored
		if c.want != "" {
			if !errors.As(err, &ignored) || ignored.Reason != c.want {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || got.Kind != KindReview || got.Review.Key() != "7@"+at || got.Actor.ID != 7 || got.Change.Number != 9 || got.Change.Head != "proctor/issue-3" || got.Change.FromFork != c.fork {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		in, err := got.Inputs()
		if err != nil {
			t.Fatal(err)
		}
		if back, err := ParseDispatch(in); err != nil || back.Review == nil || *back.Review != *got.Review {
			t.Errorf("%s: dispatched as %+v, %v", name, back.Review, err)
		}
	}
	broken := fmt.Sprintf(gitlabReviewEvent, 7, "ann", "update", "yesterday", 42, "unreviewed", "requested_changes")
	if _, err := ParseGitLab("Merge Request Hook", []byte(broken), Options{}); !errors.Is(err, ErrMalformed) {
		t.Errorf("without a time: %v", err)
	}
}

func TestTheTextOfACommandIsWhatStandsBehindItsName(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		"/proctor fix":                  "",
		"/proctor fix\n":                "",
		"/proctor":                      "",
		"/proctor fix  handle zero too": "handle zero too",
		"Thanks!\r\n\r\n/PROCTOR Fix the total\r\n\r\nIt is off by one:\r\n\r\n    3 != 2\r\n": "the total\n\nIt is off by one:\n\n    3 != 2",
		"> /proctor fix quoted\n\nno": "",
		"nothing":                     "",
	} {
		if got := CommandText(body, "/proctor"); got != want {
			t.Errorf("%q: %q, want %q", body, got, want)
		}
	}
}
