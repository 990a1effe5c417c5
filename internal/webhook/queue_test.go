package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/trigger"
	"github.com/proctor-ci/proctor/internal/webhook"
	"github.com/proctor-ci/proctor/internal/webhook/bolt"
	"github.com/proctor-ci/proctor/internal/webhook/claimtest"
)

// kept is a queue that shows what was sent.
type kept struct {
	mu   sync.Mutex
	sent []webhook.Message
	err  error
}

func (k *kept) Send(_ context.Context, m webhook.Message) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err == nil {
		k.sent = append(k.sent, m)
	}
	return k.err
}

func queued(t testing.TB) (*rig, *kept) {
	t.Helper()
	k := &kept{}
	return newRig(t, func(c *webhook.Config) { c.Queue = k }), k
}

func TestAQueuedDeliveryIsAnsweredFirstAndDispatchedByAWorker(t *testing.T) {
	t.Parallel()
	direct := newRig(t, nil)
	direct.deliver("issues", "d1", labeled(3, nil))
	r, k := queued(t)
	if g := r.deliver("issues", "d1", labeled(3, nil)); g.Code != 202 || g.Status != "queued" || r.w.dispatched() != 0 || len(k.sent) != 1 {
		t.Fatalf("%v, %d dispatched, %d queued", g, r.w.dispatched(), len(k.sent))
	}
	raw, err := json.Marshal(k.sent[0])
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), title(3)) || strings.Contains(string(raw), "as said") {
		t.Errorf("the message holds a person's text: %s", raw)
	}
	var m webhook.Message
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	if retry, err := r.h.Work(context.Background(), m); retry || err != nil {
		t.Fatalf("retry %v, %v", retry, err)
	}
	if d := cmp.Diff(direct.w.runs, r.w.runs); d != "" {
		t.Errorf("by way of the queue another run was asked for: %s", d)
	}
	if retry, _ := r.h.Work(context.Background(), m); retry || r.w.dispatched() != 1 {
		t.Errorf("the message again: retry %v, %d dispatched", retry, r.w.dispatched())
	}
}

func TestWhatTheEventAnswersIsNotQueued(t *testing.T) {
	t.Parallel()
	r, k := queued(t)
	for want, g := range map[string]got{
		"other_label": r.deliver("issues", "d1", labeled(3, map[string]any{"label.name": "bug"})),
		"closed":      r.deliver("issues", "d2", labeled(3, map[string]any{"issue.state": "closed"})),
		"event":       r.deliver("star", "d3", []byte(`{}`)),
		"ping":        r.deliver("ping", "d4", []byte(`{}`)),
	} {
		if g.Code != 202 || g.Reason != want {
			t.Errorf("%v, want %s", g, want)
		}
	}
	if len(k.sent) != 0 {
		t.Errorf("%d messages", len(k.sent))
	}
	k.err = errStore
	if g := r.deliver("issues", "d5", labeled(3, nil)); g.Code != 503 || g.Reason != "queue" {
		t.Errorf("a queue that fails: %v, want a failed delivery", g)
	}
}

func TestABudgetCommandKeepsItsAmountOnTheWay(t *testing.T) {
	t.Parallel()
	r, k := queued(t)
	r.deliver("issue_comment", "d1", commented(3, 9, "/proctor budget +5 with some words", nil))
	r.deliver("issue_comment", "d2", commented(3, 10, "/proctor budget +5", nil))
	r.deliver("issue_comment", "d3", commented(3, 11, "/proctor fix what I said", nil))
	for _, m := range k.sent {
		if _, err := r.h.Work(context.Background(), m); err != nil {
			t.Fatal(err)
		}
	}
	all := fmt.Sprint(r.w.runs)
	if len(r.w.runs) != 2 || !strings.Contains(all, "budget+%2B5") || strings.Contains(fmt.Sprint(k.sent), "what I said") {
		t.Errorf("runs %s", all)
	}
}

