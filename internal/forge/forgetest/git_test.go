package forgetest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/proctor-ci/proctor/internal/forge/forgetest"
)

func newGitHub(t *testing.T, o forgetest.Options) *forgetest.GitHub {
	t.Helper()
	o.Dir = t.TempDir()
	if o.Files == nil {
		o.Files = fstest.MapFS{
			"README.md":                {Data: []byte("# shop\n")},
			"bin/run":                  {Data: []byte("#!/bin/sh\n")},
			".github/workflows/ci.yml": {Data: []byte("on: push\njobs: {}\n")},
		}
	}
	g, err := forgetest.NewGitHub(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	return g
}

// clone makes a working copy whose origin carries the token.
func clone(t *testing.T, url, user, token string) (dir, output string, err error) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "copy")
	output, err = gitCmd(t, t.TempDir(), "clone", "-q", strings.Replace(url, "://", "://"+user+":"+token+"@", 1), dir)
	return dir, output, err
}

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	p := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := gitCmd(t, dir, "add", "-A"); err != nil {
		t.Fatal(out)
	}
	if out, err := gitCmd(t, dir, "commit", "-q", "-m", "change "+name); err != nil {
		t.Fatal(out)
	}
}

// INV-51: each refusal in the words git prints on the real forge; the control is the same push allowed.
func TestPushesAreRefusedInGitHubsWords(t *testing.T) {
	t.Parallel()
	job := func(p map[string]string) forgetest.Token { return forgetest.Token{Job: true, Permissions: p} }
	writer := job(map[string]string{"contents": "write"})
	cases := map[string]struct {
		token        forgetest.Token
		set          []forgetest.Setting
		file, branch string
		content      string
		want         string // "" succeeds
	}{
		"control: a branch of its own":     {token: writer, branch: "proctor/issue-1"},
		"control: a ref that starts no CI": {token: writer, branch: "refs/proctor/1/state"},
		"a protected branch":               {token: writer, set: []forgetest.Setting{forgetest.Protected("main")}, branch: "main", want: "! [remote rejected] HEAD -> main (protected branch hook declined)"},
		"a protected branch, its reason":   {token: writer, set: []forgetest.Setting{forgetest.Protected("main")}, branch: "main", want: "remote: error: GH006: Protected branch update failed for refs/heads/main."},
		"a workflow file by a job":         {token: writer, file: ".github/workflows/new.yml", branch: "x", want: "(refusing to allow a GitHub App to create or update workflow `.github/workflows/new.yml` without `workflows` permission)"},
		"a workflow file by a user":        {token: forgetest.Token{Login: "alice", Permissions: map[string]string{"contents": "write"}}, file: ".github/workflows/new.yml", branch: "x", want: "(refusing to allow a Personal Access Token to create or update workflow `.github/workflows/new.yml` without `workflow` scope)"},
		"control: an App that may":         {token: forgetest.Token{Installation: true, Login: "app[bot]", Permissions: map[string]string{"contents": "write", "workflows": "write"}}, file: ".github/workflows/new.yml", branch: "x"},
		"no contents: write":               {token: job(map[string]string{"contents": "read"}), branch: "x", want: "remote: Permission to octo/shop.git denied to github-actions[bot]."},
		"an archived repository":           {token: writer, set: []forgetest.Setting{forgetest.Archived(true)}, branch: "x", want: "remote: This repository was archived so it is read-only."},
		"a file over the limit":            {token: writer, set: []forgetest.Setting{forgetest.MaxBlob(1000)}, content: strings.Repeat("x", 1001), branch: "x", want: "GH001: Large files detected."},
		"control: a file at the limit":     {token: writer, set: []forgetest.Setting{forgetest.MaxBlob(1000)}, content: strings.Repeat("x", 1000), branch: "x"},
		"an expired token":                 {token: forgetest.Token{Login: "alice", Expires: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}, branch: "x", want: "Authentication failed"},
		"a pull ref":                       {token: writer, branch: "refs/pull/1/head", want: "deny updating a hidden ref"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Date(2029, 1, 1, 0, 0, 0, 0, time.UTC)
			g := newGitHub(t, forgetest.Options{Clock: func() time.Time { return now }})
			g.AddUser("alice", "write")
			dir, out, err := clone(t, g.URL()+"/octo/shop.git", "x-access-token", g.NewToken(c.token))
			if err != nil {
				t.Fatal(out)
			}
			g.Set(c.set...)
			now = now.AddDate(2, 0, 0)
			file, content := c.file, c.content
			if file == "" {
				file = "fix.txt"
			}
			write(t, dir, file, content)
			out, err = gitCmd(t, dir, "push", "origin", "HEAD:"+c.branch)
			if ok := err == nil; ok != (c.want == "") || !strings.Contains(out, c.want) {
				t.Errorf("push: %v, want %q:\n%s", err, c.want, out)
			}
			head, _ := gitCmd(t, dir, "rev-parse", "HEAD")
			ref := c.branch
			if !strings.HasPrefix(ref, "refs/") {
				ref = "refs/heads/" + ref
			}
			there, err := gitCmd(t, g.GitDir(), "rev-parse", "--verify", "-q", ref)
			if moved := err == nil && there == head; moved != (c.want == "") {
				t.Errorf("the ref points at %s after pushing %s", there, head)
			}
		})
	}
}

