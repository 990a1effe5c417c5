package app

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/ci"
	"github.com/proctor-ci/proctor/internal/config"
	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/webhook"
	"github.com/proctor-ci/proctor/internal/webhook/ghapp"
	"github.com/proctor-ci/proctor/internal/webhook/oidc"
)

const appInstall = 34

// doorway is a server whose handler comes later: its address is part of the handler's configuration.
type doorway struct{ http.Handler }

// exchange sets up an App whose tokens the webhook gives to runs; nil where none is wanted.
func (w *world) exchange(wanted bool) *webhook.Exchange {
	w.t.Helper()
	if !wanted {
		return nil
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		w.t.Fatal(err)
	}
	w.hub.InstallApp(12, appInstall, strings.TrimSuffix(appBot, "[bot]"), &key.PublicKey, map[string]string{
		"metadata": "read", "contents": "write", "issues": "write", "pull_requests": "write", "actions": "write",
	})
	app, err := ghapp.New(ghapp.Config{BaseURL: w.hub.APIURL(), AppID: 12, Key: key})
	if err != nil {
		w.t.Fatal(err)
	}
	v, err := oidc.New(oidc.Config{Issuer: w.hub.OIDCIssuer(), Audience: w.tokenURL})
	if err != nil {
		w.t.Fatal(err)
	}
	return &webhook.Exchange{Verify: v.Verify, Mint: func(ctx context.Context, to webhook.Target, _ webhook.Purpose) (string, time.Time, error) {
		return app.RunToken(ctx, to.Install, to.Repo.ID)
	}}
}

// byExchange is the workflow of a repository whose runs have the App's token and none of their job's.
func byExchange(door string) func(string) string {
	return func(w string) string {
		w = strings.Replace(w, "github-token: ${{ github.token }}", "token-url: "+door, 1)
		w = strings.Replace(w, "contents: write # the run's branch\n", "contents: read\n      id-token: write\n", 1)
		w = strings.Replace(w, "issues: write # labels and the status comment\n", "issues: none\n", 1)
		return strings.Replace(w, "pull-requests: write # the draft\n", "pull-requests: none\n", 1)
	}
}

// INV-47, end to end: label, delivery, dispatch, the job's identity from the forge's issuer, the App's token for it, a draft that the App
// opened, and nothing left of the token. The job's own token can write nothing.
func TestARunWorksWithTheTokenThatTheWebhookGaveIt(t *testing.T) {
	w := open(t, setting{plan: []tick{{spend(10, 10), reply(allRight)}}, exchange: true, workflow: byExchange("${{ vars.DOOR }}")})
	w.runner.Vars = map[string]string{"DOOR": w.tokenURL}
	j := w.label().ended("done", 0, "proctor:review")
	pulls := w.hub.Pulls()
	if len(pulls) != 1 || pulls[0].Author != appBot {
		t.Fatalf("pull requests %+v, want one of %s", pulls, appBot)
	}
	if n := w.hub.Count("DELETE /installation/token"); n != 1 || len(w.hub.InstallationTokens()) != 1 {
		t.Errorf("%d revocations, %d tokens of the installation are good, want one and the webhook's own", n, len(w.hub.InstallationTokens()))
	}
	if log := string(j.run.Log); strings.Contains(log, "eyJ") || strings.Contains(log, "ghs_") {
		t.Error("a token is in the log")
	}
	for _, r := range w.hub.Requests() {
		if r.Account == bot && r.Method != http.MethodGet && !r.Git {
			t.Errorf("the job's own token was used: %s %s", r.Method, r.Path)
		}
	}
}

// lender is a job at a runner and a webhook of the test's own.
type lender struct {
	*httptest.Server
	vars   map[string]string
	log    bytes.Buffer
	mu     sync.Mutex
	asked  []*http.Request
	slept  []time.Duration
	answer func(try int, w http.ResponseWriter) // of the exchange
	revoke int                                  // status of a revocation

	comment string // what the issue was told
}

