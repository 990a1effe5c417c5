package publish_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/publish"
)

func TestAHumansCommitOnOurBranchIsNeverLost(t *testing.T) {
	t.Parallel()
	setups := map[string]struct {
		// before is what the world looks like when the run begins, during what a person does meanwhile.
		before, during func(t *testing.T, w world)
		atAim          bool
		tip            string
	}{
		"INV-20 pushed during the run, new branch": {
			during: func(_ *testing.T, w world) { w.forge.Heads[branch] = humans }, tip: humans,
		},
		"INV-20 pushed during the run, open pull request": {
			before: func(t *testing.T, w world) { mustPublish(t, w, oldID) },
			during: func(_ *testing.T, w world) { w.forge.Heads[branch] = humans }, tip: humans,
		},
		"INV-20 pushed before the run": {
			before: func(t *testing.T, w world) { mustPublish(t, w, oldID); w.forge.Heads[branch] = humans },
			atAim:  true, tip: humans,
		},
		"INV-20 deleted during the run": {
			before: func(t *testing.T, w world) { mustPublish(t, w, oldID) },
			during: func(_ *testing.T, w world) { delete(w.forge.Heads, branch) }, tip: "",
		},
	}
	for name, c := range setups {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			if c.before != nil {
				c.before(t, w)
			}
			target, err := w.pub.Aim(t.Context(), branch, "main", nil)
			if err == nil {
				if c.atAim {
					t.Fatalf("aimed at %+v", target)
				}
				c.during(t, w)
				_, err = w.publish(t, proved(headID), target)
			}
			f := failure(t, err)
			if !errors.Is(err, publish.ErrMoved) || !strings.Contains(f.Reason(), branch) || f.Next == "" {
				t.Errorf("got %v (next %q)", err, f.Next)
			}
			if got := w.forge.Heads[branch]; got != c.tip {
				t.Errorf("branch is at %q, want %q", got, c.tip)
			}
			if !c.atAim && (f.Commit != headID || !strings.Contains(err.Error(), "kept on refs/proctor/42/run-42-1")) {
				t.Errorf("the commit is not told to be kept: %v", err)
			}
		})
	}
	t.Run("a round is asked for again on its pull request", func(t *testing.T) {
		t.Parallel()
		for to, want := range map[string]string{humans: "for another round", "": "add the label again"} {
			w := newWorld()
			mustPublish(t, w, oldID)
			target := w.aim(t)
			if w.forge.Heads[branch] = to; to == "" {
				delete(w.forge.Heads, branch)
			}
			rec := proved(headID)
			rec.Trigger.Revise = true
			_, err := w.publish(t, rec, target)
			if f := failure(t, err); !strings.Contains(f.Next, want) {
				t.Errorf("moved to %q, and the next step is %q", to, f.Next)
			}
			if control := proved(headID); to != "" {
				_, err := w.publish(t, control, target)
				if f := failure(t, err); strings.Contains(f.Next, want) {
					t.Errorf("control: a run that is no round: %q", f.Next)
				}
			}
		}
	})
	t.Run("control: without the lease the commit is gone", func(t *testing.T) {
		t.Parallel()
		w := newWorld()
		target := w.aim(t)
		w.forge.Heads[branch], w.push.Blind = humans, true
		if _, err := w.publish(t, proved(headID), target); err != nil || w.forge.Heads[branch] != headID {
			t.Errorf("err %v, branch at %s", err, w.forge.Heads[branch])
		}
	})
}

