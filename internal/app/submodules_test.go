package app

import (
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/git"
)

// INV-21: the token reaches only the configured host. The controls are the addresses that are fetched.
func TestASubmodulesAddressLeadsNowhereElseWithTheToken(t *testing.T) {
	t.Parallel()
	own := git.Remote{URL: "https://forge.example:8443/octo/shop.git", Username: "u", Token: "t"}
	for address, want := range map[string]string{
		"../lib.git":      "https://forge.example:8443/octo/lib.git",
		"../../other/lib": "https://forge.example:8443/other/lib",
		"./sub.git":       "https://forge.example:8443/octo/shop.git/sub.git",
		"https://FORGE.example:8443/octo/lib.git":   "https://FORGE.example:8443/octo/lib.git",
		"git@forge.example:octo/lib.git":            "https://forge.example:8443/octo/lib.git",
		"ssh://git@forge.example:22/octo/lib.git":   "https://forge.example:8443/octo/lib.git",
		"https://elsewhere.example/octo/lib.git":    "https://elsewhere.example/octo/lib.git",
		"https://forge.example/octo/lib.git":        "https://forge.example/octo/lib.git", // another port is another server
		"https://forge.example.evil.example/o/l":    "https://forge.example.evil.example/o/l",
		"https://elsewhere.example/group/sub/l.git": "https://elsewhere.example/group/sub/l.git",
	} {
		got, err := submoduleRemote(own, address)
		token := strings.HasPrefix(strings.ToLower(want), "https://forge.example:8443/")
		if err != nil || got.URL != want || (got.Token != "") != token || (got.Username != "") != token || got.Branch != "" {
			t.Errorf("%q: got %+v, %v, want %s, token %v", address, got, err, want, token)
		}
	}
	for _, address := range []string{
		"", "-u", "--upload-pack=touch x", "ext::sh -c touch% x", "fd::17", "file:///etc", "/etc/passwd", "lib.git", "C:/x/y", "../../../lib.git", "../../../../../etc/x", "../..",
		"http://elsewhere.example/o/l.git", "git://forge.example/o/l.git", "ftp://forge.example/o/l", "https://u:p@forge.example:8443/o/l.git", "https://forge.example:8443/o/l.git?x=1",
		"https://forge.example:8443/o/l.git#x", "https://forge.example:8443/o/%2e%2e/l.git", "https://forge.example:8443/o/../../l", "https://forge.example:8443/o\\l/x", "https://forge.example:8443",
		"https://forge.example:8443/only", "git@elsewhere.example:o/l.git", "ssh://git@elsewhere.example/o/l.git", "git@-oProxyCommand=x:o/l", "https:///o/l", "https://forge.example:8443/o/-l",
		"../lib.git\nx", "../li b.git", "\x00", "transport::https://forge.example/o/l",
	} {
		if got, err := submoduleRemote(own, address); err == nil {
			t.Errorf("%q would be fetched from %s", address, got.URL)
		}
	}
	if got, err := submoduleRemote(git.Remote{}, "../lib.git"); err == nil {
		t.Errorf("without a forge a relative address leads to %s", got.URL)
	}
	if got, err := submoduleRemote(git.Remote{}, "https://elsewhere.example/o/l.git"); err != nil || got.Token != "" {
		t.Errorf("control: without a forge: %+v, %v", got, err)
	}
}

func FuzzSubmoduleAddresses(f *testing.F) {
	for _, seed := range []string{"../x/y", "git@forge.example:a/b", "https://forge.example/a/b", "ssh://forge.example/a/b", "ext::x", "https://a@b/c/d"} {
		f.Add(seed)
	}
	own := git.Remote{URL: "https://forge.example/octo/shop.git", Token: "t"}
	f.Fuzz(func(t *testing.T, address string) {
		got, err := submoduleRemote(own, address)
		if err != nil {
			return
		}
		if !strings.HasPrefix(got.URL, "https://") {
			t.Fatalf("%q leads to %q", address, got.URL)
		}
		if got.Token != "" && !strings.HasPrefix(strings.ToLower(got.URL), "https://forge.example/") {
			t.Fatalf("%q takes the token to %q", address, got.URL)
		}
	})
}

