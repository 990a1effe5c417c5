package webhook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/trigger"
	"github.com/proctor-ci/proctor/internal/webhook"
)

// board is a world whose labels can be listed and set.
type board struct {
	*world
	mu      sync.Mutex
	queued  []int
	removed []string
	touched []int         // issues whose labels were set
	gone    map[int]error // issues that are listed and cannot be had

	running   []forge.Issue
	open      int // pull requests of ours
	uncounted error
}

func (b *board) Issue(ctx context.Context, n int) (forge.Issue, error) {
	if err := b.gone[n]; err != nil {
		return forge.Issue{}, err
	}
	return b.world.Issue(ctx, n)
}

func (b *board) OpenPulls(_ context.Context, prefix string) ([]string, error) {
	var out []string
	for n := range b.open {
		out = append(out, fmt.Sprint(prefix, n))
	}
	return out, b.uncounted
}

func (b *board) Labelled(_ context.Context, label string) ([]forge.Issue, error) {
	if label == "proctor:running" {
		return b.running, nil
	}
	var out []forge.Issue
	for _, n := range b.queued {
		out = append(out, forge.Issue{Number: n, State: "open", Labels: []string{label}})
	}
	return out, nil
}

func (b *board) SetLabels(_ context.Context, n int, _, remove []string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.touched = append(b.touched, n)
	b.removed = append(b.removed, remove...)
	return nil
}

