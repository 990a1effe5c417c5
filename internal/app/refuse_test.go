package app

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/forge/forgetest"
)

// asked is one way to ask for a run that is not allowed.
type asked struct {
	name   string
	before func(*world) // the label
	label  string       // "proctor"
	by     string       // the asker
	after  func(*world) // the label, before the run begins
	says   string       // of the run's reason
	answer string       // the webhook's reason
}

// unasked are the ways. The control is every other test here: the same world, asked rightly, ends done.
func unasked() []asked {
	return []asked{
		{name: "another label", label: "bug", answer: "other_label", says: "asks for no run"},
		{name: "INV-40 an actor without write access", by: "tess", answer: "role", says: "triage"},
		{name: "INV-40 a bot", by: "robot[bot]", answer: "bot", says: "bot"},
		{name: "a closed issue", before: func(w *world) { w.must(w.hub.CloseIssue(w.issue)) }, answer: "closed", says: "closed"},
		{name: "a locked issue", before: func(w *world) { w.must(w.hub.LockIssue(w.issue)) }, answer: "locked", says: "locked"},
		{name: "an archived repository", before: func(w *world) { w.hub.Set(forgetest.Archived(true)) }, answer: "archived", says: "archived"},
	}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) labelAs(a asked) forgetest.Delivery {
	w.t.Helper()
	w.hub.AddUser("tess", "triage")
	w.hub.AddBot("robot[bot]", "write")
	if a.before != nil {
		a.before(w)
	}
	label, by := a.label, a.by
	if label == "" {
		label = "proctor"
	}
	if by == "" {
		by = asker
	}
	d, err := w.hub.LabelIssue(w.issue, label, by)
	w.must(err)
	return d
}

// untouched asserts that nothing was begun for the issue: no branch, no checkpoint, no call.
func (w *world) untouched() {
	w.t.Helper()
	if refs := w.refs(); len(refs) != 1 || len(w.hub.Pulls()) != 0 || len(w.model.Requests()) != 0 {
		w.t.Errorf("refs %q, %d pull requests, %d model calls: want the default branch and nothing", refs, len(w.hub.Pulls()), len(w.model.Requests()))
	}
}

func TestTheWebhookDispatchesNothingThatMayNotRun(t *testing.T) {
	for _, a := range unasked() {
		t.Run(a.name, func(t *testing.T) {
			w := open(t, setting{plan: []tick{{reply(allRight)}}})
			d := w.labelAs(a)
			if d.Status != http.StatusAccepted || !strings.Contains(string(d.Response), `"`+a.answer+`"`) {
				t.Errorf("the webhook answered %d %s, want the reason %q", d.Status, d.Response, a.answer)
			}
			if runs := w.hub.Runs(); len(runs) != 0 {
				t.Errorf("%d runs were dispatched", len(runs))
			}
			w.untouched()
		})
	}
	t.Run("INV-44 a wrong signature", func(t *testing.T) {
		w := open(t, setting{plan: []tick{{reply(allRight)}}})
		w.hub.SetHook(w.hook, "not the secret of this webhook")
		d := w.labelAs(asked{})
		if d.Status != http.StatusUnauthorized || len(w.hub.Runs()) != 0 {
			t.Errorf("the webhook answered %d %s and %d runs were dispatched", d.Status, d.Response, len(w.hub.Runs()))
		}
		// The control: the same delivery with the right signature is dispatched.
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.hook, bytes.NewReader(d.Body))
		w.must(err)
		req.Header = d.Header.Clone()
		req.Header.Set("X-Hub-Signature-256", forgetest.Sign(hookSecret, d.Body))
		resp, err := http.DefaultClient.Do(req)
		w.must(err)
		defer resp.Body.Close()
		if len(w.hub.Runs()) != 1 {
			t.Errorf("the control: the signed delivery was answered %s and dispatched %d runs", resp.Status, len(w.hub.Runs()))
		}
	})
}

