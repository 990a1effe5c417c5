package git

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// moduled is a repository with a submodule at deps/lib, and the forge that has the submodule.
func moduled(t *testing.T, module files) (checkout string, f *forge, id ID) {
	t.Helper()
	lib := initRepo(t, module)
	id = ID(strings.TrimSpace(plain(t, lib, "rev-parse", "HEAD")))
	checkout = initRepo(t, with(sample(), files{".gitmodules": "[submodule \"lib\"]\n\tpath = deps/lib\n\turl = ../r.git\n"}))
	plain(t, checkout, "update-index", "--add", "--cacheinfo", "160000,"+string(id)+",deps/lib")
	plain(t, checkout, "commit", "-q", "-m", "with a submodule")
	return checkout, newForge(t, lib), id
}

// INV-13, INV-18: what an entered submodule holds is shown everywhere and is in no commit. The control is the same
// repository without having entered it.
func TestASubmoduleIsShownAndNoPartOfAnyChange(t *testing.T) {
	t.Parallel()
	module := files{"lib.sh": "echo lib\n", "run.sh": "#!/bin/sh\n", "link": "->lib.sh", ".gitignore": "cache/\n", "in/deep": "x\n"}
	checkout, f, id := moduled(t, module)
	control := newSpace(t, checkout, nil)
	if exists(control.agent.Dir() + "/deps/lib/lib.sh") {
		t.Fatal("control: a submodule is shown that nobody entered")
	}
	s := openStore(t, newGit(t), checkout, "")
	subs, err := s.Submodules(t.Context())
	if diff := cmp.Diff([]Submodule{{Path: "deps/lib", Commit: id, URL: "../r.git"}}, subs); err != nil || diff != "" {
		t.Fatalf("%v (-want +got):\n%s", err, diff)
	}
	if nested, err := s.Enter(t.Context(), subs[0], f.remote()); err != nil || nested {
		t.Fatal(nested, err)
	}
	dir := t.TempDir()
	agent, err := s.NewAgent(t.Context(), filepath.Join(dir, "agent"), nil)
	if err != nil {
		t.Fatal(err)
	}
	gate, err := s.NewGate(t.Context(), filepath.Join(dir, "gate"), nil)
	if err != nil {
		t.Fatal(err)
	}
	proof, err := s.NewProof(t.Context(), filepath.Join(dir, "proof"), s.Base())
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{agent.Dir(), gate.Dir(), proof.Dir} {
		if diff := cmp.Diff(module, contents(t, filepath.Join(at, "deps/lib"))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", filepath.Base(at), diff)
		}
	}
	if out := plain(t, agent.Dir(), "status", "--porcelain"); out != "" {
		t.Errorf("the agent's git status:\n%s", out)
	}
	sp := space{store: s, agent: agent, gate: gate}
	if snap := sp.snapshot(t, ""); !snap.Unchanged || len(snap.Problems) > 0 {
		t.Errorf("an untouched directory: changes %v, problems %v", paths(snap.Changes), snap.Problems)
	}

	at := func(name string) string { return "deps/lib/" + name }
	put(t, agent.Dir(), "pkg/sum.go", "changed\n")
	put(t, agent.Dir(), at("cache/x"), "ignored by the submodule\n")
	snap := sp.snapshot(t, "")
	if diff := cmp.Diff([]string{"M pkg/sum.go"}, paths(snap.Changes)); diff != "" || len(snap.Problems) > 0 {
		t.Errorf("problems %v, changes (-want +got):\n%s", snap.Problems, diff)
	}
	for name, edit := range map[string]func(){
		"edited":  func() { put(t, agent.Dir(), at("lib.sh"), "echo other\n") },
		"added":   func() { put(t, agent.Dir(), at("new"), "x\n") },
		"removed": func() { _ = os.RemoveAll(filepath.Join(agent.Dir(), "deps/lib")) },
	} {
		edit()
		snap := sp.snapshot(t, "")
		if diff := cmp.Diff([]string{"M pkg/sum.go"}, paths(snap.Changes)); diff != "" {
			t.Errorf("%s: changes (-want +got):\n%s", name, diff)
		}
		if len(snap.Problems) != 1 || snap.Problems[0].Kind != SubmoduleEdited || !strings.HasPrefix(snap.Problems[0].Path, "deps/lib/") || !snap.Lossy() {
			t.Errorf("%s: problems %v", name, snap.Problems)
		}
		if e, err := s.Entry(t.Context(), snap.Commit, "deps/lib"); err != nil || e != (Entry{ModeGitlink, id}) {
			t.Errorf("%s: the commit has %v at the submodule: %v", name, e, err)
		}
		if err := agent.Restore(t.Context(), snap.Commit); err != nil {
			t.Fatal(err)
		}
	}
	plain(t, filepath.Join(agent.Dir(), "deps/lib"), "init", "-q")
	if snap := sp.snapshot(t, ""); !strings.Contains(strings.Join(kinds(snap.Problems), " "), NestedRepository+" deps/lib") {
		t.Errorf("a repository made in a submodule: %v", snap.Problems)
	}

	if err := gate.Sync(t.Context(), snap.Commit); err != nil {
		t.Fatal(err)
	}
	put(t, gate.Dir(), at("lib.sh"), "changed by a gate\n")
	drift, err := gate.Check(t.Context())
	if diff := cmp.Diff([]string{at("lib.sh")}, drift.Changed); err != nil || diff != "" {
		t.Errorf("%v, drift (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff(module, contents(t, filepath.Join(gate.Dir(), "deps/lib"))); diff != "" {
		t.Errorf("the gate's directory was not put back (-want +got):\n%s", diff)
	}
	// Nothing of it travels: the remote has the change and not the submodule's files.
	to := newForge(t, checkout)
	if err := s.Push(t.Context(), to.remote(), []RefUpdate{{Name: "refs/heads/proctor/issue-7", New: snap.Commit}}); err != nil {
		t.Fatal(err)
	}
	if _, err := tryPlain(to.bare, "cat-file", "-e", string(id)); err == nil {
		t.Error("the submodule's commit was pushed")
	}
}

// INV-13: an agent cannot point the submodule elsewhere, whether it is entered or not.
func TestABumpedSubmoduleIsAChangeOfItsGitlink(t *testing.T) {
	t.Parallel()
	checkout, f, _ := moduled(t, files{"lib.sh": "echo lib\n"})
	for name, enter := range map[string]bool{"entered": true, "left empty": false} {
		s := openStore(t, newGit(t), checkout, "")
		subs, err := s.Submodules(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if enter {
			if _, err := s.Enter(t.Context(), subs[0], f.remote()); err != nil {
				t.Fatal(err)
			}
		}
		agent, err := s.NewAgent(t.Context(), filepath.Join(t.TempDir(), "agent"), nil)
		if err != nil {
			t.Fatal(err)
		}
		sub := filepath.Join(agent.Dir(), "deps/lib")
		plain(t, sub, "init", "-q")
		plain(t, sub, "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "--allow-empty", "-m", "elsewhere")
		snap := space{store: s, agent: agent}.snapshot(t, "")
		bumped := strings.Join(paths(snap.Changes), " ") == "T deps/lib" || strings.Join(paths(snap.Changes), " ") == "M deps/lib"
		nested := strings.Contains(strings.Join(kinds(snap.Problems), " "), NestedRepository)
		if enter && !nested || !enter && !bumped {
			t.Errorf("%s: changes %v, problems %v", name, paths(snap.Changes), snap.Problems)
		}
	}
}

// plainIn is plain with something on standard input.
func plainIn(t *testing.T, dir, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %v: %v", args, err)
	}
	return string(out)
}

func TestNamesAndCommandsInTheModulesFileHaveNoEffect(t *testing.T) {
	t.Parallel()
	marker := filepath.Join(t.TempDir(), "ran")
	included := filepath.Join(t.TempDir(), "included")
	put(t, filepath.Dir(included), "included", "[submodule \"lib\"]\n\turl = https://elsewhere.example/o/l\n")
	hostile := "[submodule \"--upload-pack=touch " + marker + "\"]\n\tpath = deps/lib\n\turl = ../r.git\n\tupdate = !touch " + marker + "\n" +
		"[submodule \"../../x\"]\n\tpath = ../outside\n\turl = ../x.git\n[include]\n\tpath = " + included + "\n[core]\n\tfsmonitor = touch " + marker + "\n"
	for name, c := range map[string]struct{ file, want string }{
		"hostile":   {hostile, "../r.git"},
		"no url":    {"[submodule \"lib\"]\n\tpath = deps/lib\n", ""},
		"not named": {"[submodule \"lib\"]\n\tpath = deps/library\n\turl = ../r.git\n", ""},
	} {
		checkout := initRepo(t, with(sample(), files{".gitmodules": c.file}))
		plain(t, checkout, "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("1", 40)+",deps/lib")
		plain(t, checkout, "-c", "core.fsmonitor=false", "commit", "-q", "-m", "x")
		subs, err := openStore(t, newGit(t), checkout, "").Submodules(t.Context())
		if err != nil || len(subs) != 1 || subs[0].URL != c.want || subs[0].Path != "deps/lib" {
			t.Errorf("%s: %+v, %v", name, subs, err)
		}
	}
	if exists(marker) {
		t.Error("INV-21 something that .gitmodules names ran")
	}
	twice := initRepo(t, with(sample(), files{".gitmodules": "[submodule \"a\"]\n\tpath = deps/lib\n\turl = ../a\n[submodule \"b\"]\n\tpath = deps/lib\n\turl = ../b\n"}))
	plain(t, twice, "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("1", 40)+",deps/lib")
	plain(t, twice, "commit", "-q", "-m", "x")
	if subs, err := openStore(t, newGit(t), twice, "").Submodules(t.Context()); err == nil {
		t.Errorf("two addresses for one path: %+v", subs)
	}
}

func TestAHostileSubmoduleIsNotEntered(t *testing.T) {
	t.Parallel()
	checkout, f, _ := moduled(t, files{"lib.sh": "echo lib\n"})
	s := openStore(t, newGit(t), checkout, "")
	subs, err := s.Submodules(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	evil := subs[0]
	// A tree that no git would check out: it holds a repository's own configuration.
	blob := strings.TrimSpace(plainIn(t, f.bare, "[core]\n\tfsmonitor = touch x\n", "hash-object", "-w", "--stdin"))
	inner := strings.TrimSpace(plainIn(t, f.bare, "100644 blob "+blob+"\tconfig\n", "mktree"))
	tree := strings.TrimSpace(plainIn(t, f.bare, "040000 tree "+inner+"\t.git\n", "mktree"))
	evil.Commit = ID(strings.TrimSpace(plainIn(t, f.bare, "m\n", "-c", "user.name=a", "-c", "user.email=a@example.com", "commit-tree", tree)))
	plain(t, f.bare, "update-ref", "refs/heads/evil", string(evil.Commit))
	if _, err := s.Enter(t.Context(), evil, f.remote()); err == nil || !strings.Contains(err.Error(), ".git") {
		t.Errorf("a submodule with a .git in its tree: %v", err)
	}
	missing := subs[0]
	missing.Commit = ID(strings.Repeat("1", 40))
	if _, err := s.Enter(t.Context(), missing, f.remote()); err == nil {
		t.Error("a commit that nobody has was entered")
	}
	// The control: the honest one is.
	if _, err := s.Enter(t.Context(), subs[0], f.remote()); err != nil {
		t.Error(err)
	}
}
