package main

import (
	"bufio"
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	neturl "net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/forge/forgetest"
)

// process is the real program on a port of its own.
type process struct {
	cmd *exec.Cmd
	url string
	log journal
}

func launch(t testing.TB, environment ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0], "-listen", "127.0.0.1:0")}
	p.cmd.Env = append([]string{asMain + "=1"}, environment...)
	p.cmd.Stderr = &p.log
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("it did not start: %v: %s", err, p.log.String())
	}
	p.url = strings.TrimSpace(strings.TrimPrefix(line, "listening on "))
	return p
}

// kill is kill -9. A second time does nothing.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait() // killed: its exit says nothing
}

// INV-45: what was answered is not lost when the process is killed between the answer and the dispatch.
func TestAKillBetweenAnswerAndDispatchLosesNothing(t *testing.T) {
	t.Parallel()
	g := newGitHub(t, 0)
	g.AddUser("ann", "write")
	g.AddUser("proctor-bot", "write")
	// In front of the forge stands a door that lets nobody through until the first process is dead.
	var open atomic.Bool
	waiting := make(chan struct{}, 100)
	door := newDoor(t, g.APIURL(), func(ctx context.Context) {
		if !open.Load() {
			waiting <- struct{}{}
			<-ctx.Done()
		}
	})
	settings := []string{
		"PROCTOR_WEBHOOK_SECRET=" + hookSecret, "GITHUB_TOKEN=" + g.NewToken(forgetest.Token{Login: "proctor-bot"}), "GITHUB_API_URL=" + door,
		"PROCTOR_STORE=" + filepath.Join(t.TempDir(), "webhook.db"),
	}
	first := launch(t, settings...)
	g.SetHook(first.url, hookSecret)
	issue := g.OpenIssue("Round half up", "totals", "ann")
	d, err := g.LabelIssue(issue, "proctor", "ann")
	if err != nil || d.Status != http.StatusAccepted || !strings.Contains(string(d.Response), `"queued"`) {
		t.Fatalf("%d %s %v: %s", d.Status, d.Response, err, first.log.String())
	}
	select {
	case <-waiting:
	case <-time.After(time.Minute):
		t.Fatal("no worker took the message")
	}
	first.kill()
	if n := len(g.Runs()); n != 0 {
		t.Fatalf("%d runs before the kill: it came too late to show anything", n)
	}
	open.Store(true)
	second := launch(t, settings...)
	for range 600 {
		if len(g.Runs()) > 0 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	g.SetHook(second.url, hookSecret)
	if _, err := g.Redeliver(d.ID); err != nil {
		t.Fatal(err)
	}
	for range 600 {
		if strings.Contains(second.log.String(), `"duplicate"`) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	second.kill()
	if n := len(g.Runs()); n != 1 {
		t.Errorf("%d runs, want one: %s", n, second.log.String())
	}
	if !strings.Contains(second.log.String(), `"duplicate"`) {
		t.Errorf("the delivery again was not recognised: %s", second.log.String())
	}
}

// newDoor passes requests on to a server after wait.
func newDoor(t *testing.T, api string, wait func(context.Context)) (url string) {
	t.Helper()
	to, err := neturl.Parse(strings.TrimSuffix(api, "/api/v3"))
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	return serveOn(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		wait(r.Context())
		proxy.ServeHTTP(w, r)
	})) + "/api/v3"
}

func serveOn(t *testing.T, h http.Handler) (url string) {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}

// journal is a log that is read while a process writes it.
type journal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.String()
}