func newLender(t *testing.T) *lender {
	t.Helper()
	l := &lender{revoke: http.StatusNoContent}
	mux := http.NewServeMux()
	note := func(r *http.Request) int {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.asked = append(l.asked, r)
		return len(l.asked)
	}
	mux.HandleFunc("GET /identity", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer request-token" || r.URL.Query().Get("api-version") != "2.0" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprintf(w, `{"value":"identity-for-%s"}`, r.URL.Query().Get("audience"))
	})
	tries := 0
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		note(r)
		tries++
		l.answer(tries, w)
	})
	mux.HandleFunc("DELETE /api/installation/token", func(w http.ResponseWriter, r *http.Request) {
		note(r)
		w.WriteHeader(l.revoke)
	})
	mux.HandleFunc("DELETE /api/personal_access_tokens/self", func(w http.ResponseWriter, r *http.Request) {
		note(r)
		w.WriteHeader(l.revoke)
	})
	mux.HandleFunc("POST /api/repos/octo/shop/issues/7/comments", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var in struct{ Body string }
		_ = json.Unmarshal(body, &in)
		l.comment = in.Body
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, `{"id":1}`)
	})
	mux.HandleFunc("/elsewhere", func(_ http.ResponseWriter, r *http.Request) { note(r) })
	l.Server = httptest.NewServer(mux)
	t.Cleanup(l.Close)
	l.answer = func(_ int, w http.ResponseWriter) {
		fmt.Fprint(w, `{"status":"issued","token":"lent-token","expires_at":"2026-03-04T13:00:00Z"}`)
	}
	out := filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(out, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l.vars = map[string]string{
		"GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "octo/shop", "GITHUB_EVENT_NAME": "workflow_dispatch", "GITHUB_WORKSPACE": "/w", "GITHUB_SERVER_URL": l.URL, "GITHUB_API_URL": l.URL + "/api", "GITHUB_OUTPUT": out, "GITHUB_STEP_SUMMARY": out,
		"ACTIONS_ID_TOKEN_REQUEST_URL": l.URL + "/identity?api-version=2.0", "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "request-token",
		"INPUT_TOKEN-URL": l.URL + "/token", "INPUT_PROCTOR-ID": "proctor-1",
	}
	return l
}

func (l *lender) env() Env {
	return Env{
		Getenv: func(k string) string { return l.vars[k] }, Stdout: &l.log, Stderr: &l.log, Random: rand.Reader,
		Now:   func() time.Time { return time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC) },
		Sleep: func(_ context.Context, d time.Duration) error { l.slept = append(l.slept, d); return nil },
	}
}

func (l *lender) borrow(t *testing.T, ctx context.Context) (loan, error) {
	t.Helper()
	env := l.env()
	host, err := ci.Detect(env.Getenv, env.Stdout, env.random)
	if err != nil {
		t.Fatal(err)
	}
	return borrow(ctx, env, host)
}

func TestAJobExchangesItsIdentityAndGivesTheTokenBack(t *testing.T) {
	t.Parallel()
	l := newLender(t)
	l.answer = func(try int, w http.ResponseWriter) {
		if try < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `{"status":"retry","reason":"in_flight"}`)
			return
		}
		fmt.Fprint(w, `{"status":"issued","token":"lent-token","expires_at":"2026-03-04T13:00:00Z"}`)
	}
	got, err := l.borrow(t, t.Context())
	if err != nil || got.token != "lent-token" || len(l.slept) != 2 || l.slept[1] <= l.slept[0] {
		t.Fatalf("%+v %v, slept %v", got, err, l.slept)
	}
	if a := l.asked[0].Header.Get("Authorization"); a != "Bearer identity-for-"+l.URL+"/token" {
		t.Errorf("the webhook was shown %q", a)
	}
	for _, secret := range []string{"lent-token", "identity-for-"} {
		if !strings.Contains(l.log.String(), "::add-mask::"+secret) {
			t.Errorf("%s is not masked: %s", secret, l.log.String())
		}
	}
	// A run has to end before its token does.
	o := config.Override{}
	if got.shorten(&o); o.Remaining != 55*time.Minute {
		t.Errorf("the run may last %s", o.Remaining)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	got.giveBack(stopped)
	if last := l.asked[len(l.asked)-1]; last.Method != http.MethodDelete || last.Header.Get("Authorization") != "Bearer lent-token" {
		t.Errorf("after a cancel the last request was %s %s", last.Method, last.URL)
	}
	l.revoke = http.StatusForbidden
	got.giveBack(t.Context())
	if !strings.Contains(l.log.String(), "ends by itself at 2026-03-04T13:00:00Z") {
		t.Errorf("a token that could not be revoked is not told of: %s", l.log.String())
	}
	before := len(l.asked)
	(&loan{}).giveBack(t.Context())
	delete(l.vars, "INPUT_TOKEN-URL")
	if none, err := l.borrow(t, t.Context()); err != nil || none.token != "" || len(l.asked) != before {
		t.Errorf("without the input: %+v %v", none, err)
	}
}

