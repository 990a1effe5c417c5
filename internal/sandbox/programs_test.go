//go:build linux

package sandbox_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/sandbox"
)

// goTest is a module with one test that talks to its own server. It is compiled outside, where the
// standard library is at hand already.
func goTest(t *testing.T, dir string) {
	t.Helper()
	write(t, dir+"/go.mod", "module example.com/served\n\ngo 1.20\n")
	write(t, dir+"/served_test.go", `package served

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestServed(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	r, err := http.Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
}
`)
	build := exec.Command("go", "test", "-c", "-o", "served.test", ".")
	build.Dir, build.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// TestRealProgramsWork runs what gates are made of. needs names what fails without namespaces, which is
// the control: the same line fails there for that reason.
func TestRealProgramsWork(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, program, line, needs string
		ready                      func(*testing.T, string)
	}{
		{"git", "/usr/bin/git", "git init -q . && echo x > f && git add f && git -c user.name=n -c user.email=e@example.com commit -qm m && git log --format=%s", "", nil},
		{"a git server", "/usr/bin/git", "git init -q src && git -C src -c user.name=n -c user.email=e@example.com commit -q --allow-empty -m m && (git daemon --export-all --base-path=. --listen=127.0.0.1 --port=9418 &) && for i in 1 2 3 4 5 6 7 8 9; do git clone -q git://127.0.0.1/src got 2>/dev/null && break; sleep 0.2; done; git -C got log --format=%s", "network", nil},
		{"a node server", "/usr/bin/node", `node -e "const h=require('http');const s=h.createServer((q,r)=>r.end('hi'));s.listen(0,'127.0.0.1',()=>h.get({port:s.address().port},r=>{r.on('data',d=>console.log(''+d));r.on('end',()=>s.close())}))"`, "network", nil},
		{"a python lock between processes", "/usr/bin/python3", "/usr/bin/python3 -c 'import multiprocessing as m; l=m.Lock(); l.acquire(); print(\"locked\")'", "private-tmp", nil},
		{"a python pool", "/usr/bin/python3", "/usr/bin/python3 -c 'import multiprocessing as m; print(m.Pool(2).map(abs,[-1,-2]))'", "private-tmp", nil},
		{"python's own web server", "/usr/bin/python3", "/usr/bin/python3 -c 'import http.server as h,threading,urllib.request as u\ns=h.HTTPServer((\"127.0.0.1\",0),h.SimpleHTTPRequestHandler)\nthreading.Thread(target=s.serve_forever,daemon=True).start()\nprint(u.urlopen(\"http://localhost:%d\"%s.server_port).status)'", "network", nil},
		{"a Go test with a server", "go", "./served.test -test.v", "network", goTest},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(c.program); err != nil {
				t.Skipf("needs %s: install it", c.program)
			}
			for _, pretend := range []sandbox.Capability{{}, weaker} {
				l := newLab(t, sandbox.Config{Mode: sandbox.Strict, Pretend: pretend})
				if c.ready != nil {
					c.ready(t, l.work)
				}
				cmd := l.command("sh", "-c", c.line)
				r, out := l.run(t, cmd)
				if want := pretend != weaker || c.needs == ""; (r.ExitCode == 0) != want {
					t.Errorf("namespaces %v: exit %d %s: %s", pretend != weaker, r.ExitCode, r.Signal, out)
				}
			}
		})
	}
}

// TestADatabaseStarts needs a server, memory in /dev/shm, a segment of System V memory and a unix socket.
func TestADatabaseStarts(t *testing.T) {
	t.Parallel()
	needRoot(t) // as the harness's own user named unix sockets are closed
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		t.Skip("needs PostgreSQL: apt-get install postgresql")
	}
	bin := filepath.Dir(found[0])
	line := "PATH=" + bin + ":$PATH; initdb -D $HOME/db -A trust > log 2>&1 && pg_ctl -D $HOME/db -o '-k /tmp' -l log2 -w start >> log 2>&1 && " +
		"psql -h 127.0.0.1 -At -c 'select 6*7' postgres; psql -h /tmp -At -c 'select 7*7' postgres || cat log log2; pg_ctl -D $HOME/db -m fast stop > log3"
	l := newLab(t, sandbox.Config{Mode: sandbox.Strict})
	if err := os.Chmod(l.home, 0o700); err != nil {
		t.Fatal(err)
	}
	if r, out := l.shell(t, line); r.ExitCode != 0 || out != "42\n49\n" {
		t.Errorf("exit %d: %s", r.ExitCode, out)
	}
	l = newLab(t, sandbox.Config{Mode: sandbox.Strict, Pretend: weaker})
	if _, out := l.shell(t, line); strings.HasPrefix(out, "42\n") {
		t.Error("control: it starts without namespaces too, so that this shows nothing")
	}
}