// withSubmodule gives the base commit a submodule at lib: a commit of the same repository, named by a relative address.
func (w *world) withSubmodule() {
	w.t.Helper()
	as := []string{"-c", "user.name=maya", "-c", "user.email=maya@example.com", "commit-tree"}
	blob := strings.TrimSpace(w.gitIn("ok\n", "hash-object", "-w", "--stdin"))
	lib := strings.TrimSpace(w.gitIn("100644 blob "+blob+"\tcheck.txt\n", "mktree"))
	commit := strings.TrimSpace(w.gitIn("The library\n", append(as, lib)...))
	w.git("update-ref", "refs/heads/proctor/library", commit)
	modules := strings.TrimSpace(w.gitIn("[submodule \"lib\"]\n\tpath = lib\n\turl = ../shop.git\n", "hash-object", "-w", "--stdin"))
	tree := strings.TrimSpace(w.gitIn(w.git("ls-tree", base)+"100644 blob "+modules+"\t.gitmodules\n160000 commit "+commit+"\tlib\n", "mktree"))
	w.git("update-ref", "refs/heads/"+base, strings.TrimSpace(w.gitIn("With a library\n", append(as, tree, "-p", base)...)))
}

func TestARunWithASubmodule(t *testing.T) {
	// INV-13, INV-15: gates and proof see it, an edit of it is fed back and never pushed.
	gates := strings.Replace(bothGates, "iteration: sh tests/run.sh", `iteration: "cat lib/check.txt && sh tests/run.sh"`, 1)
	plan := []tick{{sh("cp lib/check.txt app/copy.txt; echo mine > lib/check.txt"), reply(allRight)}, {sh("echo ok > lib/check.txt"), reply(allRight)}}
	t.Run("entered", func(t *testing.T) {
		w := open(t, setting{plan: plan, config: map[string]string{"gates": gates, "workspace": "{submodules: true}"}})
		w.withSubmodule()
		j := w.label().ended("done", 0, "proctor:review")
		if first := j.rec.Ticks[0]; len(j.rec.Ticks) != 2 || len(first.Guard) == 0 || first.Guard[0].Rule != "gitlink" || first.Guard[0].Level != "block" {
			t.Errorf("%d ticks, the first was told %+v", len(j.rec.Ticks), first.Guard)
		}
		if got := w.git("diff", "--name-only", base, w.branch()); got != "app/answer.txt\napp/copy.txt\n" || w.file("app/copy.txt") != "ok\n" {
			t.Errorf("the branch changes\n%s", got)
		}
	})
	t.Run("the control: left empty", func(t *testing.T) {
		w := open(t, setting{plan: plan, config: map[string]string{"gates": gates}})
		w.withSubmodule()
		if j := w.label(); j.rec.Terminal == "done" {
			t.Error("the gates passed without the submodule, so the test shows nothing")
		}
		w.unpublished()
	})
}

func TestASubmoduleThatCannotBeHadEndsTheRunBeforeItIsPaid(t *testing.T) {
	for name, c := range map[string]struct{ url, terminal, says string }{
		"a program":   {"ext::sh -c touch% x", "usage_error", "is no address of a repository"},
		"a file":      {"file:///etc/x/y", "usage_error", "is no address of a repository"},
		"not granted": {"../secret.git", "gate_broken", "submodule lib"},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t, setting{plan: []tick{{spend(10, 10), reply(allRight)}}, config: map[string]string{"workspace": "{submodules: true}"}})
			w.withSubmodule()
			text := strings.Replace(w.git("show", base+":.gitmodules"), "../shop.git", c.url, 1)
			blob := strings.TrimSpace(w.gitIn(text, "hash-object", "-w", "--stdin"))
			listed := strings.Replace(w.git("ls-tree", base), strings.Fields(w.git("ls-tree", base, ".gitmodules"))[2], blob, 1)
			tree := strings.TrimSpace(w.gitIn(listed, "mktree"))
			w.git("update-ref", "refs/heads/"+base, strings.TrimSpace(w.gitIn("x\n", "-c", "user.name=m", "-c", "user.email=m@example.com", "commit-tree", tree, "-p", base)))
			j := w.label()
			if j.rec.Terminal != c.terminal || !strings.Contains(j.rec.Reason, c.says) || len(w.model.Calls()) != 0 {
				t.Errorf("ended %s after %d calls: %s", j.rec.Terminal, len(w.model.Calls()), j.rec.Reason)
			}
		})
	}
}