func TestABatchNamesTheMessagesThatMustComeAgain(t *testing.T) {
	t.Parallel()
	r, k := queued(t)
	for n := range 3 {
		r.deliver("issues", fmt.Sprintf("d%d", n+1), labeled(n+1, nil))
	}
	type record struct {
		ID     string `json:"messageId"`
		Body   string `json:"body"`
		Source string `json:"eventSource"`
	}
	var recs []record
	for i, m := range k.sent {
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		recs = append(recs, record{fmt.Sprintf("m%d", i+1), string(b), "aws:sqs"})
	}
	recs = append(recs, record{"m4", "{", "aws:sqs"}, record{"m5", recs[0].Body, "aws:kinesis"}, record{"m6", `{"Version":99}`, "aws:sqs"})
	event, err := json.Marshal(map[string]any{"Records": recs})
	if err != nil {
		t.Fatal(err)
	}
	r.w.event = func(n int) (forge.LabelEvent, error) {
		if n == 2 {
			return forge.LabelEvent{}, forge.ErrUnavailable
		}
		return forge.LabelEvent{ID: int64(1000 + n), Actor: forge.User{Login: "ann", ID: 7}, At: time.Unix(1_700_000_000, 0)}, nil
	}
	out, err := r.h.Invoke(context.Background(), event)
	if err != nil {
		t.Fatal(err)
	}
	want := webhook.BatchResponse{BatchItemFailures: []webhook.BatchItemFailure{{ItemIdentifier: "m2"}, {ItemIdentifier: "m4"}, {ItemIdentifier: "m5"}, {ItemIdentifier: "m6"}}}
	if d := cmp.Diff(want, out); d != "" || r.w.dispatched() != 2 {
		t.Errorf("%d dispatched; %s", r.w.dispatched(), d)
	}
}

