package git

import (
	"bytes"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// clock is the fixed time that commits of tests carry.
func clock() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

func newGit(t testing.TB) *Git {
	t.Helper()
	g, err := New(Options{Now: clock, Path: os.Getenv("PATH")})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func openStore(t testing.TB, g *Git, checkout, base string) *Store {
	t.Helper()
	s, err := g.OpenStore(t.Context(), StoreOptions{Checkout: checkout, Dir: filepath.Join(t.TempDir(), "store"), Base: base})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// plain runs git as a user would, in a directory, with that repository's configuration in force.
func plain(t testing.TB, dir string, args ...string) string {
	t.Helper()
	out, err := tryPlain(dir, args...)
	if err != nil {
		t.Fatalf("git %q in %s: %v\n%s", args, dir, err, out)
	}
	return out
}

func tryPlain(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C",
		"GIT_AUTHOR_NAME=A Person", "GIT_AUTHOR_EMAIL=person@example.invalid",
		"GIT_COMMITTER_NAME=A Person", "GIT_COMMITTER_EMAIL=person@example.invalid",
		"GIT_AUTHOR_DATE=2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE=2026-01-01T00:00:00Z",
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// put writes a file, with its directories. A content that begins with "->" is a symlink's target, one
// that begins with "#!" is executable.
func put(t testing.TB, dir, path, content string) {
	t.Helper()
	file := dir + "/" + path
	if err := os.MkdirAll(file[:strings.LastIndexByte(file, '/')], 0o755); err != nil {
		t.Fatal(err)
	}
	if target, link := strings.CutPrefix(content, "->"); link {
		_ = os.Remove(file)
		if err := os.Symlink(target, file); err != nil {
			t.Fatal(err)
		}
		return
	}
	mode := os.FileMode(0o644)
	if strings.HasPrefix(content, "#!") {
		mode = 0o755
	}
	if err := os.WriteFile(file, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

type files map[string]string

// initRepo makes a repository with one commit of the files.
func initRepo(t testing.TB, content files, initArgs ...string) string {
	t.Helper()
	dir := t.TempDir()
	plain(t, dir, append([]string{"init", "-q", "-b", "main"}, initArgs...)...)
	for path, text := range content {
		put(t, dir, path, text)
	}
	plain(t, dir, "add", "-A")
	plain(t, dir, "commit", "-q", "--allow-empty", "-m", "base")
	return dir
}

func sample() files {
	return files{
		"README.md": "# sample\n", "pkg/sum.go": "package pkg\n\nfunc Add(a, b int) int { return a }\n",
		"run.sh": "#!/bin/sh\ntrue\n", "tests/acceptance/sum_test.txt": "1 2 3\n", "tests/unit/a_test.txt": "a\n",
		"link": "->README.md", ".gitignore": "dist/\n*.log\n",
	}
}

func heldOut(path string) bool { return strings.HasPrefix(path, "tests/acceptance/") }

// space is a store on a checkout with an agent's and a gate's directory.
type space struct {
	git         *Git
	store       *Store
	agent, gate *Worktree
}

func newSpace(t testing.TB, checkout string, sealed func(string) bool) space {
	t.Helper()
	g := newGit(t)
	s := openStore(t, g, checkout, "")
	dir := t.TempDir()
	agent, err := s.NewAgent(t.Context(), filepath.Join(dir, "agent"), sealed)
	if err != nil {
		t.Fatal(err)
	}
	gate, err := s.NewGate(t.Context(), filepath.Join(dir, "gate"), sealed)
	if err != nil {
		t.Fatal(err)
	}
	return space{g, s, agent, gate}
}

func (sp space) snapshot(t testing.TB, parent ID) Snapshot {
	t.Helper()
	snap, err := sp.agent.Snapshot(t.Context(), SnapshotOptions{Parent: parent, Meta: Meta{Run: "r1", Tick: 1, Issue: "7", Agent: "script", CostUSD: "0.10"}})
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

func paths(changes []Change) []string {
	var out []string
	for _, c := range changes {
		out = append(out, c.Status()+" "+c.Path)
	}
	return out
}

func kinds(problems []Problem) []string {
	var out []string
	for _, p := range problems {
		out = append(out, p.Kind+" "+p.Path)
	}
	return out
}

// contents reads a directory, without a .git at its root.
func contents(t testing.TB, dir string) files {
	t.Helper()
	got := files{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if path == filepath.Join(dir, ".git") {
			return filepath.SkipDir
		}
		name := strings.TrimPrefix(path, dir+"/")
		switch {
		case entry.IsDir():
		case entry.Type()&os.ModeSymlink != 0:
			target, err := os.Readlink(path)
			got[name] = "->" + target
			return err
		default:
			text, err := os.ReadFile(path)
			got[name] = string(text)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func without(f files, hidden ...string) files {
	out := files{}
	for path, text := range f {
		if !slices.Contains(hidden, path) {
			out[path] = text
		}
	}
	return out
}

func with(f files, more files) files {
	out := without(f)
	for path, text := range more {
		out[path] = text
	}
	return out
}

// forge is a real "git http-backend" on loopback.
type forge struct {
	*httptest.Server
	bare  string
	token string
	mu    sync.Mutex
	seen  []string // Authorization headers
	// before may answer a request itself.
	before func(w http.ResponseWriter, r *http.Request) bool
}

// newForge serves a bare clone of the checkout.
func newForge(t testing.TB, checkout string) *forge {
	t.Helper()
	root := t.TempDir()
	f := &forge{bare: filepath.Join(root, "o", "r.git"), token: "tok" + "en-for-the-test"}
	plain(t, root, "clone", "-q", "--bare", "file://"+checkout, f.bare)
	plain(t, f.bare, "config", "http.receivepack", "true")
	execPath := strings.TrimSpace(plain(t, root, "--exec-path"))
	backend := &cgi.Handler{
		Path:       filepath.Join(execPath, "git-http-backend"),
		Env:        []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=bot", "GIT_CONFIG_NOSYSTEM=1"},
		InheritEnv: []string{"PATH"}, Stderr: io.Discard,
	}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.seen = append(f.seen, r.Header.Get("Authorization"))
		before := f.before
		f.mu.Unlock()
		if before != nil && before(w, r) {
			return
		}
		if user, pass, _ := r.BasicAuth(); user != "x-access-token" || pass != f.token {
			w.Header().Set("WWW-Authenticate", `Basic realm="forge"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		// CGI has no chunked bodies: buffer, and say the length.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(f.Close)
	return f
}

func (f *forge) remote() Remote {
	return Remote{URL: f.URL + "/o/r.git", Username: "x-access-token", Token: f.token, Branch: "proctor/issue-7", DefaultBranch: "main"}
}

func (f *forge) ref(t testing.TB, name string) ID {
	t.Helper()
	out, err := tryPlain(f.bare, "rev-parse", "--verify", "-q", name)
	if err != nil {
		return ""
	}
	return ID(strings.TrimSpace(out))
}

func uidOf(info os.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }

func isDir(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}
