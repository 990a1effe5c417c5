package webhook_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/trigger"
	"github.com/proctor-ci/proctor/internal/webhook"
	"github.com/proctor-ci/proctor/internal/webhook/claimtest"
)

// secret is the corpus' own; tokens are built so that no scanner takes them for real.
const secret = "It's a Secret to Everybody"

// world is a forge with one repository, seen through the handler's interface. Its failures are told
// by the fail function, which is asked before (took=false) and after (took=true) a dispatch takes place.
type world struct {
	mu        sync.Mutex
	role      forge.Role
	roleErr   error
	issueErr  error
	issue     func(number int) forge.Issue
	event     func(number int) (forge.LabelEvent, error)
	fail      func(took bool) error
	runs      []map[string]string // inputs of every dispatch that took place
	refs      []string
	comments  []string
	reactions []forge.Reaction
	calls     int
	over      bool // what was dispatched has ended
}

// newWorld is a world in which a labelled issue may run.
func newWorld() *world {
	return &world{
		role: forge.RoleWrite,
		issue: func(n int) forge.Issue {
			return forge.Issue{Number: n, Title: title(n), Body: "as said", State: "open", Labels: []string{"proctor"}}
		},
		event: func(n int) (forge.LabelEvent, error) {
			return forge.LabelEvent{ID: int64(1000 + n), Actor: forge.User{Login: "ann", ID: 7}, At: time.Unix(1_700_000_000, 0)}, nil
		},
	}
}

func title(n int) string { return fmt.Sprintf("Issue %d", n) }

func (w *world) Role(context.Context, string) (forge.Role, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls++
	return w.role, w.roleErr
}

func (w *world) Issue(_ context.Context, n int) (forge.Issue, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.issue(n), w.issueErr
}

func (w *world) LabelEvent(_ context.Context, n int, _ string) (forge.LabelEvent, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.event(n)
}

func (w *world) Dispatch(_ context.Context, _, ref string, inputs map[string]string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fail != nil {
		if err := w.fail(false); err != nil {
			return err
		}
	}
	w.runs, w.refs = append(w.runs, inputs), append(w.refs, ref)
	if w.fail != nil {
		return w.fail(true)
	}
	return nil
}

func (w *world) FindRun(_ context.Context, _, branch, id string, _ time.Time) (forge.Run, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, in := range w.runs {
		if in[trigger.InputID] == id && w.refs[i] == branch {
			return forge.Run{ID: 1, Title: "proctor " + id, Status: map[bool]string{true: "completed", false: "queued"}[w.over]}, nil
		}
	}
	return forge.Run{}, forge.ErrNotFound
}

func (w *world) CreateComment(_ context.Context, _ int, body string) (forge.Comment, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.comments = append(w.comments, body)
	return forge.Comment{ID: 1}, nil
}

func (w *world) React(_ context.Context, _ int, _ int64, r forge.Reaction) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reactions = append(w.reactions, r)
	return nil
}

func (w *world) dispatched() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.runs)
}

// blind is a world that can neither find runs nor write.
type blind struct{ w *world }

func (b blind) Role(ctx context.Context, l string) (forge.Role, error) { return b.w.Role(ctx, l) }
func (b blind) Issue(ctx context.Context, n int) (forge.Issue, error)  { return b.w.Issue(ctx, n) }
func (b blind) LabelEvent(ctx context.Context, n int, l string) (forge.LabelEvent, error) {
	return b.w.LabelEvent(ctx, n, l)
}
func (b blind) Dispatch(ctx context.Context, f, r string, in map[string]string) error {
	return b.w.Dispatch(ctx, f, r, in)
}

// rig is a handler with its world, store, clock and log.
type rig struct {
	h     *webhook.Handler
	w     *world
	store webhook.Store
	clock *claimtest.Clock
	log   *syncBuffer
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func newRig(t testing.TB, change func(*webhook.Config)) *rig {
	t.Helper()
	r := &rig{w: newWorld(), clock: claimtest.NewClock(), log: &syncBuffer{}}
	r.store = webhook.NewMemory(r.clock.Now)
	c := webhook.Config{
		GitHubSecrets: []string{secret},
		GitLabTokens:  []string{"glt-SAMPLE"},
		Options:       trigger.Options{Self: trigger.Actor{Login: "proctor[bot]", ID: 99}},
		Connect:       func(context.Context, webhook.Target) (webhook.Forge, error) { return r.w, nil },
		Store:         r.store, Log: slog.New(slog.NewJSONHandler(r.log, nil)), Now: r.clock.Now,
		Wait: func(context.Context, time.Duration) error { return nil },
	}
	if change != nil {
		change(&c)
	}
	r.store = c.Store
	h, err := webhook.New(c)
	if err != nil {
		t.Fatal(err)
	}
	r.h = h
	return r
}

func sign(key string, body []byte) string {
	m := hmac.New(sha256.New, []byte(key))
	m.Write(body)
	return "sha256=" + hex.EncodeToString(m.Sum(nil))
}

// got is an answer as a caller sees it.
type got struct {
	Code   int
	Status string `json:"status"`
	Reason string `json:"reason"`
	Run    string `json:"proctor_id"`
	Raw    string `json:"-"`
}

func (g got) String() string { return fmt.Sprintf("%d %s %s", g.Code, g.Status, g.Reason) }

func send(h http.Handler, r *http.Request) got {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	raw, _ := io.ReadAll(w.Result().Body)
	g := got{Raw: string(raw)}
	if err := json.Unmarshal(raw, &g); err != nil {
		g.Reason = "not JSON: " + err.Error()
	}
	g.Code = w.Code
	return g
}

func githubRequest(event, id string, body []byte) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-GitHub-Event", event)
	r.Header.Set("X-GitHub-Delivery", id)
	r.Header.Set("X-Hub-Signature-256", sign(secret, body))
	return r
}

