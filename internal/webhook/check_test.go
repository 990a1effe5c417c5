package webhook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/trigger"
	"github.com/proctor-ci/proctor/internal/webhook"
)

const failedSHA = "8f3a1c0d8f3a1c0d8f3a1c0d8f3a1c0d8f3a1c0d"

// ciFailed is a workflow run that failed for a push of head; edit changes members of the run.
func ciFailed(id int, head, sha string, edit map[string]any) []byte {
	run := map[string]any{
		"id": id, "display_title": "Fix it", "status": "completed", "conclusion": "failure", "event": "push", "path": ".github/workflows/ci.yml",
		"head_branch": head, "head_sha": sha, "head_repository": map[string]any{"id": 5},
	}
	for k, v := range edit {
		run[k] = v
	}
	return event(map[string]any{"action": "completed", "workflow_run": run}, 0, nil)
}

func pipelineFailed(id int, ref, sha string) []byte {
	return fmt.Appendf(nil, `{"object_kind":"pipeline","user":{"id":7,"username":"ann"},"project":{"id":5,"path_with_namespace":"group/sub/shop","default_branch":"trunk"},
		"object_attributes":{"id":%d,"ref":%q,"sha":%q,"tag":false,"source":"push","status":"failed","variables":[]},"merge_request":null}`, id, ref, sha)
}

func checking(t *testing.T, change func(*webhook.Config)) *rig {
	t.Helper()
	r := newRig(t, func(c *webhook.Config) {
		c.Checks = true
		if change != nil {
			change(c)
		}
	})
	r.w.issue = func(n int) forge.Issue {
		return forge.Issue{Number: n, Title: title(n), State: "open", Labels: []string{"proctor:review"}}
	}
	return r
}

// INV-45: ten workflows that fail for one commit are one round, and the next commit is another. What is dispatched are ids, and nobody's.
func TestCIThatFailedForACommitAsksOnce(t *testing.T) {
	t.Parallel()
	r := checking(t, nil)
	if g := r.deliver("workflow_run", "d1", ciFailed(71, "proctor/issue-3", failedSHA, nil)); g.Status != "dispatched" {
		t.Fatal(g)
	}
	for n := 72; n < 81; n++ {
		if g := r.deliver("workflow_run", fmt.Sprint("d", n), ciFailed(n, "proctor/issue-3", failedSHA, map[string]any{"event": "pull_request"})); g.Status != "duplicate" {
			t.Errorf("workflow %d: %v", n, g)
		}
	}
	if len(r.w.runs) != 1 || r.w.calls != 0 {
		t.Fatalf("%d runs, %d roles asked for", len(r.w.runs), r.w.calls)
	}
	got, err := trigger.ParseDispatch(r.w.runs[0])
	if err != nil || got.Issue.Number != 3 || got.Check == nil || *got.Check != (trigger.CheckRef{ID: 71, SHA: failedSHA}) || got.Change.Head != "proctor/issue-3" || got.Actor != (trigger.Actor{}) {
		t.Errorf("%+v, %v", got, err)
	}
	in, err := url.ParseQuery(r.w.runs[0][trigger.InputRequest])
	if err != nil || len(in) != 3 || in.Get("check") != "71@"+failedSHA || in.Get("branch") != "proctor/issue-3" || in.Get("delivery") != "d1" {
		t.Errorf("request %v, %v", in, err)
	}
	next := strings.Repeat("0", 39) + "1"
	if g := r.deliver("workflow_run", "e1", ciFailed(90, "proctor/issue-3", next, nil)); g.Status != "dispatched" {
		t.Errorf("the next commit: %v", g)
	}
	if g := r.deliver("workflow_run", "e2", ciFailed(91, "proctor/issue-3-2", failedSHA, nil)); g.Status != "dispatched" {
		t.Errorf("another branch of the issue: %v", g)
	}
	if g := r.gitlab("Pipeline Hook", "g1", pipelineFailed(31, "proctor/issue-3", failedSHA)); g.Status != "dispatched" {
		t.Errorf("GitLab: %v", g)
	}
	if g := r.gitlab("Pipeline Hook", "g2", pipelineFailed(32, "proctor/issue-3", failedSHA)); g.Status != "duplicate" || r.w.dispatched() != 4 {
		t.Errorf("GitLab again: %v, %d runs", g, r.w.dispatched())
	}
}

// INV-45: the same at one moment, by eight workers, with a store and a forge that fail now and then.
func TestCIThatFailsAllAtOnceIsOneRound(t *testing.T) {
	t.Parallel()
	var n int
	var mu sync.Mutex
	r := checking(t, nil)
	shakes := checking(t, func(c *webhook.Config) {
		c.Store = shaky{webhook.NewMemory(r.clock.Now), func() (bool, bool) {
			mu.Lock()
			defer mu.Unlock()
			n++
			return n%7 == 3, n%11 == 4
		}}
		c.Now = r.clock.Now
	})
	todo := make([]int, 40)
	for round := 0; len(todo) > 0; round++ {
		if round == 30 {
			t.Fatalf("%d deliveries are still refused", len(todo))
		}
		var failed []int
		work := make(chan int)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for id := range work {
					if g := shakes.deliver("workflow_run", fmt.Sprint("d", id), ciFailed(id, "proctor/issue-3", failedSHA, nil)); g.Code/100 != 2 {
						mu.Lock()
						failed = append(failed, id)
						mu.Unlock()
					}
				}
			})
		}
		for i := range todo {
			work <- 100 + i
		}
		close(work)
		wg.Wait()
		todo = failed
		r.clock.Advance(pastLease)
	}
	if shakes.w.dispatched() != 1 {
		t.Errorf("%d runs for one commit", shakes.w.dispatched())
	}
}

