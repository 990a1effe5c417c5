//go:build e2e

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/forge/forgetest"
	"github.com/proctor-ci/proctor/internal/trigger"
	"github.com/proctor-ci/proctor/internal/webhook"
)

// The built program under Lambda's own runtime interface emulator, with each kind of event that a function gets.
func TestTheBuiltProgramUnderTheLambdaEmulator(t *testing.T) {
	bootstrap := built(t, "webhook")
	g := newGitHub(t, 0)
	g.AddUser("ann", "write")
	g.AddUser("proctor-bot", "write")
	front, api := freeAddress(t), freeAddress(t)
	cmd := exec.Command(built(t, "aws-lambda-rie"), "--runtime-interface-emulator-address", front, "--runtime-api-address", api, bootstrap)
	cmd.Dir = t.TempDir()
	cmd.Env = []string{
		"PATH=/usr/bin:/bin", "HOME=" + cmd.Dir, "AWS_LAMBDA_FUNCTION_TIMEOUT=30", "PROCTOR_WEBHOOK_SECRET=" + hookSecret,
		"GITHUB_TOKEN=" + g.NewToken(forgetest.Token{Login: "proctor-bot"}), "GITHUB_API_URL=" + g.APIURL(),
	}
	var log journal
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed: its exit says nothing
	})

	// What the forge would send, caught instead of delivered.
	caught := make(chan *http.Request, 10)
	bodies := make(chan string, 10)
	catcher := serveOn(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		caught <- r
		bodies <- string(b)
		w.WriteHeader(http.StatusAccepted)
	}))
	g.SetHook(catcher, hookSecret)
	label := func() (map[string]string, string, int) {
		n := g.OpenIssue("Round half up", "totals", "ann")
		if _, err := g.LabelIssue(n, "proctor", "ann"); err != nil {
			t.Fatal(err)
		}
		r := <-caught
		h := map[string]string{}
		for k := range r.Header {
			h[strings.ToLower(k)] = r.Header.Get(k)
		}
		return h, <-bodies, n
	}
	headers, body, _ := label()
	http2 := invocation(t, headers, body)
	headers, body, _ = label()
	var v1 map[string]any
	if err := json.Unmarshal([]byte(invocation(t, headers, body)), &v1); err != nil {
		t.Fatal(err)
	}
	// A function URL's event has a domain of its own and the same form.
	v1["requestContext"].(map[string]any)["domainName"] = "x.lambda-url.eu-central-1.on.aws"
	url, err := json.Marshal(v1)
	if err != nil {
		t.Fatal(err)
	}
	_, body, issue := label()
	tr, err := trigger.ParseGitHub("issues", []byte(body), trigger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tr.Snapshot, tr.Issue.Title, tr.Issue.Body = tr.Approved(), "", ""
	message, err := json.Marshal(webhook.Message{Version: 1, Delivery: "d3", Event: "issues", Body: "body:3", Trigger: tr})
	if err != nil {
		t.Fatal(err)
	}
	sqs, err := json.Marshal(map[string]any{"Records": []map[string]string{
		{"messageId": "m1", "eventSource": "aws:sqs", "body": string(message)}, {"messageId": "m2", "eventSource": "aws:sqs", "body": "{}"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, event, want string }{
		{"HTTP API", http2, `dispatched`},
		{"function URL", string(url), `dispatched`},
		{"the same again", string(url), `duplicate`},
		{"SQS", string(sqs), `{"batchItemFailures":[{"itemIdentifier":"m2"}]}`},
		{"schedule", `{"source":"aws.scheduler","detail-type":"Scheduled Event"}`, `reaped`},
		{"nonsense", `[1]`, `"statusCode":400`},
	} {
		if got := invoke(t, front, c.event); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %s; log: %s", c.name, got, c.want, log.String())
		}
	}
	if runs := g.Runs(); len(runs) != 3 || issue != 3 {
		t.Errorf("%d runs, want one for each of three label events", len(runs))
	}
	report(t, bootstrap, log.String())
}

// report prints the figures; it asserts none of them.
func report(t *testing.T, bootstrap, log string) {
	t.Helper()
	info, err := os.Stat(bootstrap)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("binary %.2f MB", float64(info.Size())/1e6)
	for _, line := range regexp.MustCompile(`(?m)^.*(Init Duration|INIT_REPORT|initDuration).*$`).FindAllString(log, -1) {
		t.Log(line)
	}
}

func built(t *testing.T, name string) string {
	t.Helper()
	p, err := filepath.Abs(filepath.Join("../../bin", name))
	if err == nil {
		_, err = os.Stat(p)
	}
	if err != nil {
		t.Fatalf("%v: run make build e2e-deps", err)
	}
	return p
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func invoke(t *testing.T, front, event string) string {
	t.Helper()
	for range 100 {
		resp, err := http.Post("http://"+front+"/2015-03-31/functions/function/invocations", "application/json", bytes.NewReader([]byte(event)))
		if err != nil {
			time.Sleep(50 * time.Millisecond) // it is still starting
			continue
		}
		defer func() { _ = resp.Body.Close() }()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	t.Fatal("the emulator does not answer")
	return ""
}