func (r *rig) deliver(event, id string, body []byte) got {
	return send(r.h, githubRequest(event, id, body))
}

func gitlabRequest(event, token, key string, body []byte) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/gitlab", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Gitlab-Event", event)
	r.Header.Set("X-Gitlab-Token", token)
	r.Header.Set("Idempotency-Key", key)
	return r
}

func (r *rig) gitlab(event, key string, body []byte) got {
	return send(r.h, gitlabRequest(event, "glt-SAMPLE", key, body))
}

// labeledOnGitLab is labeled for a GitLab project.
func labeledOnGitLab(n int) []byte {
	return fmt.Appendf(nil, `{"object_kind":"issue","user":{"id":7,"username":"ann"},"project":{"id":5,"path_with_namespace":"group/sub/shop","default_branch":"trunk"},
		"object_attributes":{"id":900,"iid":%d,"title":"Issue %d","description":"as said","state":"opened","action":"update","discussion_locked":true},
		"changes":{"labels":{"previous":[],"current":[{"title":"proctor"}]}}}`, n, n)
}

// labeled is a delivery's body for issue n; edit changes members by dotted path.
func labeled(n int, edit map[string]any) []byte {
	return event(map[string]any{"action": "labeled", "label": map[string]any{"name": "proctor"}}, n, edit)
}

func commented(n int, id int64, text string, edit map[string]any) []byte {
	return event(map[string]any{"action": "created", "comment": map[string]any{"id": id, "body": text, "user": map[string]any{"login": "ann", "id": 7}}}, n, edit)
}

// runEvent is what a delivery tells of a run that was dispatched; edit changes members.
func runEvent(title, status string, edit map[string]any) map[string]any {
	m := map[string]any{
		"id": 8, "display_title": title, "status": status, "conclusion": "failure",
		"event": "workflow_dispatch", "path": ".github/workflows/proctor.yml", "head_branch": "trunk",
	}
	maps.Copy(m, edit)
	return m
}

func event(m map[string]any, n int, edit map[string]any) []byte {
	m["issue"] = map[string]any{"number": n, "title": title(n), "body": "as said", "state": "open", "labels": []any{map[string]any{"name": "proctor"}}}
	m["repository"] = map[string]any{"id": 5, "name": "shop", "default_branch": "trunk", "owner": map[string]any{"login": "octo"}}
	m["sender"] = map[string]any{"login": "ann", "id": 7, "type": "User"}
	m["installation"] = map[string]any{"id": 6}
	for path, v := range edit {
		at := m
		parts := strings.Split(path, ".")
		for _, p := range parts[:len(parts)-1] {
			at = at[p].(map[string]any)
		}
		at[parts[len(parts)-1]] = v
	}
	b, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return b
}

var errStore = errors.New("the store did not answer")

// shaky is a store that fails now and then, before or after the step took place.
type shaky struct {
	webhook.Store
	fails func() (before, after bool)
}

func (s shaky) step(f func() error) error {
	before, after := s.fails()
	if before {
		return errStore
	}
	if err := f(); err != nil || !after {
		return err
	}
	return errStore
}

func (s shaky) Find(ctx context.Context, keys []string) (c webhook.Claim, err error) {
	err = s.step(func() (err error) { c, err = s.Store.Find(ctx, keys); return err })
	return c, err
}

func (s shaky) Claim(ctx context.Context, in webhook.Claim, l time.Duration) (c webhook.Claim, err error) {
	err = s.step(func() (err error) { c, err = s.Store.Claim(ctx, in, l); return err })
	return c, err
}

func (s shaky) Mark(ctx context.Context, id string, n int, to webhook.State, l time.Duration) error {
	return s.step(func() error { return s.Store.Mark(ctx, id, n, to, l) })
}

// counting is a store whose counters can fail.
type counting struct {
	shaky
	fail *bool
}

func (s counting) Count(ctx context.Context, name string, end time.Time) (int, error) {
	if *s.fail {
		return 0, errStore
	}
	return s.shaky.Count(ctx, name, end)
}

// connectTo gives a world that is made later.
func connectTo(b **board) func(context.Context, webhook.Target) (webhook.Forge, error) {
	return func(context.Context, webhook.Target) (webhook.Forge, error) { return *b, nil }
}

func (s shaky) Release(ctx context.Context, id string, n int, in webhook.State) error {
	return s.step(func() error { return s.Store.Release(ctx, id, n, in) })
}