func TestALargePushAndAFetchByCommitArriveWhole(t *testing.T) {
	t.Parallel()
	g := newGitHub(t, forgetest.Options{})
	token := g.NewToken(forgetest.Token{Job: true, Permissions: map[string]string{"contents": "write"}})
	dir, out, err := clone(t, g.URL()+"/octo/shop.git", "x-access-token", token)
	if err != nil {
		t.Fatal(out)
	}
	noise := make([]byte, 3<<20) // above the size from which git sends chunked bodies
	for i, x := 0, uint32(1); i < len(noise); i++ {
		x = x*1664525 + 1013904223
		noise[i] = byte(x >> 24)
	}
	write(t, dir, "noise.bin", string(noise))
	if out, err := gitCmd(t, dir, "push", "-q", "origin", "HEAD:refs/heads/big"); err != nil {
		t.Fatal(out)
	}
	shallow := t.TempDir()
	for _, args := range [][]string{{"init", "-q"}, {"fetch", "-q", "--depth=1", strings.Replace(g.URL(), "://", "://x:"+token+"@", 1) + "/octo/shop", g.Branch("big")}, {"checkout", "-q", "FETCH_HEAD"}} {
		if out, err := gitCmd(t, shallow, args...); err != nil {
			t.Fatal(out)
		}
	}
	got, err := os.ReadFile(filepath.Join(shallow, "noise.bin"))
	if err != nil || string(got) != string(noise) {
		t.Errorf("%d bytes came back, %v", len(got), err)
	}
	if info, err := os.Stat(filepath.Join(shallow, "bin", "run")); err != nil || info.Mode()&0o111 == 0 {
		t.Errorf("the executable bit was lost: %v", err)
	}
}

func TestTheFirstCommitIsTheSameEveryTime(t *testing.T) {
	t.Parallel()
	a, b := newGitHub(t, forgetest.Options{}), newGitHub(t, forgetest.Options{})
	if a.Branch("main") == "" || a.Branch("main") != b.Branch("main") {
		t.Errorf("commits %q and %q", a.Branch("main"), b.Branch("main"))
	}
}

func TestGitLabRefusesPushesInItsWords(t *testing.T) {
	t.Parallel()
	g, err := forgetest.NewGitLab(forgetest.GitLabOptions{Dir: t.TempDir(), Files: fstest.MapFS{"a": {Data: []byte("a")}}})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	g.AddUser("dev", "developer")
	g.AddUser("guest", "reporter")
	g.Protect("main")
	dir, out, err := clone(t, g.URL()+"/group/sub/shop.git", "oauth2", g.NewToken(forgetest.GitLabToken{Login: "dev"}))
	if err != nil {
		t.Fatal(out)
	}
	write(t, dir, "b", "b")
	if out, err := gitCmd(t, dir, "push", "origin", "HEAD:main"); err == nil || !strings.Contains(out, "not allowed to push code to protected branches") {
		t.Errorf("push to main: %v\n%s", err, out)
	}
	if out, err := gitCmd(t, dir, "push", "-q", "origin", "HEAD:proctor/issue-1"); err != nil {
		t.Errorf("control: a branch of its own: %s", out)
	}
	bad, out, err := clone(t, g.URL()+"/group/sub/shop.git", "oauth2", g.NewToken(forgetest.GitLabToken{Login: "guest"}))
	if err != nil {
		t.Fatal(out)
	}
	write(t, bad, "c", "c")
	if out, err := gitCmd(t, bad, "push", "origin", "HEAD:x"); err == nil || !strings.Contains(out, "You are not allowed to push code to this project.") {
		t.Errorf("push by a reporter: %v\n%s", err, out)
	}
}
