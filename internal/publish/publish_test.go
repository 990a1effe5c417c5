package publish_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/publish"
	"github.com/proctor-ci/proctor/internal/publish/publishtest"
)

var (
	baseID = strings.Repeat("b", 40)
	headID = strings.Repeat("2", 40)
	oldID  = strings.Repeat("1", 40)
	humans = strings.Repeat("f", 40)
)

const branch = "proctor/issue-42"

// proved is the record of a run that proved commit id.
func proved(id string) evidence.Record {
	start := time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC)
	head := evidence.Commit{ID: id, Tree: strings.Repeat("c", 40)}
	gate := evidence.Gate{Class: "iteration", Name: "iteration", Command: "go test ./...", Where: "proof", Status: "passed"}
	r := evidence.Record{
		Schema: evidence.SchemaVersion, Run: "run-42-1", RunURL: "https://git.example/octo/shop/actions/runs/77",
		Started: start, Ended: start.Add(time.Minute),
		Trigger: evidence.Trigger{
			Forge: "github", Kind: "label", Repo: "octo/shop", Issue: 42, Title: "Fix the totals", Verified: true,
			Snapshot: strings.Repeat("a", 64), Actor: "maria", IssueURL: "https://git.example/octo/shop/issues/42",
		},
		Config: evidence.ConfigRef{Digest: strings.Repeat("d", 64)},
		Base:   evidence.Commit{ID: baseID, Tree: strings.Repeat("c", 40)}, Head: &head, Kept: "refs/proctor/42/run-42-1", Branch: branch,
		Ticks: []evidence.Tick{{
			N: 1, Millis: 1000, Commit: &head, Agent: evidence.AgentCall{Outcome: "ok"}, Verdict: "proved",
			Files: []evidence.FileDelta{{Path: "total.go", Status: "M", Added: 1}}, Proof: []evidence.Gate{gate},
		}},
	}
	r.Finish(evidence.Done, "every gate passed", "")
	r.Settle(0)
	return r
}

type world struct {
	forge *publishtest.Forge
	push  *publishtest.Pusher
	pub   *publish.Publisher
}

func newWorld() world {
	f := publishtest.New()
	p := &publishtest.Pusher{Forge: f}
	return world{f, p, &publish.Publisher{Forge: f, Push: p, Redact: evidence.NewRedactor("canary-secret-1")}}
}