// INV-45 by way of the durable queue: answered deliveries in any number and order, a worker that is lost now and then with its
// message in hand, and a process that starts anew in between.
func TestTheQueueLosesNothingAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	const events, deliveries = 60, 200
	rng := rand.New(rand.NewPCG(3, 45))
	path := filepath.Join(t.TempDir(), "webhook.db")
	r := newRig(t, nil)
	var f *bolt.File
	reopen := func() {
		if f != nil {
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
		var err error
		if f, err = bolt.Open(path, r.clock.Now); err != nil {
			t.Fatal(err)
		}
		world, clock := r.w, r.clock
		r = newRig(t, func(c *webhook.Config) {
			c.Store, c.Queue, c.Now = f, f, clock.Now
			c.Connect = func(context.Context, webhook.Target) (webhook.Forge, error) { return world, nil }
		})
		r.w, r.clock = world, clock
	}
	reopen()
	r.w.fail = func(bool) error {
		if rng.IntN(8) == 0 {
			return forge.ErrUnavailable
		}
		return nil
	}
	for _, i := range rng.Perm(deliveries) {
		n := i%events + 1
		if g := r.deliver("issues", fmt.Sprintf("d%d", n), labeled(n, nil)); g.Status != "queued" {
			t.Fatal(g)
		}
	}
	for idle := 0; idle < 70; {
		m, err := f.Take(context.Background(), 10*time.Second)
		if errors.Is(err, webhook.ErrEmpty) {
			idle++
			r.clock.Advance(30 * time.Second)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		idle = 0
		retry, err := r.h.Work(context.Background(), m.Message)
		switch lost := rng.IntN(10); {
		case err != nil:
			t.Fatal(err)
		case lost == 0:
		case lost == 1:
			reopen()
		case retry:
			err = f.Later(context.Background(), m, time.Second)
		default:
			err = f.Done(context.Background(), m)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	perIssue := map[string]int{}
	for _, in := range r.w.runs {
		perIssue[in[trigger.InputIssue]]++
	}
	if len(perIssue) != events || len(r.w.runs) != events {
		t.Errorf("INV-45: %d runs for %d of %d label events", len(r.w.runs), len(perIssue), events)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// spoil writes bytes that are no message in front of what is in the queue, and a claim that cannot be read.
func spoil(t *testing.T, path string, entries map[string]string) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for k, v := range entries {
			if err := tx.Bucket([]byte("queue")).Put([]byte(k), []byte(v)); err != nil {
				return err
			}
		}
		if err := tx.Bucket([]byte("claims")).Put([]byte("torn"), []byte(`{"ID":"to`)); err != nil {
			return err
		}
		return tx.Bucket([]byte("due")).Put([]byte("\x00\x00\x00\x00\x00\x00\x00\x00torn"), nil)
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// INV-45: an entry that nobody can read is set aside and told of; those behind it are served, and a file with one opens.
func TestAMessageThatCannotBeReadHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "webhook.db")
	clock := claimtest.NewClock()
	f, err := bolt.Open(path, clock.Now)
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, func(c *webhook.Config) { c.Store, c.Queue, c.Now = f, f, clock.Now })
	for n := range 3 {
		r.deliver("issues", fmt.Sprint("d", n), labeled(n+1, nil))
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	spoil(t, path, map[string]string{"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01": "\xff\xfe", "short": "{}", strings.Repeat("\x00", 15) + "\x63": `{"Message":{"Version":99,"Delivery":"other"},"Taken":true}`})
	if f, err = bolt.Open(path, clock.Now); err != nil {
		t.Fatalf("the file is not opened any more: %v", err)
	}
	defer func() { _ = f.Close() }()
	world := r.w
	r = newRig(t, func(c *webhook.Config) {
		c.Store, c.Queue, c.Now = f, f, clock.Now
		c.Connect = func(context.Context, webhook.Target) (webhook.Forge, error) { return world, nil }
	})
	clock.Advance(time.Second)
	steps := 0
	for webhook.DrainOne(r.h, t.Context(), f) {
		steps++
	}
	asides, err := f.Asides()
	if err != nil || len(asides) != 3 || world.dispatched() != 3 || steps != 6 {
		t.Fatalf("%d dispatched in %d steps and %+v set aside (%v), want three and three", world.dispatched(), steps, asides, err)
	}
	if n := strings.Count(r.log.String(), "set aside"); n != 3 {
		t.Errorf("the log tells of %d: %s", n, r.log)
	}
	// A claim that cannot be read is told of, and the rest are reaped.
	clock.Advance(31 * time.Minute)
	got, err := r.h.Reap(t.Context())
	if err == nil || !strings.Contains(err.Error(), "torn") || got.Advance != 3 {
		t.Errorf("reaped %+v, %v; want the three that can be read, and a word on the fourth", got, err)
	}
	if n, err := f.Requeue(); err != nil || n != 1 {
		t.Errorf("%d back in the queue, %v; want the one that can be read", n, err)
	}
	if m, err := f.Take(t.Context(), time.Minute); err != nil || m.Message.Delivery != "other" {
		t.Errorf("%+v %v", m, err)
	}
	if asides, err = f.Asides(); err != nil || len(asides) != 2 || asides[0].Message != nil || len(asides[0].Raw) == 0 {
		t.Errorf("left aside: %+v %v", asides, err)
	}
}

func TestAMessageThatFailsForThreeDaysIsSetAside(t *testing.T) {
	t.Parallel()
	clock := claimtest.NewClock()
	f, err := bolt.Open(filepath.Join(t.TempDir(), "webhook.db"), clock.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	r := newRig(t, func(c *webhook.Config) { c.Store, c.Queue, c.Now = f, f, clock.Now })
	r.deliver("issues", "d1", labeled(3, nil))
	r.w.roleErr = forge.ErrUnavailable
	for tries := 0; webhook.DrainOne(r.h, t.Context(), f); tries++ {
		clock.Advance(20 * time.Minute)
		if tries > 72*3 {
			t.Fatal("it is tried for ever")
		}
	}
	asides, err := f.Asides()
	if err != nil || len(asides) != 1 || asides[0].Why != "it failed for three days" || asides[0].Attempts < 200 || asides[0].Message.Trigger.Issue.Number != 3 {
		t.Errorf("%+v %v", asides, err)
	}
	if !strings.Contains(r.log.String(), "set aside after three days") {
		t.Error("the log does not tell of it")
	}
}

// A batch whose messages cannot be told apart comes again whole: any answer to it would delete them.
func TestABatchWithoutIdsIsNotAnswered(t *testing.T) {
	t.Parallel()
	r, _ := queued(t)
	for event, good := range map[string]bool{
		`{"Records":[{"messageId":"m1","eventSource":"aws:sqs","body":7}]}`:      true,
		`{"Records":[{"messageId":"m1","eventSource":"aws:sqs"},{"body":"{}"}]}`: false,
		`{"Records":[null]}`: false,
		`{"Records":["text",{"messageId":"m1","eventSource":"aws:sqs"}]}`: false,
	} {
		out, err := r.h.Invoke(t.Context(), []byte(event))
		if (err == nil) != good {
			t.Errorf("%s: %v %v", event, out, err)
		}
		if b, ok := out.(webhook.BatchResponse); good && (!ok || len(b.BatchItemFailures) != 1) {
			t.Errorf("%s: %+v, want m1 again", event, out)
		}
	}
}

func TestASecretThatWasRotatedIsFetchedAtMostOnceAMinute(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	current, loads := secret, 0
	handlers := map[string]*webhook.Handler{secret: r.h}
	l := &webhook.Lazy{Now: r.clock.Now, Log: slog.New(slog.DiscardHandler), Load: func(context.Context) (*webhook.Handler, error) {
		loads++
		if handlers[current] == nil {
			handlers[current] = newRig(t, func(c *webhook.Config) { c.GitHubSecrets = []string{current} }).h
		}
		return handlers[current], nil
	}}
	const next = "the-secret-that-comes-next"
	ping := func(key string) int {
		t.Helper()
		body := `{"zen":"x","hook_id":1}`
		event, err := json.Marshal(map[string]any{"rawPath": "/", "body": body, "requestContext": map[string]any{"http": map[string]string{"method": "POST"}},
			"headers": map[string]string{"x-github-event": "ping", "x-hub-signature-256": sign(key, []byte(body))}})
		if err != nil {
			t.Fatal(err)
		}
		out, err := l.Invoke(context.Background(), event)
		if err != nil {
			t.Fatal(err)
		}
		return out.(webhook.LambdaResponse).StatusCode
	}
	if code := ping(secret); code != 202 || loads != 1 {
		t.Fatalf("%d after %d loads", code, loads)
	}
	current = next
	if code := ping(next); code != 401 || loads != 1 {
		t.Errorf("within a minute: %d after %d loads, want a refusal and no look", code, loads)
	}
	r.clock.Advance(time.Minute)
	if code := ping(next); code != 202 || loads != 2 {
		t.Errorf("after a minute: %d after %d loads, want the new secret", code, loads)
	}
	for range 50 {
		ping("a-secret-of-somebody-else")
	}
	if loads != 2 {
		t.Errorf("strangers caused %d more looks", loads-2)
	}
}

// A round takes more than a batch, as long as it gets on: a busy hour leaves more than a schedule has rounds for.
func TestARoundOfTheReaperTakesBatchAfterBatch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		state webhook.State
		want  webhook.Reaped
	}{
		"over for long":       {webhook.Ended, webhook.Reaped{Freed: 250}},
		"nobody can be asked": {webhook.Dispatched, webhook.Reaped{Failed: 250}},
	} {
		r := newRig(t, func(c *webhook.Config) {
			c.Connect = func(context.Context, webhook.Target) (webhook.Forge, error) { return nil, forge.ErrUnavailable }
		})
		for n := range 250 {
			held, err := r.store.Claim(t.Context(), webhook.Claim{ID: fmt.Sprint("c", n), To: webhook.Target{Forge: "github"}}, time.Minute)
			if err == nil {
				err = r.store.Mark(t.Context(), held.ID, held.Attempt, c.state, time.Minute)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		r.clock.Advance(time.Hour)
		if got, err := r.h.Reap(t.Context()); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, c.want)
		}
	}
}

// INV-46: a repository that cannot be asked about keeps no other from the reaper, however many claims it left. They are given back when no run can be
// left of them, where the forge refuses to say; while it is away they are kept.
func TestClaimsThatNobodyCanBeAskedAboutHoldUpNoOther(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err   error
		later webhook.Reaped // eight hours later
	}{
		"forbidden":     {forge.ErrForbidden, webhook.Reaped{Freed: 100}},
		"moved":         {forge.ErrMoved, webhook.Reaped{Freed: 100}},
		"control: away": {forge.ErrUnavailable, webhook.Reaped{Failed: 100}},
	} {
		asked := 0
		var b *board
		r := newRig(t, func(cfg *webhook.Config) {
			cfg.Connect = func(_ context.Context, to webhook.Target) (webhook.Forge, error) {
				if to.Repo.Name == "bad" {
					asked++
					return nil, c.err
				}
				return b, nil
			}
		})
		b = &board{world: r.w}
		hold := func(id, repo string) {
			to := webhook.Target{Forge: trigger.GitHub, Repo: trigger.Repo{Owner: "octo", Name: repo, ID: 5}}
			if _, err := r.store.Claim(t.Context(), webhook.Claim{ID: id, To: to}, time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		for n := range 100 {
			hold(fmt.Sprint("bad", n), "bad")
		}
		r.clock.Advance(time.Second)
		hold("good", "good")
		r.clock.Advance(time.Hour)
		if got, err := r.h.Reap(t.Context()); err != nil || got != (webhook.Reaped{Freed: 1, Failed: 100}) || asked != 3 {
			t.Errorf("INV-46 %s: %+v, %v, %d questions; want the good one freed after three", name, got, err, asked)
		}
		r.clock.Advance(7 * time.Hour)
		if got, err := r.h.Reap(t.Context()); err != nil || got != c.later {
			t.Errorf("INV-46 %s, eight hours later: %+v, %v, want %+v", name, got, err, c.later)
		}
	}
}

// INV-45: the end of a run that was queued before messages told a run's file and branch is still its end, where the forge has that run for the claim.
func TestAnEndThatWasQueuedBeforeRunsHadABranchIsLookedUp(t *testing.T) {
	t.Parallel()
	const before = `{"Version":1,"Delivery":"d2","Event":"workflow_run","Body":"body:x","Trigger":{"Forge":"github","Kind":"run","Event":"workflow_run","Action":"completed",
		"Repo":{"Owner":"octo","Name":"shop","ID":5,"DefaultBranch":"trunk"},"Install":6,"Actor":{"Login":"ann","ID":7},"ID":%q,"Run":{"ID":%d,"Title":"","Status":"completed","Conclusion":"failure"}}}`
	for name, c := range map[string]struct {
		run   int64 // that the message tells of; the forge has run 1
		away  bool
		retry bool
		state webhook.State
	}{
		"ours":              {1, false, false, webhook.Ended},
		"another's":         {8, false, false, webhook.Dispatched},
		"the forge is away": {1, true, true, webhook.Dispatched},
	} {
		away := false
		var r *rig
		r = newRig(t, func(cfg *webhook.Config) {
			cfg.Connect = func(context.Context, webhook.Target) (webhook.Forge, error) {
				if away {
					return nil, forge.ErrUnavailable
				}
				return r.w, nil
			}
		})
		first := r.deliver("issues", "d1", labeled(3, nil))
		away = c.away
		var m webhook.Message
		if err := json.Unmarshal(fmt.Appendf(nil, before, first.Run, c.run), &m); err != nil {
			t.Fatal(err)
		}
		retry, err := r.h.Work(t.Context(), m)
		held, ferr := r.store.Find(t.Context(), []string{first.Run})
		if err != nil || ferr != nil || retry != c.retry || held.State != c.state {
			t.Errorf("INV-45 %s: again %v, %v; the claim is %s, %v; log %s", name, retry, err, held.State, ferr, r.log)
		}
	}
}
