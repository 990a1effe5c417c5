package probe_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/probe"
	"github.com/proctor-ci/proctor/internal/sandbox"
)

// serveArg makes this test binary the server that a probe looks at.
const serveArg = "serve-for-a-probe"

func TestMain(m *testing.M) {
	sandbox.Child()
	if code, ok := probe.Child(os.Args, os.Stdout); ok {
		os.Exit(code)
	}
	if len(os.Args) == 4 && os.Args[1] == serveArg {
		os.Exit(serve(os.Args[2], os.Args[3]))
	}
	os.Exit(withServer(m.Run))
}

// server is a copy of this binary where every user can start it.
var server string

func withServer(run func() int) int {
	dir, err := os.MkdirTemp("", "probe-server-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	b, err := os.ReadFile(exe)
	if err != nil {
		panic(err)
	}
	server = filepath.Join(dir, "server")
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(server, b, 0o755)); err != nil {
		panic(err)
	}
	return run()
}

// room is a checkout with a confinement around it.
type room struct {
	dir, home, tmp string
	box            *sandbox.Box
}

func newRoom(t *testing.T, mode sandbox.Mode) room {
	t.Helper()
	box, err := sandbox.New(sandbox.Config{Mode: mode})
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	if err := os.Chmod(filepath.Dir(root), 0o711); err != nil {
		t.Fatal(err)
	}
	r := room{dir: root + "/tree", home: root + "/home", tmp: root + "/tmp", box: box}
	for _, d := range []string{r.dir, r.home, r.tmp} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if mode != sandbox.Off {
		if err := box.Own(r.dir, r.home, r.tmp); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func (r room) put(t *testing.T, path, text string) {
	t.Helper()
	file := filepath.Join(r.dir, path)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	mode := os.FileMode(0o644)
	if strings.HasPrefix(text, "#!") {
		mode = 0o755
	}
	if err := os.WriteFile(file, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// check makes one check in the room and gives exit code and output.
func (r room) check(t *testing.T, s probe.Spec) (sandbox.Result, string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	res, err := r.box.Run(context.Background(), sandbox.Command{
		Argv: s.Argv(), Env: sandbox.BaseEnv(r.home, r.tmp), Dir: r.dir, Stdout: &out, Stderr: &out, Timeout: time.Minute, Grace: 200 * time.Millisecond,
		Policy: sandbox.Policy{ReadWrite: []string{r.dir, r.home, r.tmp}, ReadOnly: []string{exe, server}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return res, out.String()
}

func TestFilesAreCheckedAsTheyAre(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		spec probe.Spec
		code int
		say  string
	}{
		{"it exists", probe.Spec{Kind: probe.File, Path: "docs/api.md"}, 0, "as wanted"},
		{"it contains", probe.Spec{Kind: probe.File, Path: "docs/api.md", Contains: "Limits"}, 0, "as wanted"},
		{"it does not contain", probe.Spec{Kind: probe.File, Path: "docs/api.md", Contains: "Quotas"}, 1, "does not contain"},
		{"it is missing", probe.Spec{Kind: probe.File, Path: "docs/other.md"}, 1, "no such file"},
		{"a folder is no file", probe.Spec{Kind: probe.File, Path: "docs"}, 1, "no regular file"},
		{"a link that leads out is no file", probe.Spec{Kind: probe.File, Path: "out", Contains: "root"}, 1, "escapes"},
		{"absent", probe.Spec{Kind: probe.File, Path: ".env", Absent: true}, 0, "as wanted"},
		{"not absent", probe.Spec{Kind: probe.File, Path: "docs/api.md", Absent: true}, 1, "exists"},
		{"a dangling link is not absent", probe.Spec{Kind: probe.File, Path: "dangling", Absent: true}, 1, "exists"},
		{"all keys", probe.Spec{Kind: probe.EnvFile, Path: ".env.example", Keys: []string{"PORT", "HOST", "KEY"}}, 0, "names all 3"},
		{"a key is missing", probe.Spec{Kind: probe.EnvFile, Path: ".env.example", Keys: []string{"PORT", "NOTE"}}, 1, "lacks NOTE"},
		{"a commented key is missing", probe.Spec{Kind: probe.EnvFile, Path: ".env.example", Keys: []string{"OLD"}}, 1, "lacks OLD"},
		{"a key inside a value is missing", probe.Spec{Kind: probe.EnvFile, Path: ".env.example", Keys: []string{"INSIDE"}}, 1, "lacks INSIDE"},
		{"an unknown kind is broken", probe.Spec{Kind: "nothing"}, 126, "no such kind"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRoom(t, sandbox.Auto)
			r.put(t, "docs/api.md", "# Limits\n")
			r.put(t, ".env.example", "# OLD=1\nPORT=1\nexport HOST = \"a\"\nKEY=\"first\nINSIDE=x\nlast\"\n")
			for name, target := range map[string]string{"out": "/etc/passwd", "dangling": "nowhere"} {
				if err := os.Symlink(target, filepath.Join(r.dir, name)); err != nil {
					t.Fatal(err)
				}
			}
			res, out := r.check(t, c.spec)
			if res.ExitCode != c.code || !strings.Contains(out, c.say) {
				t.Errorf("exit %d, want %d; said %q, want %q", res.ExitCode, c.code, out, c.say)
			}
		})
	}
}

func TestACommandHasToStayUp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		start []string
		code  int
		say   string
	}{
		{"it stays", []string{"sh", "-c", "sleep 60"}, 0, "stayed up"},
		{"it fails", []string{"sh", "-c", "echo no database; exit 3"}, 1, "ended by itself"},
		{"ending well is not staying up", []string{"true"}, 1, "ended by itself"},
		{"no such program", []string{"no-such-tool"}, 127, "cannot start"},
		{"no such command in a line", []string{"sh", "-c", "exec no-such-tool"}, 127, "ended by itself"},
		{"no program of the checkout by a bare name", []string{"planted"}, 127, "cannot start"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRoom(t, sandbox.Auto)
			r.put(t, "planted", "#!/bin/sh\nsleep 60\n")
			res, out := r.check(t, probe.Spec{Kind: probe.Boots, Start: c.start, For: 500 * time.Millisecond})
			if res.ExitCode != c.code || !strings.Contains(out, c.say) {
				t.Errorf("exit %d, want %d; said %q", res.ExitCode, c.code, out)
			}
		})
	}
}

// freePort is a port that nobody listened on a moment ago.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func serving(how, address string) []string { return []string{server, serveArg, how, address} }

// modes are the confinements in which a server can be reached: always without one, and with one where
// the machine gives each process tree a network of its own.
func modes(t *testing.T) []sandbox.Mode {
	t.Helper()
	r := newRoom(t, sandbox.Auto)
	address := freePort(t)
	res, out := r.check(t, probe.Spec{Kind: probe.TCP, Start: serving("ok", address), Address: address, Within: 10 * time.Second})
	if res.ExitCode == 0 {
		return []sandbox.Mode{sandbox.Off, sandbox.Auto}
	}
	if res.ExitCode != 126 || !strings.Contains(out, "no loopback to check on") {
		t.Errorf("without a network of its own a check is broken, not red: exit %d, %q", res.ExitCode, out)
	}
	t.Log("this machine gives process trees no network of their own: the confined half is not shown")
	return []sandbox.Mode{sandbox.Off}
}

func TestAServerIsAskedUntilItAnswersAsWanted(t *testing.T) {
	t.Parallel()
	for _, mode := range modes(t) {
		for _, c := range []struct {
			name, how, path string
			status          int
			body            string
			code            int
			say             string
		}{
			{"as wanted", "ok", "/health", 200, "fine", 0, "as wanted"},
			{"late", "late", "/health", 200, "fine", 0, "as wanted"},
			{"another status", "ok", "/missing", 200, "", 1, "status 404, want 200"},
			{"the status that is wanted", "ok", "/missing", 404, "", 0, "as wanted"},
			{"another body", "ok", "/health", 200, "perfect", 1, "does not contain"},
			{"a redirect is not followed", "ok", "/moved", 200, "", 1, "status 302, want 200"},
			{"a server that fails", "crash", "/health", 200, "", 1, "ended by itself"},
			{"a server that never answers", "mute", "/health", 200, "", 1, "not as wanted within"},
		} {
			t.Run(fmt.Sprintf("%s, sandbox %s", c.name, mode), func(t *testing.T) {
				t.Parallel()
				r := newRoom(t, mode)
				address := freePort(t)
				within := 20 * time.Second
				if c.code != 0 {
					within = 1500 * time.Millisecond
				}
				res, out := r.check(t, probe.Spec{
					Kind: probe.HTTP, Start: serving(c.how, address), URL: "http://" + address + c.path, Status: c.status, Body: c.body, Within: within,
				})
				if res.ExitCode != c.code || !strings.Contains(out, c.say) {
					t.Errorf("exit %d, want %d; said %q, want %q", res.ExitCode, c.code, out, c.say)
				}
				if conn, err := net.Dial("tcp", address); err == nil {
					conn.Close()
					t.Error("the server outlived the check")
				}
			})
		}
	}
}

// INV-32: nothing that the repository holds or starts can stand for the answer.
func TestNoFileOfTheRepositoryCanAnswerForAProbe(t *testing.T) {
	t.Parallel()
	address := freePort(t)
	ask := probe.Spec{Kind: probe.HTTP, URL: "http://" + address + "/", Status: 200, Within: time.Second}
	for _, c := range []struct{ name, script string }{
		{"a script that prints what a probe prints", "echo 'probe http: the answer is as wanted'; exit 0"},
		{"a script that kills the probe", "kill -9 $PPID; sleep 60"},
		{"a script that ends the probe politely", "kill -TERM $PPID; kill -INT $PPID; sleep 60"},
		{"a script that writes into the probe", "for f in /proc/$PPID/mem /proc/$PPID/exe; do echo x > $f; done; exit 0"},
		{"a script that sets a proxy and a host for later", "echo '127.0.0.1 '" + address + " > $HOME/.hosts; export http_proxy=http://127.0.0.1:1; exit 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRoom(t, sandbox.Auto)
			r.put(t, "start.sh", "#!/bin/sh\n"+c.script+"\n")
			// Programs and settings that a check made of commands would pick up.
			for _, name := range []string{"curl", "wget", "nc", "proctor", "proctor-probe", "node_modules/.bin/curl"} {
				r.put(t, name, "#!/bin/sh\nexit 0\n")
			}
			s := ask
			s.Start = []string{"./start.sh"}
			if res, out := r.check(t, s); res.ExitCode == 0 {
				t.Errorf("INV-32 it passed with nobody serving: %q", out)
			}
		})
	}
	// Positive control: a gate made of a command of the repository is stood for with ease.
	r := newRoom(t, sandbox.Off)
	r.put(t, "curl", "#!/bin/sh\nexit 0\n")
	cmd := exec.Command("sh", "-c", "PATH=.:$PATH; curl -f http://"+address+"/")
	cmd.Dir = r.dir
	if err := cmd.Run(); err != nil {
		t.Errorf("control: %v", err)
	}
}

func TestOtherProcessesAreNoProbes(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"x"}, {"x", "proctor-probe"}, {"x", "y", "{}"}, {"x", "proctor-probe", "{}", "z"}} {
		if _, ok := probe.Child(args, &bytes.Buffer{}); ok {
			t.Errorf("%q", args)
		}
	}
}