func (l *lender) onGitLab(t *testing.T) {
	l.vars = map[string]string{
		"GITLAB_CI": "true", "CI_PROJECT_PATH": "octo/shop", "CI_PROJECT_DIR": t.TempDir(), "CI_SERVER_URL": l.URL, "CI_API_V4_URL": l.URL + "/api",
		"PROCTOR_TOKEN_URL": l.URL + "/token", "PROCTOR_ID": "proctor-1", "PROCTOR_ID_TOKEN": "identity-of-the-job",
	}
}

// On GitLab the job has its identity from the beginning, and a token of the project's ends itself.
func TestAGitLabJobExchangesItsIdentityAndEndsTheToken(t *testing.T) {
	t.Parallel()
	l := newLender(t)
	l.onGitLab(t)
	got, err := l.borrow(t, t.Context())
	if err != nil || got.token != "lent-token" {
		t.Fatalf("%+v %v", got, err)
	}
	if a := l.asked[0].Header.Get("Authorization"); a != "Bearer identity-of-the-job" {
		t.Errorf("the webhook was shown %q", a)
	}
	got.giveBack(t.Context())
	if last := l.asked[len(l.asked)-1]; last.Method != http.MethodDelete || last.URL.Path != "/api/personal_access_tokens/self" || last.Header.Get("Authorization") != "Bearer lent-token" {
		t.Errorf("the last request was %s %s", last.Method, last.URL)
	}
	// The run's own token is used, not the one that the project may hold beside it, and none of them is shown.
	l.vars["PROCTOR_GITLAB_TOKEN"], l.vars["PROCTOR_ISSUE"] = "kept-token", "7"
	env := l.env()
	host, err := ci.Detect(env.Getenv, env.Stdout, env.random)
	if err != nil {
		t.Fatal(err)
	}
	req, err := jobRequest(env, host, got)
	if err != nil || req.forge.Remote().Token != "lent-token" {
		t.Errorf("%v, works with %q", err, req.forge.Remote().Token)
	}
	for _, secret := range []string{"lent-token", "kept-token", "identity-of-the-job"} {
		if !slices.Contains(req.secrets, secret) {
			t.Errorf("%s is not kept from what is shown", secret)
		}
	}
	// A pipeline that the webhook did not start borrows nothing.
	before := len(l.asked)
	delete(l.vars, "PROCTOR_ID")
	if none, err := l.borrow(t, t.Context()); err != nil || none.token != "" || len(l.asked) != before {
		t.Errorf("by hand: %+v %v", none, err)
	}
}

