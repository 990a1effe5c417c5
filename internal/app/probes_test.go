package app

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// answering is the code under test: a server that says what the answer is. It ends when there is none.
const answering = `import http.server, sys
text = open('app/answer.txt').read()
if 'right' not in text:
    sys.exit('no answer yet')
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(text.encode())
    def log_message(self, *args):
        pass
http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()
`

// probed is a configuration in which every built-in probe but docker-build is a gate, one of them held out.
const probed = `{iteration: sh tests/run.sh, timeout: 90s, stability: 1, acceptance: {attempts: 2}, probes: [` +
	`{name: serves, http: {start: python3 app/serve.py 47201, url: "http://127.0.0.1:47201/", body: right, within: 40s}}, ` +
	`{name: listens, tcp: {start: python3 app/serve.py 47202, address: "127.0.0.1:47202", within: 40s}}, ` +
	`{name: stays, boots: {start: python3 app/serve.py 47203, for: 1s}}, ` +
	`{name: settings, env-file: {path: .env.example, keys: [PORT]}}, ` +
	`{name: told, file: {path: docs/answer.md, contains: right}}, ` +
	`{name: old, as: regression, file: {path: README.md, contains: Answers}}, ` +
	`{name: sure, as: acceptance, http: {start: python3 app/serve.py 47204, url: "http://127.0.0.1:47204/", body: right for sure, within: 20s}}]}`

func TestBuiltInProbesAreGates(t *testing.T) {
	// INV-32: the checks are this program's own, whatever lies in the tree.
	right := tick{reply(allRight), write(".env.example", "PORT=1\n"), write("docs/answer.md", "It is right.\n")}
	s := setting{files: map[string]string{"app/serve.py": answering, "sealed/check.sh": ""}, config: map[string]string{"gates": probed}}
	names := []string{"iteration", "serves", "listens", "stays", "settings", "told", "old", "sure"}
	t.Run("all of them decide", func(t *testing.T) {
		s := s
		half := tick{reply(halfRight), write(".env.example", "PORT=1\n"), write("docs/answer.md", "It is right.\n")}
		s.plan = []tick{half, right}
		j := open(t, s).label().ended("done", 0, "proctor:review")
		var base, proof []string
		for _, g := range j.rec.Baseline {
			base = append(base, g.Name+" "+g.Status)
		}
		want := []string{"iteration failed", "serves failed", "listens failed", "stays failed", "settings failed", "told failed", "old passed", "sure failed"}
		if d := cmp.Diff(want, base); d != "" {
			t.Errorf("on the base (-want +got):\n%s", d)
		}
		for _, g := range j.rec.Ticks[1].Proof {
			proof = append(proof, g.Name)
			if g.Status != "passed" {
				t.Errorf("%s %s in the proof", g.Name, g.Status)
			}
		}
		if d := cmp.Diff(names, proof); d != "" {
			t.Errorf("the proof (-want +got):\n%s", d)
		}
		if last := j.rec.Ticks[0].Proof; len(last) == 0 || last[len(last)-1].Name != "sure" || last[len(last)-1].Status != "failed" {
			t.Errorf("the held-out probe of the first tick: %+v", last)
		}
	})
	t.Run("each of them alone bars done", func(t *testing.T) {
		for _, c := range []struct {
			name string
			step tick
		}{
			{"settings", tick{write(".env.example", "# PORT=1\n")}},
			{"told", tick{remove("docs/answer.md")}},
			{"old", tick{write("README.md", "# Gone\n")}},
		} {
			t.Run(c.name, func(t *testing.T) {
				s := s
				s.config = merged(s.config, map[string]string{"stops": "{max_ticks: 1, max_cost_usd: 1, max_duration: 5m}"})
				s.plan = []tick{append(slices.Clone(right), c.step...)}
				w := again(t, s)
				j := w.label().ended("tick_cap", 2, "proctor:needs-human")
				gates := j.rec.Ticks[0].Gates
				if g := gates[len(gates)-1]; g.Name != c.name || g.Status != "failed" {
					t.Errorf("what failed is %s, which %s", g.Name, g.Status)
				}
				w.unpublished()
			})
		}
	})
}

// imageBuilder is an engine's API that builds nothing: an image "builds" when its Dockerfile says so.
type imageBuilder struct {
	mu   sync.Mutex
	sent [][]string
}

func (b *imageBuilder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/version":
		fmt.Fprint(w, `{"Components":[{"Name":"Engine"}]}`)
	case r.URL.Path == "/build":
		var names []string
		good := false
		for files := tar.NewReader(r.Body); ; {
			h, err := files.Next()
			if errors.Is(err, io.EOF) || err != nil {
				break
			}
			text, _ := io.ReadAll(files)
			names = append(names, h.Name)
			good = good || h.Name == "Dockerfile" && strings.Contains(string(text), "COPY app/answer.txt")
		}
		b.mu.Lock()
		b.sent = append(b.sent, names)
		b.mu.Unlock()
		if !good {
			fmt.Fprint(w, `{"error":"COPY failed: no such file"}`)
			return
		}
		fmt.Fprintf(w, `{"aux":{"ID":"sha256:%064d"}}`, 1)
	}
}

func TestAnImageBuildIsAGateThatMeetsNoHeldOutFile(t *testing.T) {
	b := &imageBuilder{}
	dir, err := os.MkdirTemp("", "engine")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: b}}
	server.Start()
	t.Cleanup(server.Close)
	w := open(t, setting{
		files: map[string]string{"Dockerfile": "FROM scratch\n"}, env: map[string]string{"PROCTOR_DOCKER_HOST": "unix://" + filepath.Join(dir, "s")},
		config: map[string]string{"gates": "{iteration: sh tests/run.sh, probes: [{name: image, docker-build: {}}], acceptance: {run: sh sealed/check.sh, sealed: [sealed/**]}, timeout: 20s, stability: 1}"},
		plan:   []tick{{reply(allRight)}, {write("Dockerfile", "FROM scratch\nCOPY app/answer.txt /\n")}},
	})
	j := w.label().ended("done", 0, "proctor:review")
	var said []string
	for _, tick := range j.rec.Ticks {
		for _, g := range append(slices.Clone(tick.Gates), tick.Proof...) {
			if g.Name == "image" {
				said = append(said, fmt.Sprintf("%d %s %s", tick.N, g.Where, g.Status))
			}
		}
	}
	if d := cmp.Diff([]string{"1 gate failed", "2 gate passed", "2 proof passed"}, said); d != "" {
		t.Errorf("the image's gate (-want +got):\n%s", d)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.sent) != 4 { // the base, two ticks, the proof
		t.Errorf("the builder was asked %d times", len(b.sent))
	}
	for _, names := range b.sent {
		if !slices.Contains(names, "app/answer.txt") || slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "sealed/") }) {
			t.Errorf("INV-27 the builder was sent %q", names)
		}
	}
}
