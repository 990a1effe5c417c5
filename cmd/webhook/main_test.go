package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/proctor-ci/proctor/internal/forge/forgetest"
	"github.com/proctor-ci/proctor/internal/trigger"
	"github.com/proctor-ci/proctor/templates"
)

// asMain makes this test binary the real program, for tests that need a process.
const asMain = "WEBHOOK_TEST_RUN_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

const hookSecret = "a-secret-for-loopback-tests"

func settings(kv ...string) func(string) string {
	m := map[string]string{}
	for i := 0; i < len(kv); i += 2 {
		m[kv[i]] = kv[i+1]
	}
	return func(name string) string { return m[name] }
}

func appKey(t *testing.T) (*rsa.PrivateKey, string) {
	t.Helper()
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return k, string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(k)}))
}

// startProgram runs the program on a port of its own, and stops it with the test.
func startProgram(t *testing.T, getenv func(string) string) (url string, log *bytes.Buffer) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out, in := io.Pipe()
	log = &bytes.Buffer{}
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"-listen", "127.0.0.1:0"}, getenv, in, log)
		_ = in.Close()
	}()
	t.Cleanup(func() {
		cancel()
		if code := <-ended; code != exitOK {
			t.Errorf("exit code %d after a stop: %s", code, log)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("it did not start: %v: %s", err, log)
	}
	return strings.TrimSpace(strings.TrimPrefix(line, "listening on ")), log
}

// The workflow that init writes: what the webhook sends has to fit it.
var workflow = fstest.MapFS{".github/workflows/proctor.yml": {Data: templates.GitHubWorkflow}}

func newGitHub(t testing.TB, installation int64) *forgetest.GitHub {
	t.Helper()
	g, err := forgetest.NewGitHub(forgetest.Options{Dir: t.TempDir(), Files: workflow, Installation: installation, Enterprise: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// From the label to the queued run, over real HTTP and with an App's token.
func TestALabelledIssueBecomesOneQueuedRun(t *testing.T) {
	t.Parallel()
	key, text := appKey(t)
	g := newGitHub(t, 34)
	g.AddUser("ann", "write")
	g.AddUser("tim", "triage")
	g.InstallApp(12, 34, "proctor-ci", &key.PublicKey, map[string]string{"metadata": "read", "issues": "write", "actions": "write"})
	url, log := startProgram(t, settings("PROCTOR_WEBHOOK_SECRET", hookSecret+"\n", "GITHUB_APP_ID", "12", "GITHUB_APP_PRIVATE_KEY", strings.ReplaceAll(text, "\n", `\n`), "GITHUB_API_URL", g.APIURL()))
	g.SetHook(url+"/github", hookSecret)

	refused := g.OpenIssue("Round half up", "totals ending in .005 round down", "tim")
	if d, err := g.LabelIssue(refused, "proctor", "tim"); err != nil || d.Status != http.StatusAccepted || !strings.Contains(string(d.Response), `"role"`) {
		t.Errorf("INV-40 a label by triage: %d %s %v", d.Status, d.Response, err)
	}
	issue := g.OpenIssue("Round half up", "totals ending in .005 round down", "tim")
	if d, err := g.LabelIssue(issue, "bug", "ann"); err != nil || !strings.Contains(string(d.Response), "other_label") {
		t.Errorf("another label: %s %v", d.Response, err)
	}
	if n := len(g.Runs()); n != 0 {
		t.Fatalf("%d runs were started", n)
	}
	d, err := g.LabelIssue(issue, "proctor", "ann")
	if err != nil || !strings.Contains(string(d.Response), `"dispatched"`) {
		t.Fatalf("%d %s %v; log: %s", d.Status, d.Response, err, log)
	}
	again, err := g.Redeliver(d.ID)
	if err != nil || !strings.Contains(string(again.Response), `"duplicate"`) {
		t.Errorf("the delivery again: %s %v", again.Response, err)
	}
	runs := g.Runs()
	if len(runs) != 1 || runs[0].Inputs["issue"] != "2" {
		t.Fatalf("runs %+v", runs)
	}
	if got, err := trigger.ParseDispatch(runs[0].Inputs); err != nil || got.Actor.Login != "ann" || len(got.Snapshot) != 64 || got.Asked.ID == 0 {
		t.Errorf("the run reads %+v, %v", got, err)
	}
	if !strings.Contains(runs[0].Title, runs[0].Inputs["proctor_id"]) {
		t.Errorf("the run's name %q does not carry its id", runs[0].Title)
	}
}

func TestAPersonalTokenWorksWithoutAnApp(t *testing.T) {
	t.Parallel()
	g := newGitHub(t, 0)
	g.AddUser("ann", "write")
	g.AddUser("robot", "write")
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(g.NewToken(forgetest.Token{Login: "robot"})+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	url, log := startProgram(t, settings("PROCTOR_WEBHOOK_SECRET", hookSecret, "GITHUB_TOKEN_FILE", file, "GITHUB_API_URL", g.APIURL()))
	g.SetHook(url, hookSecret)
	issue := g.OpenIssue("Round half up", "", "ann")
	if d, err := g.LabelIssue(issue, "proctor", "ann"); err != nil || len(g.Runs()) != 1 {
		t.Fatalf("%d %s %v; log: %s", d.Status, d.Response, err, log)
	}
}

func TestASettingThatCannotWorkIsNamedAtTheStart(t *testing.T) {
	t.Parallel()
	_, key := appKey(t)
	good := []string{"PROCTOR_WEBHOOK_SECRET", hookSecret, "GITHUB_APP_ID", "12", "GITHUB_APP_PRIVATE_KEY", key}
	for name, c := range map[string]struct {
		set  []string
		want string
	}{
		"nothing":                {nil, "PROCTOR_WEBHOOK_SECRET"},
		"no credentials":         {[]string{"PROCTOR_WEBHOOK_SECRET", hookSecret}, "GITHUB_APP_ID and GITHUB_APP_PRIVATE_KEY, or GITHUB_TOKEN"},
		"short secret":           {append(good[2:], "PROCTOR_WEBHOOK_SECRET", "short"), "openssl rand -hex 32"},
		"blank secret":           {append(good[2:], "PROCTOR_WEBHOOK_SECRET", " \n"), "PROCTOR_WEBHOOK_SECRET is blank"},
		"App without a key":      {good[:4], "GITHUB_APP_PRIVATE_KEY_FILE"},
		"key that is none":       {append(good[:4:4], "GITHUB_APP_PRIVATE_KEY", "xyzzy"), "GITHUB_APP_PRIVATE_KEY"},
		"key file that is none":  {append(good[:4:4], "GITHUB_APP_PRIVATE_KEY_FILE", "/nowhere"), "GITHUB_APP_PRIVATE_KEY_FILE"},
		"client id for an id":    {append(good[:2:2], "GITHUB_APP_ID", "Iv1.abc"), "not the client id"},
		"both a value and file":  {append(good[:6:6], "PROCTOR_WEBHOOK_SECRET_FILE", "/x"), "unset one"},
		"unknown role":           {append(good[:6:6], "PROCTOR_ROLES", "write,owner"), `"owner" is no role`},
		"a bot by login":         {append(good[:6:6], "PROCTOR_BOTS", "renovate[bot]"), "PROCTOR_BOTS"},
		"API address that is no": {append(good[:6:6], "GITHUB_API_URL", "ghe.example.com"), "GITHUB_API_URL"},
		"GitLab without a token": {[]string{"PROCTOR_GITLAB_WEBHOOK_TOKEN", "glt-SAMPLE"}, "GITLAB_TOKEN"},
		"a file and a table":     {append(good[:6:6], "PROCTOR_STORE", "x", "PROCTOR_TABLE", "t"), "PROCTOR_STORE"},
		"a queue and no table":   {append(good[:6:6], "PROCTOR_QUEUE_URL", "https://q"), "PROCTOR_TABLE"},
		"a table and no region":  {append(good[:6:6], "PROCTOR_TABLE", "t"), "AWS_REGION"},
		"a switch that is none":  {append(good[:6:6], "PROCTOR_CHECK_FAILURES", "yes"), "PROCTOR_CHECK_FAILURES"},
		"a rate that is none":    {append(good[:6:6], "PROCTOR_REPO_PER_HOUR", "-1"), "PROCTOR_REPO_PER_HOUR"},
		"repository pattern":     {append(good[:6:6], "PROCTOR_REPOS", "octo/**x"), "owner/*"},
	} {
		var out, errs bytes.Buffer
		if code := run(context.Background(), []string{"-check"}, settings(c.set...), &out, &errs); code != exitFailed || !strings.Contains(errs.String(), c.want) {
			t.Errorf("%s: exit %d, %q, want %q", name, code, errs.String(), c.want)
		}
		if strings.Contains(errs.String(), "xyzzy") || strings.Contains(errs.String(), hookSecret) {
			t.Errorf("%s: a secret is shown: %s", name, errs.String())
		}
	}
	var out, errs bytes.Buffer
	if code := run(context.Background(), []string{"-check"}, settings(good...), &out, &errs); code != exitOK {
		t.Errorf("control: exit %d, %s", code, errs.String())
	}
}

func TestTheHelpListsEveryVariableThatIsRead(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	if code := run(context.Background(), []string{"-h"}, settings(), &out, &errs); code != exitOK {
		t.Errorf("exit %d", code)
	}
	_, key := appKey(t)
	read := map[string]bool{}
	good := settings("PROCTOR_WEBHOOK_SECRET", hookSecret, "PROCTOR_GITLAB_WEBHOOK_TOKEN", "glt-SAMPLE", "GITLAB_TOKEN", "x", "GITHUB_APP_ID", "12", "GITHUB_APP_PRIVATE_KEY", key, "PROCTOR_TABLE", "t", "AWS_REGION", "r", "AWS_ACCESS_KEY_ID", "k", "AWS_SECRET_ACCESS_KEY", "s")
	code := run(context.Background(), []string{"-check"}, func(n string) string { read[n] = true; return good(n) }, io.Discard, &errs)
	if code != exitOK {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	for name := range read {
		base := strings.TrimSuffix(strings.TrimSuffix(name, "_FILE"), "_PARAMETER")
		if name != "AWS_LAMBDA_RUNTIME_API" && !strings.Contains(errs.String(), "  "+base+" ") {
			t.Errorf("%s is read and not in the help", name)
		}
	}
	if code := run(context.Background(), []string{"extra"}, settings(), &out, &errs); code != exitFailed {
		t.Errorf("an argument: exit %d", code)
	}
}

// The real program as Lambda starts it: it asks the runtime API for events and posts its answers there.
func TestTheProgramHandlesLambdaInvocations(t *testing.T) {
	t.Parallel()
	_, key := appKey(t)
	body := `{"zen":"Small steps.","hook_id":1}`
	events := []string{
		`{"source":"warmer"}`,
		invocation(t, map[string]string{"x-github-event": "ping", "x-hub-signature-256": forgetest.Sign(hookSecret, []byte(body))}, body),
		invocation(t, map[string]string{"x-github-event": "ping", "x-hub-signature-256": forgetest.Sign("another-secret-of-theirs", []byte(body))}, body),
	}
	answers := make(chan string, len(events))
	next := 0
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", func(w http.ResponseWriter, r *http.Request) {
		if next == len(events) {
			<-r.Context().Done()
			return
		}
		w.Header().Set("Lambda-Runtime-Aws-Request-Id", "id")
		w.Header().Set("Lambda-Runtime-Deadline-Ms", "9999999999999")
		_, _ = io.WriteString(w, events[next])
		next++
	})
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/id/response", func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		answers <- string(b)
		w.WriteHeader(http.StatusAccepted)
	})
	api := httptest.NewServer(mux)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = []string{
		asMain + "=1", "AWS_LAMBDA_RUNTIME_API=" + strings.TrimPrefix(api.URL, "http://"),
		"PROCTOR_WEBHOOK_SECRET=" + hookSecret, "GITHUB_APP_ID=12", "GITHUB_APP_PRIVATE_KEY=" + key,
	}
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // killed: its exit says nothing
		api.Close()
	})
	for i, want := range []string{`"statusCode":202`, `"statusCode":202`, `"statusCode":401`} {
		select {
		case got := <-answers:
			if !strings.Contains(got, want) {
				t.Errorf("invocation %d: %s, want %s", i, got, want)
			}
		case <-ctx.Done():
			t.Fatalf("no answer to invocation %d: %s", i, log.String())
		}
	}
}

