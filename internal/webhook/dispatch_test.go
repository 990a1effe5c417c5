package webhook_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/trigger"
	"github.com/proctor-ci/proctor/internal/webhook"
)

func TestADispatchIsSmallWhateverTheIssueSays(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	long := strings.Repeat("$(id) ${{ secrets.X }}\n", 3000)
	r.w.issue = func(n int) forge.Issue {
		return forge.Issue{Number: n, Title: title(n), Body: long, State: "open", Labels: []string{"proctor"}}
	}
	if g := r.deliver("issues", "d", labeled(1, map[string]any{"issue.body": long})); g.Status != "dispatched" {
		t.Fatalf("%v", g)
	}
	size := 0
	for k, v := range r.w.runs[0] {
		size += len(k) + len(v) + 6
		if strings.ContainsAny(v, "$\n{}") {
			t.Errorf("input %s is %q", k, v)
		}
	}
	if size > 2000 {
		t.Errorf("%d bytes of inputs, want at most 2000", size)
	}
}

func TestAFailedDispatchReleasesItsClaim(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		err     error
		want    string
		comment string
	}{
		{"rate limited", forge.ErrRateLimited, "503 retry forge", ""},
		{"E33 no such workflow", &forge.Error{Op: "dispatch", Status: 404, Kind: forge.ErrNotFound}, "202 failed not_found", "no `proctor.yml` in `.github/workflows` on the branch `trunk`"},
		{"E33 the forge refuses", &forge.Error{Op: "dispatch", Status: 422, Kind: forge.ErrInvalid}, "202 failed refused_by_forge", "`workflow_dispatch` trigger"},
		{"E35 a permission is missing", &forge.Error{Op: "dispatch", Status: 403, Kind: forge.ErrForbidden}, "202 failed permission", "Actions: read and write"},
	} {
		t.Run("INV-46 "+c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.w.fail = func(took bool) error {
				if took {
					return nil
				}
				return c.err
			}
			body := labeled(3, nil)
			if g := r.deliver("issues", "d1", body); g.String() != c.want {
				t.Errorf("%q, want %q", g, c.want)
			}
			if got := strings.Join(r.w.comments, "\n"); (c.comment == "") != (got == "") || !strings.Contains(got, c.comment) {
				t.Errorf("comments %q, want one with %q", got, c.comment)
			}
			r.w.fail = nil
			if g := r.deliver("issues", "d1", body); g.Status != "dispatched" || r.w.dispatched() != 1 {
				t.Errorf("the next delivery: %v, %d dispatches", g, r.w.dispatched())
			}
		})
	}
}

func TestAnAmbiguousDispatchIsLookedUpBeforeItIsRepeated(t *testing.T) {
	t.Parallel()
	t.Run("it had arrived", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, nil)
		r.w.fail = func(took bool) error {
			if took {
				return forge.ErrUnavailable
			}
			return nil
		}
		if g := r.deliver("issues", "d1", labeled(3, nil)); g.Status != "dispatched" {
			t.Errorf("%v, want it found at the forge", g)
		}
		if g := r.deliver("issues", "d1", labeled(3, nil)); g.Status != "duplicate" || r.w.dispatched() != 1 {
			t.Errorf("again: %v, %d dispatches", g, r.w.dispatched())
		}
	})
	t.Run("it had not", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, nil)
		r.w.fail = func(took bool) error {
			if took {
				return nil
			}
			return forge.ErrUnavailable
		}
		body := labeled(3, nil)
		for _, want := range []string{"503 retry unknown_outcome", "503 retry in_flight"} {
			if g := r.deliver("issues", "d1", body); g.String() != want {
				t.Errorf("%q, want %q", g, want)
			}
		}
		r.w.fail = nil
		r.clock.Advance(time.Minute)
		if g := r.deliver("issues", "d1", body); g.Status != "dispatched" || r.w.dispatched() != 1 {
			t.Errorf("after the lease: %v, %d dispatches", g, r.w.dispatched())
		}
	})
	t.Run("the process died after dispatching", func(t *testing.T) {
		t.Parallel()
		marks := 0
		r := newRig(t, func(c *webhook.Config) {
			c.Store = markless{c.Store, &marks}
		})
		body := labeled(3, nil)
		if g := r.deliver("issues", "d1", body); g.Status != "dispatched" {
			t.Fatalf("%v", g)
		}
		r.clock.Advance(time.Minute)
		if g := r.deliver("issues", "d1", body); g.Status != "dispatched" || r.w.dispatched() != 1 {
			t.Errorf("after the lease: %v, %d dispatches, want the run found", g, r.w.dispatched())
		}
		if marks < 4 {
			t.Errorf("%d marks tried, want the outcome written down more than once", marks)
		}
	})
}

