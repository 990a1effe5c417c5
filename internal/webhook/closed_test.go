package webhook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

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