func invocation(t *testing.T, headers map[string]string, body string) string {
	t.Helper()
	b, err := json.Marshal(map[string]any{
		"version": "2.0", "rawPath": "/", "headers": headers, "body": body,
		"requestContext": map[string]any{"stage": "$default", "http": map[string]any{"method": "POST", "path": "/"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestAnAddressThatIsTakenIsNamed(t *testing.T) {
	t.Parallel()
	_, key := appKey(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var errs bytes.Buffer
	code := run(context.Background(), []string{"-listen", l.Addr().String()}, settings("PROCTOR_WEBHOOK_SECRET", hookSecret, "GITHUB_APP_ID", "12", "GITHUB_APP_PRIVATE_KEY", key), io.Discard, &errs)
	if code != exitFailed || !strings.Contains(errs.String(), "-listen") {
		t.Errorf("exit %d: %s", code, errs.String())
	}
}

// A misspelt PROCTOR_REPOS would leave every repository served without a word.
func TestAVariableThatNothingReadsIsNamed(t *testing.T) {
	t.Parallel()
	got := strangers([]string{"PROCTOR_REPO=octo/*", "PROCTOR_REPOS=octo/*", "PROCTOR_WEBHOOK_SECRET_FILE=/x", "GITHUB_APP_PRIVATE_KEY_PARAMETER=/x", "PROCTOR_SECRET_FILE=/x", "PATH=/bin", "HOME="})
	if want := []string{"PROCTOR_REPO", "PROCTOR_SECRET_FILE"}; !slices.Equal(got, want) {
		t.Errorf("names %q, want %q", got, want)
	}
	for _, v := range variables() {
		if got := strangers([]string{v.name + "=x"}); got != nil {
			t.Errorf("names %q, which is read", got)
		}
	}
}