type markless struct {
	webhook.Store
	tried *int
}

func (m markless) Mark(context.Context, string, int, webhook.State, time.Duration) error {
	*m.tried++
	return errStore
}

func TestAClaimWhoseRunNeverStartedIsReaped(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		blind bool
		lost  bool
		again string
	}{
		{"the run is there", false, false, "duplicate"},
		{"the run is not there", false, true, "dispatched"},
		{"nobody can tell", true, true, "dispatched"},
	} {
		t.Run("INV-46 "+c.name, func(t *testing.T) {
			t.Parallel()
			var r *rig
			r = newRig(t, func(cfg *webhook.Config) {
				cfg.Connect = func(context.Context, webhook.Target) (webhook.Forge, error) {
					if c.blind {
						return blind{r.w}, nil
					}
					return r.w, nil
				}
			})
			body := labeled(3, nil)
			if g := r.deliver("issues", "d1", body); g.Status != "dispatched" {
				t.Fatal(g)
			}
			if c.lost {
				r.w.runs = nil
			}
			if out, err := r.h.Reap(context.Background()); err != nil || out != (webhook.Reaped{}) {
				t.Errorf("before the lease is over: %+v, %v", out, err)
			}
			r.clock.Advance(31 * time.Minute)
			if _, err := r.h.Reap(context.Background()); err != nil {
				t.Error(err)
			}
			if g := r.deliver("issues", "d1", body); g.Status != c.again {
				t.Errorf("delivered again: %v, want %s", g, c.again)
			}
		})
	}
}

func TestARunsProgressIsNotedForItsOwnRepositoryOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	g := r.deliver("issues", "d1", labeled(3, nil))
	progress := func(status, repo string) got {
		return r.deliver("workflow_run", "p-"+status+repo, labeled(3, map[string]any{
			"action": status, "repository.name": repo,
			"workflow_run": runEvent("proctor #3 "+g.Run, status, nil),
		}))
	}
	state := func() string {
		c, err := r.store.Find(context.Background(), []string{g.Run})
		if err != nil {
			t.Fatal(err)
		}
		return c.State.String()
	}
	for _, step := range []struct{ status, repo, want, state string }{
		{"completed", "mallorys", "202 ignored other_run", "dispatched"},
		{"in_progress", "shop", "202 recorded running", "running"},
		{"queued", "shop", "202 recorded dispatched", "running"},
		{"completed", "shop", "202 recorded ended", "ended"},
	} {
		if got := progress(step.status, step.repo); got.String() != step.want || state() != step.state {
			t.Errorf("%s in %s: %v and %s, want %s and %s", step.status, step.repo, got, state(), step.want, step.state)
		}
	}
	r.clock.Advance(5 * 24 * time.Hour)
	if out, err := r.h.Reap(context.Background()); err != nil || out.Freed != 1 {
		t.Errorf("after the retention: %+v, %v", out, err)
	}
}

// INV-45, INV-47: the title of a run is whoever's who started it, so that the id in it ends no claim and frees no room.
func TestAStrangersRunWithOurIdInItsTitleIsNotOurs(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	g := r.deliver("issues", "d1", labeled(3, nil))
	ended := func(delivery string, edit map[string]any) (answer, state string) {
		said := r.deliver("workflow_run", delivery, labeled(3, map[string]any{
			"action": "completed", "workflow_run": runEvent("fix typo "+g.Run, "completed", edit),
		}))
		c, err := r.store.Find(context.Background(), []string{g.Run})
		if err != nil {
			t.Fatal(err)
		}
		return said.String(), c.State.String()
	}
	for name, edit := range map[string]map[string]any{
		"a fork's pull request":         {"event": "pull_request", "path": ".github/workflows/ci.yml", "head_branch": "patch-1"},
		"its head is named like trunk":  {"event": "pull_request", "path": ".github/workflows/ci.yml"},
		"our workflow on pull requests": {"event": "pull_request"},
		"another workflow, dispatched":  {"path": ".github/workflows/ci.yml"},
		"a file whose name ends alike":  {"path": ".github/workflows/not-proctor.yml"},
		"a file beside the workflows":   {"path": "proctor.yml"},
		"another branch":                {"head_branch": "mine"},
		"nothing said of its start":     {"event": nil, "path": nil, "head_branch": nil},
	} {
		if answer, state := ended("d-"+name, edit); answer != "202 ignored other_run" || state != "dispatched" {
			t.Errorf("%s: %s, and the claim is %s", name, answer, state)
		}
	}
	// The control: the dispatched run of our workflow, by the path that GitHub gives with its ref.
	if answer, state := ended("d2", map[string]any{"path": ".github/workflows/proctor.yml@trunk"}); answer != "202 recorded ended" || state != "ended" {
		t.Errorf("control: %s, and the claim is %s", answer, state)
	}
}