func TestABranchThatNobodyKnowsIsLeftAlone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ours []string
		pull *forge.PullRequest
		want publish.Target
	}{
		"unknown":                   {want: publish.Target{Branch: branch + "-2"}},
		"known from an earlier run": {ours: []string{humans}, want: publish.Target{Branch: branch, Tip: humans}},
		"closed pull request":       {ours: []string{humans}, pull: &forge.PullRequest{State: "closed"}, want: publish.Target{Branch: branch, Tip: humans}},
		"a person's pull request":   {pull: &forge.PullRequest{State: "open", Author: forge.User{ID: 5}}, want: publish.Target{Branch: branch + "-2"}},
		"a person's pull request with a forged marker": {
			pull: &forge.PullRequest{State: "open", Author: forge.User{ID: 5}, Body: "<!-- proctor:pull-request head=" + humans + " -->"},
			want: publish.Target{Branch: branch + "-2"},
		},
		"our pull request with our tip": {
			pull: &forge.PullRequest{State: "open", Number: 3, Author: forge.User{ID: 99}, Body: "<!-- proctor:pull-request head=" + humans + " -->"},
			want: publish.Target{Branch: branch, Tip: humans, Open: 3},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			w.forge.Heads[branch] = humans
			if c.pull != nil {
				c.pull.Head = branch
				w.forge.Pulls = []forge.PullRequest{*c.pull}
			}
			got := w.aim(t, c.ours...)
			if (got.Note != "") != (got.Branch != branch) {
				t.Errorf("note %q for branch %s", got.Note, got.Branch)
			}
			got.Note = ""
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestAClosedPullRequestGetsASuccessorAndIsNotReopened(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"closed", "merged"} {
		w := newWorld()
		mustPublish(t, w, oldID)
		w.forge.Pulls[0].State = state
		got, err := w.publish(t, proved(headID), w.aim(t, oldID))
		if err != nil {
			t.Fatal(err)
		}
		if got.Number != 8 || got.Updated || w.forge.Pulls[0].State != state || got.Branch != branch {
			t.Errorf("%s: %+v, first is %s", state, got, w.forge.Pulls[0].State)
		}
	}
}

func TestOnlyTheRunsOwnBranchIsEverPushed(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"main", "MAIN", "release", "refs/heads/x", "refs/tags/v1", "", "-f", "HEAD", "a:b", "+x", "a b", "a\nb", "x^"} {
		t.Run("INV-20 "+name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			_, aimErr := w.pub.Aim(t.Context(), name, "release", nil)
			_, err := w.pub.Publish(t.Context(), publish.Request{Record: proved(headID), Target: publish.Target{Branch: name}, Base: "release"})
			if aimErr == nil || err == nil || len(w.push.Pushed) != 0 {
				t.Errorf("aim: %v, publish: %v, pushed %v", aimErr, err, w.push.Pushed)
			}
		})
	}
	// Control: names of others' habits that are fine are pushed.
	for _, name := range []string{"proctor/issue-1", "feat(x)-y", "#12-fix", "a,b"} {
		w := newWorld()
		if _, err := w.pub.Publish(t.Context(), publish.Request{Record: proved(headID), Target: publish.Target{Branch: name}, Base: "main"}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNothingButAProvedCommitIsPushed(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*evidence.Record){
		"head is not the proved tick's": func(r *evidence.Record) { r.Head = &evidence.Commit{ID: humans, Tree: humans} },
		"no head":                       func(r *evidence.Record) { r.Head = nil },
		"not done":                      func(r *evidence.Record) { r.Finish(evidence.Overfit, "no", "") },
		"dry run":                       func(r *evidence.Record) { r.DryRun = true },
		"a red proof":                   func(r *evidence.Record) { r.Ticks[0].Proof[0].Status = "failed" },
		"no proof":                      func(r *evidence.Record) { r.Ticks[0].Proof = nil },
		"totals that do not add up":     func(r *evidence.Record) { r.Totals.CostUSD = 5 },
	} {
		t.Run("INV-15 "+name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			r := proved(headID)
			change(&r)
			_, err := w.publish(t, r, publish.Target{Branch: branch})
			if f := failure(t, err); f.Step != publish.StepCheck || len(w.push.Pushed) != 0 {
				t.Errorf("step %s, pushed %v", f.Step, w.push.Pushed)
			}
		})
	}
}