func endedPull(t *testing.T, head string, fork bool, number int) []byte {
	t.Helper()
	from := 5
	if fork {
		from = 6
	}
	b, err := json.Marshal(map[string]any{
		"action": "closed", "number": number, "installation": map[string]any{"id": 6},
		"pull_request": map[string]any{"number": number, "merged": true, "head": map[string]any{"ref": head, "sha": "abc", "repo": map[string]any{"id": from}}},
		"repository":   map[string]any{"id": 5, "name": "shop", "default_branch": "trunk", "owner": map[string]any{"login": "octo"}},
		"sender":       map[string]any{"login": "ann", "id": 7, "type": "User"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func boarded(t *testing.T, queued ...int) (*rig, *board) {
	t.Helper()
	var b *board
	r := newRig(t, func(c *webhook.Config) {
		c.Connect = func(context.Context, webhook.Target) (webhook.Forge, error) { return b, nil }
	})
	b = &board{world: r.w, queued: queued}
	r.w.issue = func(n int) forge.Issue {
		return forge.Issue{Number: n, Title: title(n), State: "open", Labels: []string{"proctor:queued", "proctor:review", "mine"}}
	}
	return r, b
}

func TestAnEndedPullRequestStartsWhatWaitedAndOnlyThat(t *testing.T) {
	t.Parallel()
	r, b := boarded(t, 8, 9)
	for name, body := range map[string][]byte{
		"somebody's branch": endedPull(t, "mine/issue-3", false, 20),
		"a fork's branch":   endedPull(t, "proctor/issue-3", true, 21),
		"no number":         endedPull(t, "proctor/issue-x", false, 22),
		"a goal's branch":   endedPull(t, "proctor/goal-3fa9c1b2d417", false, 24),
	} {
		if g := r.deliver("pull_request", "d"+name, body); g.Reason != "other_branch" || r.w.dispatched() != 0 {
			t.Errorf("%s: %v", name, g)
		}
	}
	if g := r.deliver("pull_request", "d1", endedPull(t, "proctor/issue-3", false, 23)); g.Status != "dispatched" {
		t.Fatal(g)
	}
	if g := r.deliver("pull_request", "d2", endedPull(t, "proctor/issue-3", false, 23)); g.Status != "duplicate" {
		t.Errorf("the same end again: %v", g)
	}
	if len(r.w.runs) != 1 || r.w.runs[0][trigger.InputIssue] != "8" {
		t.Fatalf("runs %v, want the oldest that waits", r.w.runs)
	}
	in, err := url.ParseQuery(r.w.runs[0][trigger.InputRequest])
	if err != nil || in.Get(trigger.InputEvent) == "" || in.Has(trigger.InputSnapshot) || in.Get(trigger.InputActor) != "7:ann" {
		t.Errorf("it asks by %v, want the label event and its actor, and no approval of its own", in)
	}
	if !slices.Equal(b.removed, []string{"proctor:review", "proctor:review"}) {
		t.Errorf("labels taken off: %q", b.removed)
	}
}

// INV-45: the label of a waiting issue stays until its run takes it off, and each end that comes meanwhile starts another one.
func TestTwoEndsInARowStartTwoWaitingIssues(t *testing.T) {
	t.Parallel()
	r, b := boarded(t, 8, 9)
	end := func(n int, delivery string) got {
		return r.deliver("pull_request", delivery, endedPull(t, "proctor/issue-3", false, n))
	}
	issues := func() (out []string) {
		for _, run := range r.w.runs {
			out = append(out, run[trigger.InputIssue])
		}
		return out
	}
	first, second := end(23, "d1"), end(24, "d2")
	if first.Status != "dispatched" || second.Status != "dispatched" || !slices.Equal(issues(), []string{"8", "9"}) {
		t.Fatalf("%v, %v, runs for %q; want one for each", first, second, issues())
	}
	// A third end finds none that nobody has started, and is not lost: it comes again, as often as it takes.
	for range 2 {
		if g := end(25, "d3"); g.String() != "503 retry turn" || len(issues()) != 2 {
			t.Errorf("a third end: %v, runs for %q; both have been started", g, issues())
		}
	}
	// The first end, told again when its issue waits no more, has had its run.
	b.queued = []int{9, 10}
	if g := end(23, "d4"); g.Status != "duplicate" || len(issues()) != 2 {
		t.Errorf("the first end again: %v, runs for %q", g, issues())
	}
	// The run of 8 found no room, so that 8 waits anew: the third end, told again, starts it, once.
	b.queued = []int{8, 9}
	r.deliver("workflow_run", "d5", labeled(8, map[string]any{
		"action": "completed", "workflow_run": runEvent("proctor #8 "+first.Run, "completed", nil),
	}))
	for _, want := range []string{"dispatched", "duplicate"} {
		if g := end(25, "d3"); g.Status != want || !slices.Equal(issues(), []string{"8", "9", "8"}) {
			t.Errorf("the third end again: %v, runs for %q", g, issues())
		}
	}
	// The control: where nobody waits any more there is nothing to come again for.
	b.queued = nil
	if g := end(26, "d6"); g.String() != "202 recorded closed" {
		t.Errorf("nobody waits: %v", g)
	}
}

// A run that ends without a draft makes room, too: its end comes again where all that wait have been started.
func TestTheEndOfARunComesAgainWhereAllThatWaitHaveBeenStarted(t *testing.T) {
	t.Parallel()
	r, b := boarded(t)
	r.w.issue = newWorld().issue
	first := r.deliver("issues", "d1", labeled(3, nil))
	b.queued = []int{8}
	if g := r.deliver("pull_request", "d2", endedPull(t, "proctor/issue-4", false, 23)); g.Status != "dispatched" {
		t.Fatal(g)
	}
	ended := func() got {
		return r.deliver("workflow_run", "d3", labeled(3, map[string]any{
			"action": "completed", "workflow_run": runEvent("proctor #3 "+first.Run, "completed", nil),
		}))
	}
	if g := ended(); g.String() != "503 retry turn" || r.w.dispatched() != 2 {
		t.Errorf("%v, %d runs", g, r.w.dispatched())
	}
	b.queued = []int{8, 9}
	if g := ended(); g.String() != "202 recorded ended" || r.w.dispatched() != 3 || r.w.runs[2][trigger.InputIssue] != "9" {
		t.Errorf("told again when another waits: %v, runs %v", g, r.w.runs)
	}
}

func TestConcurrentEndsStartEachWaitingIssueOnce(t *testing.T) {
	t.Parallel()
	const waiting, ends = 5, 12
	r, b := boarded(t)
	for n := range waiting {
		b.queued = append(b.queued, 100+n)
	}
	var wg sync.WaitGroup
	var again atomic.Int32
	for n := range ends {
		body := endedPull(t, "proctor/issue-3", false, 30+n)
		wg.Go(func() {
			if g := r.deliver("pull_request", fmt.Sprint("d", n), body); g.String() == "503 retry turn" {
				again.Add(1)
			}
		})
	}
	wg.Wait()
	seen := map[string]int{}
	for _, run := range r.w.runs {
		seen[run[trigger.InputIssue]]++
	}
	if len(seen) != waiting || len(r.w.runs) != waiting {
		t.Errorf("runs per issue %v, want one for each of %d", seen, waiting)
	}
	if told := int(again.Load()); told != ends-waiting {
		t.Errorf("%d ends come again, want the %d that started none", told, ends-waiting)
	}
}

func TestAnEndedPullRequestTakesLabelsOffItsOwnIssueOnly(t *testing.T) {
	t.Parallel()
	for branch, want := range map[string][]int{"proctor/issue-7": {7}, "proctor/issue-7-2": {7}, "proctor/7-2": {7}, "proctor/goal-3fa9c1b2d417": nil, "proctor/issue-7-23": nil} {
		r, b := boarded(t)
		r.deliver("pull_request", "d1", endedPull(t, branch, false, 23))
		if !slices.Equal(b.touched, want) {
			t.Errorf("%s: labels of issues %v were set, want %v", branch, b.touched, want)
		}
	}
}

func TestAWaitingRequestWhoseAskerMayNotAnyMoreGivesItsRoomToTheNext(t *testing.T) {
	t.Parallel()
	r, _ := boarded(t, 8, 9)
	r.w.event = func(n int) (forge.LabelEvent, error) {
		ev, err := newWorld().event(n)
		if n == 8 {
			ev.Actor = forge.User{Login: "proctor[bot]", ID: 99}
		}
		return ev, err
	}
	if g := r.deliver("pull_request", "d1", endedPull(t, "proctor/issue-3", false, 23)); g.Status != "dispatched" || r.w.runs[0][trigger.InputIssue] != "9" {
		t.Errorf("%v, runs %v", g, r.w.runs)
	}
	empty, _ := boarded(t)
	if g := empty.deliver("pull_request", "d1", endedPull(t, "proctor/issue-3", false, 23)); g.Code != 202 || g.Reason != "closed" {
		t.Errorf("nothing waits: %v", g)
	}
}

// A run that ends without a draft makes room as a closed pull request does; one that found none itself, goes on or has a draft does not.
func TestARunThatEndsWithoutADraftStartsWhatWaited(t *testing.T) {
	t.Parallel()
	for label, want := range map[string][]string{
		"proctor:needs-human": {"3", "8"}, "proctor:failed": {"3", "8"}, "mine": {"3", "8"},
		"proctor:queued": {"3"}, "proctor:review": {"3"}, "proctor:running": {"3"},
	} {
		r, b := boarded(t)
		r.w.issue = newWorld().issue
		first := r.deliver("issues", "d1", labeled(3, nil))
		b.queued = []int{8, 9}
		r.w.issue = func(n int) forge.Issue {
			return forge.Issue{Number: n, Title: title(n), State: "open", Labels: []string{map[bool]string{true: label, false: "proctor:queued"}[n == 3]}}
		}
		for _, delivery := range []string{"d2", "d3"} { // the same end, told twice
			g := r.deliver("workflow_run", delivery, labeled(3, map[string]any{
				"action": "completed", "workflow_run": runEvent("proctor #3 "+first.Run, "completed", nil),
			}))
			if g.String() != "202 recorded ended" || g.Run != first.Run {
				t.Errorf("%s: %v of %s", label, g, g.Run)
			}
		}
		var got []string
		for _, run := range r.w.runs {
			got = append(got, run[trigger.InputIssue])
		}
		if !slices.Equal(got, want) {
			t.Errorf("an end with %s: runs for issues %q, want %q", label, got, want)
		}
	}
}

// One that was deleted or transferred after it was listed holds nobody up either; one whose dispatch fails does, since the next one's would.
func TestAWaitingIssueThatIsGoneHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	for name, gone := range map[string]error{"deleted": forge.ErrNotFound, "transferred": forge.ErrMoved} {
		r, b := boarded(t, 8, 9)
		b.gone = map[int]error{8: gone}
		if g := r.deliver("pull_request", "d1", endedPull(t, "proctor/issue-3", false, 23)); g.Status != "dispatched" || r.w.runs[0][trigger.InputIssue] != "9" {
			t.Errorf("%s: %v, runs %v", name, g, r.w.runs)
		}
	}
	r, _ := boarded(t, 8, 9)
	r.w.fail = func(bool) error { return forge.ErrNotFound }
	if g := r.deliver("pull_request", "d1", endedPull(t, "proctor/issue-3", false, 23)); g.String() != "202 failed not_found" || len(r.w.comments) != 1 {
		t.Errorf("control: no workflow: %v, told %q", g, r.w.comments)
	}
}

func TestAWaitingIssueWithoutALabelEventHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	r, _ := boarded(t, 8, 9)
	r.w.event = func(n int) (forge.LabelEvent, error) {
		if n == 8 {
			return forge.LabelEvent{}, forge.ErrNotFound
		}
		return newWorld().event(n)
	}
	if g := r.deliver("pull_request", "d1", endedPull(t, "proctor/issue-3", false, 23)); g.Status != "dispatched" || r.w.runs[0][trigger.InputIssue] != "9" {
		t.Errorf("%v, runs %v", g, r.w.runs)
	}
}

func TestAClosedIssueLosesOurLabels(t *testing.T) {
	t.Parallel()
	r, b := boarded(t, 8)
	r.w.issue = func(n int) forge.Issue {
		return forge.Issue{Number: n, State: "closed", Labels: []string{"proctor", "proctor:queued", "mine"}}
	}
	body := event(map[string]any{"action": "closed"}, 3, nil)
	if g := r.deliver("issues", "d1", body); g.Code != 202 || g.Reason != "closed" || !slices.Equal(b.removed, []string{"proctor", "proctor:queued"}) || r.w.dispatched() != 0 {
		t.Errorf("%v, taken off %q, %d dispatched", g, b.removed, r.w.dispatched())
	}
}

// noted is a comment of ann's on GitLab: on merge request or issue 3 of the project.
func noted(on, text string, id int) []byte {
	subject := map[string]string{"MergeRequest": "merge_request", "Issue": "issue"}[on]
	return fmt.Appendf(nil, `{"object_kind":"note","user":{"id":7,"username":"ann"},"project":{"id":5,"path_with_namespace":"group/sub/shop","default_branch":"trunk"},
		"object_attributes":{"id":%d,"note":%q,"noteable_type":%q,"action":"create"},
		%q:{"id":900,"iid":3,"title":"Issue 3","description":"as said","state":"opened","source_branch":"proctor/issue-5","target_branch":"trunk","source_project_id":5,"target_project_id":5}}`, id, text, on, subject)
}

// INV-45: a run that takes no room leaves none: a draft that it goes on with has its own, and on GitLab an issue of its number knows nothing of it. Neither
// the end that is told of nor one that nobody told starts somebody who waits. The control is a run that could have had a draft.
func TestTheEndOfARunThatTookNoRoomStartsNobody(t *testing.T) {
	t.Parallel()
	onPull := map[string]any{"issue.pull_request": map[string]any{}}
	ask := map[string]func(r *rig, text string) got{
		"GitHub issue": func(r *rig, text string) got { return r.deliver("issue_comment", "d1", commented(3, 9, text, nil)) },
		"GitHub pull":  func(r *rig, text string) got { return r.deliver("issue_comment", "d1", commented(3, 9, text, onPull)) },
		"GitLab issue": func(r *rig, text string) got { return r.gitlab("Note Hook", "d1", noted("Issue", text, 9)) },
		"GitLab merge": func(r *rig, text string) got { return r.gitlab("Note Hook", "d1", noted("MergeRequest", text, 9)) },
	}
	for _, c := range []struct {
		where, text string
		runs        int
	}{
		{"GitHub pull", "/proctor status", 1}, {"GitHub pull", "/proctor fix", 1}, {"GitHub pull", "/proctor resume", 1},
		{"GitLab merge", "/proctor status", 1}, {"GitLab merge", "/proctor fix", 1},
		{"GitHub issue", "/proctor status", 1}, {"GitLab issue", "/proctor explain", 1},
		{"GitHub issue", "/proctor run", 2}, {"GitLab issue", "/proctor retry", 2}, // the controls
	} {
		for _, heard := range []bool{true, false} {
			s := watched(t, nil, 8)
			s.w.issue = func(n int) forge.Issue {
				return forge.Issue{Number: n, Title: title(n), Body: "as said", State: "open", Labels: []string{map[bool]string{true: "mine", false: "proctor:queued"}[n == 3]}}
			}
			s.b.open = 1
			first := ask[c.where](s.rig, c.text)
			if first.Status != "dispatched" {
				t.Fatalf("%v: %v", c, first)
			}
			switch {
			case !heard:
				s.b.over = true
				s.reap(31 * time.Minute)
				s.reap(6 * time.Minute)
			case strings.HasPrefix(c.where, "GitHub"):
				s.completed(3, first.Run)
			default:
				s.gitlab("Pipeline Hook", "d2", fmt.Appendf(nil, `{"object_kind":"pipeline","user":{"id":7,"username":"ann"},"project":{"id":5,"path_with_namespace":"group/sub/shop","default_branch":"trunk"},
					"object_attributes":{"id":31,"ref":"trunk","tag":false,"source":"api","status":"success","variables":[{"key":"PROCTOR_ID","value":%q}]}}`, first.Run))
			}
			if held, err := s.store.Find(t.Context(), []string{first.Run}); err != nil || held.State != webhook.Ended {
				t.Errorf("INV-45 %v, heard %v: its claim is %s, %v", c, heard, held.State, err)
			}
			if len(s.w.runs) != c.runs || c.runs == 2 && s.w.runs[1][trigger.InputIssue] != "8" {
				t.Errorf("INV-45 %v, heard %v: runs for %q, want %d", c, heard, s.issues(), c.runs)
			}
		}
	}
}

// A claim that was written before claims said so is read as one that may leave room.
func TestAClaimOfBeforeIsReadAsItWas(t *testing.T) {
	t.Parallel()
	var c webhook.Claim
	const before = `{"ID":"proctor-1","Keys":["body:x"],"Turn":"","Attempt":1,"State":2,"Created":"2026-03-04T12:00:00Z","Expires":"2026-03-04T12:30:00Z",
		"To":{"Forge":"github","Repo":{"Owner":"octo","Name":"shop","ID":5},"Install":6},"File":"proctor.yml","Issue":3}`
	if err := json.Unmarshal([]byte(before), &c); err != nil || c.Roomless || c.Issue != 3 || c.State != webhook.Dispatched || c.To.Install != 6 {
		t.Errorf("%+v, %v", c, err)
	}
	if now, err := json.Marshal(c); err != nil || strings.Contains(string(now), "Roomless") {
		t.Errorf("it is written as %s, %v", now, err)
	}
}

// talking is a board with comments on changes.
type talking struct {
	*board
	acknowledged []forge.Place
}

func (w *talking) CommentAt(context.Context, forge.Place, int64) (forge.Comment, error) {
	return forge.Comment{}, forge.ErrNotFound
}

func (w *talking) Answer(context.Context, forge.Place, string) (forge.Comment, error) {
	return forge.Comment{}, forge.ErrForbidden
}

func (w *talking) Acknowledge(_ context.Context, at forge.Place, _ int64, _ forge.Reaction) error {
	w.acknowledged = append(w.acknowledged, at)
	return nil
}

func TestACommandOnAMergeRequestIsAcknowledgedThere(t *testing.T) {
	t.Parallel()
	var w *talking
	r := newRig(t, func(c *webhook.Config) {
		c.Connect = func(context.Context, webhook.Target) (webhook.Forge, error) { return w, nil }
	})
	w = &talking{board: &board{world: r.w}}
	if g := r.gitlab("Note Hook", "d1", noted("MergeRequest", "/proctor status", 9)); g.Status != "dispatched" || !slices.Equal(w.acknowledged, []forge.Place{{Number: 3, Change: true}}) || len(r.w.reactions) != 0 {
		t.Errorf("%v, acknowledged at %v, %d reactions on an issue", g, w.acknowledged, len(r.w.reactions))
	}
	// The control: on an issue it is the issue's comment.
	if g := r.gitlab("Note Hook", "d2", noted("Issue", "/proctor status", 10)); g.Status != "dispatched" || len(w.acknowledged) != 1 || len(r.w.reactions) != 1 {
		t.Errorf("control: %v, acknowledged at %v, %d reactions on an issue", g, w.acknowledged, len(r.w.reactions))
	}
}