// INV-45: the same of a GitLab pipeline, whose variable is whoever's who started it. Its end makes room as a run's on GitHub does.
func TestAGitLabPipelineIsOursByItsSourceAndBranch(t *testing.T) {
	t.Parallel()
	r, b := boarded(t)
	r.w.issue = newWorld().issue
	first := r.gitlab("Issue Hook", "k1", labeledOnGitLab(3))
	b.queued = []int{8}
	r.w.issue = func(n int) forge.Issue {
		return forge.Issue{Number: n, Title: title(n), State: "open", Labels: []string{map[bool]string{true: "proctor:failed", false: "proctor:queued"}[n == 3]}}
	}
	told := func(key, project, source, ref, status string) (string, string) {
		g := r.gitlab("Pipeline Hook", key, fmt.Appendf(nil, `{"object_kind":"pipeline","user":{"id":7,"username":"ann"},
			"project":{"id":5,"path_with_namespace":%q,"default_branch":"trunk"},
			"object_attributes":{"id":31,"sha":"1111111111111111111111111111111111111111","ref":%q,"tag":false,"source":%q,"status":%q,"variables":[{"key":"PROCTOR_ID","value":%q}]}}`, project, ref, source, status, first.Run))
		c, err := r.store.Find(context.Background(), []string{first.Run})
		if err != nil {
			t.Fatal(err)
		}
		return g.String(), c.State.String()
	}
	for key, at := range map[string][4]string{ // a push that fails is people's CI, on no branch of a run's
		"a push":          {"group/sub/shop", "push", "trunk", "other_branch"},
		"a branch":        {"group/sub/shop", "api", "mine", "other_run"},
		"another project": {"group/sub/shed", "api", "trunk", "other_run"},
	} {
		if g, state := told(key, at[0], at[1], at[2], "failed"); g != "202 ignored "+at[3] || state != "dispatched" || r.w.dispatched() != 1 {
			t.Errorf("%s: %s, the claim is %s, %d runs", key, g, state, r.w.dispatched())
		}
	}
	// The control: ours runs, and ends.
	if g, state := told("k2", "group/sub/shop", "trigger", "trunk", "running"); g != "202 recorded running" || state != "running" {
		t.Errorf("control: %s, and the claim is %s", g, state)
	}
	for _, key := range []string{"k3", "k4"} { // told twice
		if g, state := told(key, "group/sub/shop", "trigger", "trunk", "failed"); g != "202 recorded ended" || state != "ended" || r.w.dispatched() != 2 {
			t.Errorf("control: %s, the claim is %s, %d runs", g, state, r.w.dispatched())
		}
	}
	if r.w.runs[1][trigger.InputIssue] != "8" {
		t.Errorf("its room went to %v", r.w.runs[1])
	}
}

func TestACallerThatGoesAwayDoesNotStopADispatch(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if g := send(r.h, githubRequest("issues", "d1", labeled(3, nil)).WithContext(ctx)); g.Status != "dispatched" || r.w.dispatched() != 1 {
		t.Errorf("%v", g)
	}
}

func TestTheSameEventDeliveredAtOnceIsOneRun(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	body := labeled(3, nil)
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			if g := r.deliver("issues", "d1", body); g.Code != http.StatusAccepted && g.Reason != "in_flight" {
				t.Errorf("%v", g)
			}
		})
	}
	wg.Wait()
	if r.w.dispatched() != 1 {
		t.Errorf("INV-12 %d runs, want one", r.w.dispatched())
	}
	// Another body and id of the very same label event is no second request either (E16).
	if g := r.deliver("issues", "d2", labeled(3, map[string]any{"organization": map[string]any{}})); g.Status != "duplicate" {
		t.Errorf("%v", g)
	}
	// The control: another label event on the issue is.
	r.w.event = func(int) (forge.LabelEvent, error) {
		return forge.LabelEvent{ID: 2, Actor: forge.User{Login: "ann", ID: 7}}, nil
	}
	if g := r.deliver("issues", "d3", labeled(3, map[string]any{"again": 1})); g.Status != "dispatched" {
		t.Errorf("control: %v", g)
	}
}
