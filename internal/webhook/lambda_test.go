package webhook_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/trigger"
	"github.com/proctor-ci/proctor/internal/webhook"
)

func envelopes(t *testing.T) (dir string, files []struct{ File, Status, Why string }) {
	t.Helper()
	dir = "../../../shared/corpus/function-url"
	raw, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil {
		t.Skipf("the corpus is not beside this checkout (%v); put it at ../shared/corpus to run this test", err)
	}
	var m struct {
		Envelopes []struct{ File, Status, Why string }
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	return dir, m.Envelopes
}

// echo reads the issue out of the event itself, so that what was approved is what is there.
func echo(event []byte) func(int) forge.Issue {
	var e struct {
		Body   string
		Base64 bool `json:"isBase64Encoded"`
	}
	_ = json.Unmarshal(event, &e)
	body := []byte(e.Body)
	if e.Base64 {
		body, _ = base64.StdEncoding.DecodeString(e.Body)
	}
	o := trigger.Options{Label: "agent-run"}
	tr, err := trigger.ParseGitHub("issues", body, o)
	if err != nil {
		tr, _ = trigger.ParseGitLab("Issue Hook", body, o)
	}
	return func(n int) forge.Issue {
		return forge.Issue{Number: n, Title: tr.Issue.Title, Body: tr.Issue.Body, State: "open", Labels: []string{"agent-run"}}
	}
}

// INV-44: function-URL and API Gateway events, base64 or not, verify alike. The refused ones are
// the controls of the accepted ones.
func TestEveryEnvelopeIsAnsweredAsItsManifestSays(t *testing.T) {
	t.Parallel()
	dir, files := envelopes(t)
	for _, f := range files {
		t.Run("INV-44 "+f.File, func(t *testing.T) {
			t.Parallel()
			raw, err := os.ReadFile(filepath.Join(dir, f.File))
			if err != nil {
				t.Fatal(err)
			}
			r := newRig(t, func(c *webhook.Config) {
				c.Options = trigger.Options{Label: "agent-run", Prefix: "/loop", Self: trigger.Actor{Login: "sample-loop-app[bot]"}}
			})
			r.w.issue = echo(raw)
			id := int64(1001)
			if strings.Contains(f.File, "gitlab") {
				id = 1
			}
			r.w.event = func(int) (forge.LabelEvent, error) {
				return forge.LabelEvent{ID: 77, Actor: forge.User{Login: "sample-dev", ID: id}, At: time.Unix(1_700_000_000, 0)}, nil
			}
			if strings.Contains(f.File, "redelivery-of-01") {
				first, err := os.ReadFile(filepath.Join(dir, "01-url-plain.json"))
				if err != nil {
					t.Fatal(err)
				}
				if a, err := r.h.Lambda(context.Background(), first); err != nil || a.StatusCode != 202 || r.w.dispatched() != 1 {
					t.Fatalf("the first delivery: %+v, %v", a, err)
				}
				r.w.runs = nil
			}
			a, err := r.h.Lambda(context.Background(), raw)
			if err != nil {
				t.Fatal(err)
			}
			dispatches := 0
			if strings.Contains(f.Status, "one dispatch") {
				dispatches = 1
			}
			if !codeFits(f.Status, a.StatusCode) || r.w.dispatched() != dispatches {
				t.Errorf("%d with %d dispatches (%s), want %s: %s", a.StatusCode, r.w.dispatched(), a.Body, f.Status, f.Why)
			}
			for _, leak := range []string{"6b5b31e057d01b9a", "d619062495d5e7e2", "half up"} {
				if strings.Contains(a.Body+r.log.String(), leak) {
					t.Errorf("the answer or the log carries %q", leak)
				}
			}
		})
	}
}

func codeFits(status string, code int) bool {
	switch {
	case strings.HasPrefix(status, "2xx"):
		return code/100 == 2
	case strings.HasPrefix(status, "401"):
		return code == 401
	case strings.HasPrefix(status, "405"):
		return code == 405
	case strings.Contains(status, "400"):
		return code == 400
	case strings.HasPrefix(status, "no panic, no dispatch"):
		return code/100 == 2
	}
	return false
}

func TestALambdaEventThatIsNoRequestIsAnsweredAndNeverFails(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for event, want := range map[string]int{
		`{"source":"aws.events","detail-type":"Scheduled Event"}`:                                                                   202,
		`{"requestContext":{"http":{"method":"POST"}},"isBase64Encoded":true,"body":"e30"}`:                                         400,
		`{"requestContext":{"http":{"method":"POST"}},"rawPath":"/elsewhere"}`:                                                      404,
		`{"requestContext":{"http":{"method":"POST"}},"headers":{"X-Hub-Signature-256":"a","x-hub-signature-256":"a"},"body":"{}"}`: 401,
		`[]`:     400,
		`"text"`: 400,
		`null`:   400,
	} {
		a, err := r.h.Lambda(context.Background(), []byte(event))
		if err != nil || a.StatusCode != want {
			t.Errorf("%s: %d, %v, want %d", event, a.StatusCode, err, want)
		}
	}
}

// hanging is a forge whose log can be read, and that answers no redelivery.
type hanging struct{ journal }

func (j *hanging) Redeliver(ctx context.Context, id int64) error {
	j.asked = append(j.asked, id)
	<-ctx.Done()
	return forge.ErrUnavailable
}

// reaped is a store that is asked for the claims that are due.
type reaped struct {
	webhook.Store
	alive int // times that there was time left for it
	err   error
}

func (s *reaped) Expired(ctx context.Context, limit int) ([]webhook.Claim, error) {
	if ctx.Err() == nil {
		s.alive++
	}
	claims, err := s.Store.Expired(ctx, limit)
	return claims, errors.Join(err, s.err)
}

// INV-46: a forge that hangs leaves each tick its time for the claims. The control is the sweep that asks on once the forge answers.
func TestAForgeThatHangsKeepsNoClaimFromTheReaper(t *testing.T) {
	t.Parallel()
	const tick = `{"source":"aws.events"}`
	rigged := func(t *testing.T, a webhook.Attempts, all *[]webhook.Attempt) (*rig, *reaped) {
		s := &reaped{}
		r := newRig(t, func(c *webhook.Config) {
			s.Store = c.Store
			c.Attempts, c.Store = a, s
		})
		for id := range int64(5) {
			*all = append(*all, webhook.Attempt{ID: id, Delivery: fmt.Sprint("d", id), Event: "issues", At: r.clock.Now().Add(-time.Hour)})
		}
		return r, s
	}
	invocation := func(t *testing.T, r *rig, ctx context.Context) {
		t.Helper()
		if a, err := r.h.Lambda(ctx, []byte(tick)); err != nil || a.StatusCode != 503 {
			t.Errorf("INV-46 a tick that could not be finished: %+v, %v", a, err)
		}
	}
	for name, limit := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		"in an invocation": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 30*time.Second)
		},
		"without a deadline": context.WithCancel,
	} {
		t.Run("INV-46 "+name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				j := &hanging{}
				r, s := rigged(t, j, &j.all)
				for range 3 {
					ctx, cancel := limit(t.Context())
					invocation(t, r, ctx)
					cancel()
				}
				if s.alive != 3 || len(j.asked) != 3 {
					t.Errorf("INV-46 in 3 ticks the reaper had time %d times, and %d redeliveries were asked for", s.alive, len(j.asked))
				}
				// Both that failed are told of.
				s.err = errStore
				ctx, cancel := limit(t.Context())
				defer cancel()
				invocation(t, r, ctx)
				for _, want := range []string{"the sweep is not finished", errStore.Error()} {
					if !strings.Contains(r.log.String(), want) {
						t.Errorf("the log does not say %q: %s", want, r.log)
					}
				}
			})
		})
	}
	j := &journal{}
	r, s := rigged(t, j, &j.all)
	if a, err := r.h.Lambda(t.Context(), []byte(tick)); err != nil || a.StatusCode != 202 || len(j.asked) != 5 || s.alive != 1 {
		t.Errorf("INV-46 control: %+v %v after %d redeliveries and %d rounds", a, err, len(j.asked), s.alive)
	}
}