// INV-40: CI asks nothing where the operator has not said that it may, on branches that are not named as ours, in forks and repositories
// that are not served; and a run of our own workflow never does.
func TestCIThatFailedElsewhereAsksNothing(t *testing.T) {
	t.Parallel()
	ours := ciFailed(71, "proctor/issue-3", failedSHA, nil)
	for name, c := range map[string]struct {
		change func(*webhook.Config)
		body   []byte
		want   string
	}{
		"control":               {nil, ours, "202 dispatched "},
		"switched off":          {func(c *webhook.Config) { c.Checks = false }, ours, "202 ignored checks_off"},
		"another repository":    {func(c *webhook.Config) { c.Repos = []string{"octo/other"} }, ours, "202 refused repository"},
		"the default branch":    {nil, ciFailed(71, "trunk", failedSHA, nil), "202 ignored other_branch"},
		"a person's branch":     {nil, ciFailed(71, "mine/issue-3", failedSHA, nil), "202 ignored other_branch"},
		"no issue's branch":     {nil, ciFailed(71, "proctor/issue-x", failedSHA, nil), "202 ignored other_branch"},
		"a fork":                {nil, ciFailed(71, "proctor/issue-3", failedSHA, map[string]any{"head_repository": map[string]any{"id": 6}}), "202 ignored other_run"},
		"our own workflow":      {nil, ciFailed(71, "proctor/issue-3", failedSHA, map[string]any{"path": ".github/workflows/proctor.yml"}), "202 ignored other_run"},
		"our own, with its ref": {nil, ciFailed(71, "proctor/issue-3", failedSHA, map[string]any{"path": ".github/workflows/proctor.yml@main"}), "202 ignored other_run"},
		"it passed":             {nil, ciFailed(71, "proctor/issue-3", failedSHA, map[string]any{"conclusion": "success"}), "202 ignored other_run"},
	} {
		r := checking(t, c.change)
		if g := r.deliver("workflow_run", "d1", c.body); g.String() != c.want || (r.w.dispatched() == 1) != (name == "control") {
			t.Errorf("%s: %v, %d runs", name, g, r.w.dispatched())
		}
	}
	for name, change := range map[string]func(*forge.Issue){
		"a closed issue":       func(i *forge.Issue) { i.State = "closed" },
		"a confidential issue": func(i *forge.Issue) { i.Confidential = true },
	} {
		r := checking(t, nil)
		was := r.w.issue
		r.w.issue = func(n int) forge.Issue { i := was(n); change(&i); return i }
		if g := r.gitlab("Pipeline Hook", "d1", pipelineFailed(31, "proctor/issue-3", failedSHA)); g.Status != "refused" || r.w.dispatched() != 0 {
			t.Errorf("%s: %v", name, g)
		}
	}
}

// INV-46: what CI asks for counts for its repository and for no account, and burns no claim where it is too much; nobody is told, since nobody asked.
func TestCIThatFailedCountsForItsRepository(t *testing.T) {
	t.Parallel()
	r := checking(t, func(c *webhook.Config) { c.Rates = webhook.Rates{Actor: 1, Repo: 2} })
	ask := func(n int) got {
		return r.deliver("workflow_run", fmt.Sprint("d", n), ciFailed(70+n, fmt.Sprint("proctor/issue-", n), failedSHA, nil))
	}
	for n := 1; n <= 2; n++ {
		if g := ask(n); g.Status != "dispatched" {
			t.Errorf("commit %d: %v", n, g)
		}
	}
	if g := ask(3); g.String() != "202 refused rate" || len(r.w.comments) != 0 {
		t.Errorf("one too many: %v, said %v", g, r.w.comments)
	}
	r.clock.Advance(time.Hour)
	if g := ask(3); g.Status != "dispatched" {
		t.Errorf("an hour later: %v", g)
	}
	r.w.fail = func(bool) error { return forge.ErrForbidden }
	if g := ask(4); g.String() != "202 failed permission" || len(r.w.comments) != 0 {
		t.Errorf("a dispatch that is refused: %v, said %v", g, r.w.comments)
	}
}

// What goes through the queue asks for the same run.
func TestCIThatFailedGoesThroughTheQueue(t *testing.T) {
	t.Parallel()
	k := &kept{}
	r := checking(t, func(c *webhook.Config) { c.Queue = k })
	if g := r.deliver("workflow_run", "d1", ciFailed(71, "proctor/issue-3", failedSHA, nil)); g.Status != "queued" || len(k.sent) != 1 {
		t.Fatal(g)
	}
	raw, err := json.Marshal(k.sent[0])
	if err != nil || strings.Contains(string(raw), "Fix it") {
		t.Errorf("%v, the message holds a person's text: %s", err, raw)
	}
	var m webhook.Message
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	if retry, err := r.h.Work(context.Background(), m); retry || err != nil || r.w.dispatched() != 1 {
		t.Errorf("retry %v, %v, %d runs", retry, err, r.w.dispatched())
	}
	m.Trigger.Check = nil
	if _, err := r.h.Work(context.Background(), m); err != webhook.ErrMessage {
		t.Errorf("without its subject: %v", err)
	}
}
