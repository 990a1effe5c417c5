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