func (w world) aim(t *testing.T, ours ...string) publish.Target {
	t.Helper()
	target, err := w.pub.Aim(t.Context(), branch, "main", ours)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

func (w world) publish(t *testing.T, r evidence.Record, target publish.Target) (publish.Result, error) {
	t.Helper()
	return w.pub.Publish(t.Context(), publish.Request{Record: r, Target: target, Base: "main"})
}

func failure(t *testing.T, err error) *publish.Failure {
	t.Helper()
	var f *publish.Failure
	if !errors.As(err, &f) {
		t.Fatalf("got %v, want a *Failure", err)
	}
	return f
}

func TestTheFirstRunOpensADraftThatClosesItsIssue(t *testing.T) {
	t.Parallel()
	w := newWorld()
	got, err := w.publish(t, proved(headID), w.aim(t))
	if err != nil {
		t.Fatal(err)
	}
	want := evidence.Published{Branch: branch, Commit: headID, Number: 7, URL: "https://git.example/octo/shop/pull/7", Draft: true}
	if d := cmp.Diff(want, got.Published); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if d := cmp.Diff([]string{branch + " " + headID}, w.push.Pushed); d != "" {
		t.Errorf("INV-15, INV-20: pushed -want +got:\n%s", d)
	}
	body := w.forge.Pulls[0].Body
	if !strings.Contains(body, "\nCloses #42\n") || evidence.PullRequestHead(body) != headID {
		t.Errorf("INV-50: body:\n%s", body)
	}
}

func TestASecondRunUpdatesTheOpenPullRequest(t *testing.T) {
	t.Parallel()
	w := newWorld()
	if _, err := w.publish(t, proved(oldID), w.aim(t)); err != nil {
		t.Fatal(err)
	}
	w.forge.Pulls[0].Title = "A better title by a person"
	w.forge.Pulls[0].Body += "\nReviewer's own checklist\n"
	target := w.aim(t)
	if want := (publish.Target{Branch: branch, Tip: oldID, Open: 7}); target != want {
		t.Fatalf("aim: %+v, want %+v", target, want)
	}
	got, err := w.publish(t, proved(headID), target)
	if err != nil {
		t.Fatal(err)
	}
	pr := w.forge.Pulls[0]
	switch {
	case len(w.forge.Pulls) != 1 || got.Number != 7 || !got.Updated || !got.Draft:
		t.Errorf("INV-50: %+v, %d pull requests", got, len(w.forge.Pulls))
	case w.forge.Heads[branch] != headID || evidence.PullRequestHead(pr.Body) != headID:
		t.Errorf("INV-15: branch %s, body of %s", w.forge.Heads[branch], evidence.PullRequestHead(pr.Body))
	case pr.Title != "A better title by a person" || !strings.HasSuffix(pr.Body, "Reviewer's own checklist\n"):
		t.Errorf("what people wrote is gone: %q\n%s", pr.Title, pr.Body)
	case strings.Count(pr.Body, evidence.PullRequestEnd) != 1:
		t.Errorf("our part is there twice:\n%s", pr.Body)
	}
}

func TestAReviseDoesNotCloseTheIssue(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*evidence.Record){
		"INV-50 revise":            func(r *evidence.Record) { r.Trigger.Revise = true },
		"INV-50 unverified issue":  func(r *evidence.Record) { r.Trigger.Verified = false },
		"INV-50 goal of no issue":  func(r *evidence.Record) { r.Trigger.Issue = 0 },
		"INV-50 title that closes": func(r *evidence.Record) { r.Trigger.Title, r.Trigger.Verified = "Closes #1, fixes octo/shop#2", false },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			r := proved(headID)
			change(&r)
			if _, err := w.publish(t, r, w.aim(t)); err != nil {
				t.Fatal(err)
			}
			pr := w.forge.Pulls[0]
			if text := pr.Title + pr.Body; strings.Contains(text, "#1") || strings.Contains(text, "#2") || strings.Contains(text, "#42") {
				t.Errorf("a closing reference is left: %q\n%s", pr.Title, pr.Body)
			}
		})
	}
}

func mustPublish(t *testing.T, w world, id string) {
	t.Helper()
	if _, err := w.publish(t, proved(id), w.aim(t)); err != nil {
		t.Fatal(err)
	}
}

func TestAnAnswerThatIsLostCreatesNothingTwice(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"CreatePullRequest"} {
		w := newWorld()
		lost := false
		w.forge.Lose = func(o string) bool { was := lost; lost = lost || o == op; return o == op && !was }
		got, err := w.publish(t, proved(headID), w.aim(t))
		if err != nil || len(w.forge.Pulls) != 1 || got.Number != 7 {
			t.Errorf("INV-50: %v, %+v, %d pull requests", err, got, len(w.forge.Pulls))
		}
	}
	t.Run("a push whose answer was lost", func(t *testing.T) {
		t.Parallel()
		w := newWorld()
		target := w.aim(t)
		w.push.Before = func() error {
			w.forge.Heads[branch] = headID // it arrived
			return errors.New("the remote end hung up unexpectedly")
		}
		if _, err := w.publish(t, proved(headID), target); err != nil {
			t.Error(err)
		}
	})
}

func TestAnAPIThatLagsBehindThePushIsWaitedFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		behind int
		ok     bool
	}{"for a moment": {3, true}, "for good": {1 << 30, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			target := w.aim(t)
			behind := c.behind
			w.forge.HeadsNow = func(name string) (string, error) {
				if behind--; behind >= 0 || w.forge.Heads[name] == "" {
					return "", publishtest.Error("look at branch", forge.ErrNotFound, 404, "", "")
				}
				return w.forge.Heads[name], nil
			}
			var waited time.Duration
			w.pub.Wait = func(_ context.Context, d time.Duration) error { waited += d; return nil }
			_, err := w.publish(t, proved(headID), target)
			if (err == nil) != c.ok || waited == 0 || waited > 10*time.Second {
				t.Errorf("err %v after %s", err, waited)
			}
		})
	}
}

func TestAPullRequestAgainstAnotherBaseIsLeftAndTold(t *testing.T) {
	t.Parallel()
	w := newWorld()
	mustPublish(t, w, oldID)
	w.forge.Pulls[0].Base = "release"
	got, err := w.publish(t, proved(headID), w.aim(t))
	if err != nil || len(got.Notes) != 1 || !strings.Contains(got.Notes[0], "release") || w.forge.Pulls[0].Base != "release" {
		t.Errorf("%v, %+v", err, got)
	}
}