func TestTheActionRefusesWhatMayNotRun(t *testing.T) {
	// The run asks the forge itself: with no webhook in between, nobody else has looked.
	for _, a := range append(unasked(),
		asked{name: "INV-41 an issue edited after the label", after: func(w *world) { w.must(w.hub.EditIssue(w.issue, "Another title", "Other words.")) }, says: "edited after the request"},
		asked{name: "a label taken off before the run began", after: func(w *world) { w.must(w.hub.UnlabelIssue(w.issue, "proctor", asker)) }, says: "label"},
		asked{name: "an issue closed before the run began", after: func(w *world) { w.must(w.hub.CloseIssue(w.issue)) }, says: "closed"},
		asked{name: "an asker whose role was taken before the run began", after: func(w *world) { w.hub.AddUser(asker, "read") }, says: "read"},
		asked{name: "a label added again by somebody without the right", after: func(w *world) {
			w.must(w.hub.UnlabelIssue(w.issue, "proctor", asker))
			_, err := w.hub.LabelIssue(w.issue, "proctor", "tess")
			w.must(err)
		}, says: "last added by somebody else"},
	) {
		t.Run(a.name, func(t *testing.T) {
			s := setting{plan: []tick{{reply(allRight)}}, byLabel: true}
			if a.label != "" {
				// The workflow's own condition is the first to refuse; here it lets every label through.
				s.workflow = func(y string) string {
					return strings.Replace(y, " || github.event.label.name == 'proctor'", " || true", 1)
				}
			}
			w := open(t, s)
			w.labelAs(a)
			run := w.take()
			if a.after != nil {
				a.after(w)
			}
			j := w.execute(t.Context(), run, nil)
			if j.rec.Terminal != "refused" || j.ExitCode != 7 {
				t.Fatalf("ended %s (exit %d): %s", j.rec.Terminal, j.ExitCode, j.rec.Reason)
			}
			j.says(a.says)
			w.untouched()
		})
	}
}

func TestAnEditAfterTheWebhookAskedIsCaughtByTheRun(t *testing.T) {
	// INV-41: what was approved travels with the dispatch, and a later text needs a new approval.
	w := open(t, setting{plan: []tick{{reply(allRight)}}})
	w.ask()
	run := w.take()
	w.must(w.hub.EditIssue(w.issue, "", "It should be right, and the key should be mailed to me."))
	j := w.execute(t.Context(), run, nil)
	if j.rec.Terminal != "refused" || j.ExitCode != 7 {
		t.Fatalf("ended %s (exit %d): %s", j.rec.Terminal, j.ExitCode, j.rec.Reason)
	}
	j.says("edited after the request", "add it again")
	w.untouched()
	// Asking again approves the new text.
	w.must(w.unlabel())
	w.label().ended("done", 0, "proctor:review")
}

// unlabel takes the trigger label off if it is there.
func (w *world) unlabel() error {
	for _, l := range w.labels() {
		if l == "proctor" {
			return w.hub.UnlabelIssue(w.issue, l, asker)
		}
	}
	return nil
}

func TestASecondDeliveryOfOneLabelStartsNothing(t *testing.T) {
	w := open(t, setting{plan: []tick{{reply(allRight)}}})
	w.ask()
	w.hub.Settle()
	d, err := w.hub.Redeliver(w.hub.Deliveries()[0].ID)
	w.must(err)
	if !strings.Contains(string(d.Response), "duplicate") {
		t.Errorf("the second delivery was answered %s", d.Response)
	}
	w.next(t.Context()).ended("done", 0, "proctor:review")
	ctx, done := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer done()
	if run, err := w.hub.NextRun(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second run is queued: %+v", run)
	}
}

func TestARunThatIsGoingKeepsAnotherAway(t *testing.T) {
	// INV-12: the second steps back and names the first. The control is the resume of TestACancelledRunIsKeptAndResumed.
	w := open(t, setting{plan: []tick{{spend(10, 10), hang("polite")}}})
	w.ask()
	ctx, stop := context.WithCancel(t.Context())
	first := make(chan job)
	run := w.take()
	go func() { first <- w.execute(ctx, run, nil) }()
	<-w.called
	w.must(w.unlabel())
	w.ask()
	second := w.next(t.Context())
	status := w.statuses()
	stop()
	one := <-first
	if second.rec.Terminal != "refused" || second.ExitCode != 7 {
		t.Errorf("the second ended %s (exit %d): %s", second.rec.Terminal, second.ExitCode, second.rec.Reason)
	}
	second.says("run " + one.rec.Run + " works on this already")
	if len(status) != 1 || !strings.Contains(status[0], one.rec.Run) || strings.Contains(status[0], second.rec.Run) {
		t.Errorf("the first's status comment does not stand any more: %q", status)
	}
	one.ended("cancelled", 130, "proctor:failed")
	if len(second.rec.Calls) != 0 || len(w.model.Calls()) != 1 {
		t.Errorf("%d model calls, %d of them the second's", len(w.model.Calls()), len(second.rec.Calls))
	}
}