func FuzzLambda(f *testing.F) {
	body := labeled(1, nil)
	good, err := json.Marshal(map[string]any{
		"rawPath": "/", "body": string(body), "requestContext": map[string]any{"http": map[string]any{"method": "POST"}},
		"headers": map[string]string{"x-github-event": "issues", "x-hub-signature-256": sign(secret, body)},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"httpMethod":"POST","path":"/github","multiValueHeaders":{"X-GitHub-Event":["a","b"]}}`))
	f.Add([]byte(`{"requestContext":{"http":{"method":"POST"},"stage":"x"},"rawPath":"/x","isBase64Encoded":true,"body":"AA=="}`))
	f.Fuzz(func(t *testing.T, event []byte) {
		r := newRig(t, nil)
		a, err := r.h.Lambda(context.Background(), event)
		if err != nil || a.StatusCode < 200 || a.StatusCode > 599 {
			t.Errorf("%d, %v", a.StatusCode, err)
		}
	})
}

func FuzzSignature(f *testing.F) {
	f.Add("sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17", "issues", []byte("Hello, World!"))
	f.Add("sha256=", "ping", []byte("{}"))
	f.Fuzz(func(t *testing.T, signature, event string, body []byte) {
		r := newRig(t, nil)
		req := githubRequest("x", "d", body)
		req.Header["X-Hub-Signature-256"] = []string{signature}
		req.Header["X-Github-Event"] = []string{event}
		g := send(r.h, req)
		if right := signature == sign(secret, body); !right && g.Code != 401 || right && g.Code == 401 {
			t.Errorf("%q over %q: %v", signature, body, g)
		}
	})
}