func TestTroubleWithExtrasIsNotedAndThePullRequestStands(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.forge.Before = func(op string) error {
		if op == "AddLabelsToPullRequest" {
			return publishtest.Error(op, forge.ErrForbidden, 403, "no canary-secret-1", "")
		}
		return nil
	}
	got, err := w.pub.Publish(t.Context(), publish.Request{
		Record: proved(headID), Target: w.aim(t), Base: "main", Labels: []string{"bot"}, Reviewers: []string{"ada"},
	})
	if err != nil || got.Number != 7 || len(got.Notes) != 2 {
		t.Errorf("%v, %+v", err, got)
	}
	if s := strings.Join(got.Notes, "\n"); strings.Contains(s, "canary-secret-1") || !strings.Contains(s, "publish.reviewers") {
		t.Errorf("INV-34: notes: %s", s)
	}
	people := &withPeople{Forge: publishtest.New(), fail: errors.New("422 not a collaborator")}
	pub := &publish.Publisher{Forge: people, Push: &publishtest.Pusher{Forge: people.Forge}}
	got, err = pub.Publish(t.Context(), publish.Request{
		Record: proved(headID), Target: publish.Target{Branch: branch}, Base: "main", Reviewers: []string{"ada"}, Assignees: []string{"bo"},
	})
	if err != nil || got.Number != 7 || len(got.Notes) != 2 || people.asked != 2 {
		t.Errorf("%v, %+v, asked %d", err, got, people.asked)
	}
}

var _ forge.Requester = (*withPeople)(nil)

type withPeople struct {
	*publishtest.Forge
	fail  error
	asked int
}

func (w *withPeople) RequestReviewers(context.Context, int, []string) error { w.asked++; return w.fail }
func (w *withPeople) Assign(context.Context, int, []string) error           { w.asked++; return w.fail }

func TestADraftThatAPersonMarkedReadyIsToldAndLeft(t *testing.T) {
	t.Parallel()
	w := newWorld()
	mustPublish(t, w, oldID)
	w.forge.Pulls[0].Draft = false
	got, err := w.publish(t, proved(headID), w.aim(t))
	if err != nil || got.Draft || len(got.Notes) != 1 || !strings.Contains(got.Notes[0], "marked it ready") {
		t.Errorf("INV-50: %v, %+v", err, got)
	}
}

func TestBodiesKeepWithinTheForgesLimit(t *testing.T) {
	t.Parallel()
	r := proved(headID)
	for i := range 300 {
		r.Ticks[0].Files = append(r.Ticks[0].Files, evidence.FileDelta{Path: fmt.Sprintf("dir-%d/%s", i, strings.Repeat("ж", 200)), Status: "A"})
	}
	r.Notes = append(r.Notes, "the token canary-secret-1 was seen")
	people := "\n" + strings.Repeat("words of people ", 3000)
	for _, limit := range []int{12_000, 65_536, 1_048_576} {
		for _, old := range []string{"", people} {
			w := newWorld()
			w.forge.Limit.PullRequestBody = limit
			if old != "" {
				// A person opened it by hand after an earlier run could not.
				w.forge.Heads[branch] = oldID
				w.forge.Pulls = []forge.PullRequest{{Number: 7, State: "open", Draft: true, Head: branch, Body: old}}
			}
			if _, err := w.publish(t, r, w.aim(t, oldID)); err != nil {
				t.Fatalf("limit %d: %v", limit, err) // the fake refuses what is too long
			}
			body := w.forge.Pulls[0].Body
			cut := limit < len(evidence.PRBody(r, 10<<20))+len(old)
			if said := strings.Contains(body, "Cut to fit"); said != (cut && limit > 12_000 || limit == 12_000) {
				t.Errorf("INV-52: limit %d, old %d bytes: says that it was cut: %v", limit, len(old), said)
			}
			if old != "" && limit > len(old)+8<<10 && !strings.Contains(body, strings.TrimSpace(old)) {
				t.Errorf("limit %d: what people wrote is gone", limit)
			}
			if strings.Contains(body, "canary-secret-1") {
				t.Errorf("INV-34: limit %d: the body holds a secret", limit)
			}
		}
	}
}