// Each way of not getting a token names the thing, the place and the next step, and says no secret.
func TestAnExchangeThatFailsSaysWhatToDo(t *testing.T) {
	t.Parallel()
	says := func(status int, reason string) func(*lender) {
		return func(l *lender) {
			l.answer = func(_ int, w http.ResponseWriter) {
				w.WriteHeader(status)
				fmt.Fprintf(w, `{"status":"refused","reason":%q}`, reason)
			}
		}
	}
	without := func(name string) func(*lender) { return func(l *lender) { delete(l.vars, name) } }
	set := func(name, value string) func(*lender) { return func(l *lender) { l.vars[name] = value } }
	for name, c := range map[string]struct {
		change func(*lender)
		exit   int
		want   string
		tries  int
	}{
		"no permission":         {without("ACTIONS_ID_TOKEN_REQUEST_TOKEN"), 1, "id-token: write", 0},
		"no id":                 {without("INPUT_PROCTOR-ID"), 1, "inputs.proctor_id", 0},
		"plain HTTP":            {set("INPUT_TOKEN-URL", "http://hooks.example.com/token"), 1, "https", 0},
		"a password in it":      {set("INPUT_TOKEN-URL", "https://u:p@hooks.example.com/token"), 1, "https", 0},
		"no address":            {set("INPUT_TOKEN-URL", "hooks"), 1, "https", 0},
		"the runner refuses":    {set("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "another"), 5, "HTTP 401", 0},
		"another audience":      {says(401, "identity"), 7, "PROCTOR_TOKEN_AUDIENCE", 1},
		"another job":           {says(403, "other_job"), 7, "default branch", 1},
		"another run":           {says(403, "other_run"), 7, "ask again", 1},
		"a second time":         {says(403, "used"), 7, "run again gets none", 1},
		"no App":                {says(403, "no_installation"), 7, "install the App", 1},
		"the exchange is off":   {says(404, "path"), 7, "turns the exchange on", 1},
		"hostile words":         {says(400, "::set-output name=x::y\n"), 7, "not the webhook's", 1},
		"the webhook is away":   {says(503, "forge"), 5, `"exchange"`, loanTries},
		"an answer of no token": {func(l *lender) { l.answer = func(_ int, w http.ResponseWriter) { fmt.Fprint(w, `<html>`) } }, 7, "address of the webhook", 1},
		"a redirect": {func(l *lender) {
			l.answer = func(_ int, w http.ResponseWriter) {
				w.Header().Set("Location", l.URL+"/elsewhere")
				w.WriteHeader(http.StatusTemporaryRedirect)
			}
		}, 7, "HTTP 307", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLender(t)
			c.change(l)
			got, err := l.borrow(t, t.Context())
			if err == nil || got.token != "" {
				t.Fatalf("it has a token: %+v", got)
			}
			l.vars["INPUT_ISSUE"], l.vars["INPUT_GITHUB-TOKEN"] = "7", "job-token"
			env := l.env()
			host, herr := ci.Detect(env.Getenv, env.Stdout, func([]byte) {})
			if herr != nil {
				t.Fatal(herr)
			}
			exit := tellUnlent(t.Context(), env, host, err)
			if !strings.Contains(l.comment, c.want) || strings.Contains(l.comment, "::") {
				t.Errorf("the issue is told %q", l.comment)
			}
			if exit != c.exit || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "Next: ") || len(l.asked) != c.tries {
				t.Errorf("exit %d after %d requests: %v; want %d, %d, %q", exit, len(l.asked), err, c.exit, c.tries, c.want)
			}
			if strings.Contains(err.Error(), "identity-for-") || strings.Contains(err.Error(), "request-token") || strings.Contains(l.log.String(), "\n::set-output") {
				t.Errorf("it says too much: %v %s", err, l.log.String())
			}
		})
	}
	t.Run("GitLab", func(t *testing.T) {
		t.Parallel()
		l := newLender(t)
		l.onGitLab(t)
		delete(l.vars, "PROCTOR_ID_TOKEN")
		if _, err := l.borrow(t, t.Context()); err == nil || !strings.Contains(err.Error(), "id_tokens: {PROCTOR_ID_TOKEN: {aud: "+l.URL+"/token}}") {
			t.Errorf("%v", err)
		}
	})
	t.Run("stopped", func(t *testing.T) {
		t.Parallel()
		l := newLender(t)
		ctx, stop := context.WithCancel(t.Context())
		l.answer = func(_ int, w http.ResponseWriter) { stop(); w.WriteHeader(http.StatusServiceUnavailable) }
		if _, err := l.borrow(t, ctx); err == nil || !strings.Contains(err.Error(), "asked to stop") {
			t.Errorf("%v", err)
		}
	})
}

// A job without a token says so where it was asked for: on GitLab a merge request and an issue of its number have nothing to do with each other.
func TestWhoAskedOnAMergeRequestIsToldThere(t *testing.T) {
	t.Parallel()
	const issue, change = "/api/v4/projects/octo/shop/issues/7/notes", "/api/v4/projects/octo/shop/merge_requests/7/notes"
	for name, c := range map[string]struct {
		request string
		told    []string
	}{
		"command":              {"change=7&command=status&comment=12", []string{change}},
		"review":               {"change=7&review=8%402026-03-04T11%3A00%3A00Z", []string{change}},
		"unreadable":           {"change=x", nil},
		"control: a label":     {"event=12%402026-03-04T11%3A00%3A00Z", []string{issue}},
		"control: by hand":     {"", []string{issue}},
		"control: on an issue": {"command=status&comment=12", []string{issue}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLender(t)
			var told []string
			l.Config.Handler.(*http.ServeMux).HandleFunc("POST /api/v4/", func(w http.ResponseWriter, r *http.Request) {
				told = append(told, r.URL.Path)
				w.WriteHeader(http.StatusCreated)
				fmt.Fprint(w, `{"id":1}`)
			})
			l.onGitLab(t)
			l.vars["PROCTOR_GITLAB_TOKEN"], l.vars["PROCTOR_ISSUE"], l.vars["PROCTOR_REQUEST"] = "kept-token", "7", c.request
			env := l.env()
			host, err := ci.Detect(env.Getenv, env.Stdout, env.random)
			if err != nil {
				t.Fatal(err)
			}
			tellUnlent(t.Context(), env, host, unlendable(evidence.Refused, "no token"))
			if !slices.Equal(told, c.told) {
				t.Errorf("told at %q, want %q; log %s", told, c.told, l.log.String())
			}
		})
	}
}
