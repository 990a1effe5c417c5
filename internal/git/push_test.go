package git

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// candidate is a space with one commit ready to push.
func candidate(t *testing.T) (*forge, space, Snapshot) {
	t.Helper()
	checkout := initRepo(t, sample())
	f := newForge(t, checkout)
	sp := newSpace(t, checkout, heldOut)
	put(t, sp.agent.Dir(), "pkg/sum.go", "candidate\n")
	return f, sp, sp.snapshot(t, "")
}

func wantKind(t *testing.T, err error, kind RemoteKind) *RemoteError {
	t.Helper()
	var failure *RemoteError
	if !errors.As(err, &failure) {
		t.Fatalf("got %v, want a *RemoteError of kind %s", err, kind)
	}
	if failure.Kind != kind {
		t.Errorf("kind %s, want %s: %v", failure.Kind, kind, err)
	}
	if failure.Next == "" && kind != NoRef {
		t.Errorf("no next step in: %v", err)
	}
	return failure
}

const branch = "refs/heads/proctor/issue-7"

// INV-20: nothing but the run's branch and refs/proctor/** is ever written, and nothing is deleted. The
// control is the same push by plain git, which the forge accepts.
func TestPushRefusesEveryOtherRef(t *testing.T) {
	t.Parallel()
	f, sp, snap := candidate(t)
	s := sp.store
	cases := map[string]struct {
		remote Remote
		update RefUpdate
	}{
		"default branch":          {f.remote(), RefUpdate{"refs/heads/main", snap.Commit, s.Base()}},
		"default branch, by name": {Remote{URL: f.URL + "/o/r.git", Token: f.token, Branch: "main", DefaultBranch: "main"}, RefUpdate{"refs/heads/main", snap.Commit, s.Base()}},
		"default branch, other case": {Remote{URL: f.URL + "/o/r.git", Token: f.token, Branch: "Main", DefaultBranch: "main"},
			RefUpdate{"refs/heads/Main", snap.Commit, ""}},
		"unknown default branch": {Remote{URL: f.URL + "/o/r.git", Token: f.token, Branch: "x"}, RefUpdate{"refs/heads/x", snap.Commit, ""}},
		"other branch":           {f.remote(), RefUpdate{"refs/heads/proctor/issue-70", snap.Commit, ""}},
		"tag":                    {f.remote(), RefUpdate{"refs/tags/v1", snap.Commit, ""}},
		"HEAD":                   {f.remote(), RefUpdate{"HEAD", snap.Commit, ""}},
		"delete":                 {f.remote(), RefUpdate{branch, "", ""}},
		"delete by zero":         {f.remote(), RefUpdate{branch, s.fmt.zero(), ""}},
		"climbing":               {f.remote(), RefUpdate{"refs/proctor/../heads/main", snap.Commit, ""}},
		"a refspec of its own":   {f.remote(), RefUpdate{"refs/proctor/x:refs/heads/main", snap.Commit, ""}},
		"an option":              {f.remote(), RefUpdate{"--mirror", snap.Commit, ""}},
		"an option as id":        {f.remote(), RefUpdate{"refs/proctor/x", "--mirror", ""}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			before := f.ref(t, "refs/heads/main")
			started := sp.git.Started()
			wantKind(t, s.Push(t.Context(), c.remote, []RefUpdate{c.update}), Refused)
			if sp.git.Started() != started {
				t.Error("a process was started")
			}
			if f.ref(t, "refs/heads/main") != before || f.ref(t, "refs/tags/v1") != "" {
				t.Error("the forge's refs moved")
			}
		})
	}
	url := strings.Replace(f.URL, "http://", "http://x-access-token:"+f.token+"@", 1) + "/o/r.git"
	plain(t, s.Dir(), "push", "-q", url, string(snap.Commit)+":refs/heads/main", string(snap.Commit)+":refs/tags/v1")
	if f.ref(t, "refs/heads/main") != snap.Commit {
		t.Error("control: the forge itself allows it")
	}
}

// INV-20: a person's commit on the run's branch is never lost, not even when it was seen and expected;
// our own commits may be replaced.
func TestPushNeverLosesAPersonsCommit(t *testing.T) {
	t.Parallel()
	f, sp, first := candidate(t)
	s := sp.store
	push := func(id, expect ID) error {
		return s.Push(t.Context(), f.remote(), []RefUpdate{{branch, id, expect}})
	}
	if err := push(first.Commit, ""); err != nil {
		t.Fatal(err)
	}
	squashed, err := s.Squash(t.Context(), first.Commit, Meta{Run: "r1", Subject: "Fix the sum"})
	if err != nil {
		t.Fatal(err)
	}
	if err := push(squashed, first.Commit); err != nil {
		t.Fatalf("our own commit could not be replaced: %v", err)
	}

	clone := filepath.Join(t.TempDir(), "person")
	plain(t, "/", "clone", "-q", "-b", "proctor/issue-7", f.bare, clone)
	put(t, clone, "human.txt", "mine\n")
	plain(t, clone, "add", "-A")
	plain(t, clone, "commit", "-qm", "by a person\n\nProctor-Run: r1")
	plain(t, clone, "push", "-q", "origin", "HEAD:"+branch)
	human := f.ref(t, branch)

	put(t, sp.agent.Dir(), "more", "x\n")
	next := sp.snapshot(t, squashed)
	failure := wantKind(t, push(next.Commit, squashed), Rejected)
	if failure.Ref != branch {
		t.Errorf("the refused ref is %q", failure.Ref)
	}
	wantKind(t, push(next.Commit, human), Refused) // not fetched
	if err := s.Fetch(t.Context(), f.remote(), branch+":refs/proctor/seen"); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Ref("refs/proctor/seen"); err != nil || got != human {
		t.Errorf("fetched %s, %v", got, err)
	}
	if failure := wantKind(t, push(next.Commit, human), Refused); !strings.Contains(failure.Said, "A Person") {
		t.Errorf("it does not name whose commit: %v", failure)
	}
	if f.ref(t, branch) != human {
		t.Fatal("the person's commit was lost")
	}
	onTop := sp.snapshot(t, human)
	if err := push(onTop.Commit, human); err != nil {
		t.Errorf("a fast-forward over the person's commit: %v", err)
	}
	// Ours on top of a person's: the search goes on below ours.
	wantKind(t, push(next.Commit, onTop.Commit), Refused)
	name := strings.TrimPrefix(branch, "refs/heads/")
	if failure := wantKind(t, s.Replaceable(t.Context(), name, onTop.Commit, s.Base()), Refused); !strings.Contains(failure.Said, string(human)) {
		t.Errorf("it does not name what would be lost: %v", failure)
	}
	for onto, tip := range map[ID]ID{s.Base(): squashed, human: onTop.Commit, onTop.Commit: onTop.Commit} {
		if err := s.Replaceable(t.Context(), name, tip, onto); err != nil {
			t.Errorf("control: %s may not give way to work on %s: %v", tip, onto, err)
		}
	}
	// What the base holds too is not lost with the branch.
	plain(t, clone, "fetch", "-q", "origin", branch)
	merged := openStore(t, newGit(t), clone, string(onTop.Commit))
	if err := merged.Replaceable(t.Context(), name, human, merged.Base()); err != nil {
		t.Errorf("what was merged: %v", err)
	}
	// Control: plain force would have lost it.
	url := strings.Replace(f.URL, "http://", "http://x-access-token:"+f.token+"@", 1) + "/o/r.git"
	plain(t, s.Dir(), "push", "-q", "--force", url, string(next.Commit)+":"+branch)
	if out := plain(t, f.bare, "log", "--format=%an", branch); strings.Contains(out, "A Person\nA") {
		t.Errorf("control: %s", out)
	}
}

// INV-21: the token goes to the configured host only: not after a redirect, not on a command line, not
// to disk. The control shows that the redirect is followed without a token and that it leads somewhere.
func TestTheTokenReachesOnlyTheConfiguredHost(t *testing.T) {
	t.Parallel()
	f, sp, snap := candidate(t)
	stolen := make(chan string, 100)
	thief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stolen <- r.Header.Get("Authorization")
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(thief.Close)
	f.mu.Lock()
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, thief.URL+r.URL.Path+"?"+r.URL.RawQuery, http.StatusFound)
		return true
	}
	f.mu.Unlock()
	err := sp.store.Push(t.Context(), f.remote(), []RefUpdate{{branch, snap.Commit, ""}})
	wantKind(t, err, Redirected)
	select {
	case header := <-stolen:
		t.Errorf("the redirect was followed, with header %q", header)
	default:
	}
	_, _ = tryPlain(sp.store.Dir(), "ls-remote", f.URL+"/o/r.git")
	_, _ = tryPlain(sp.store.Dir(), "-c", "http.followRedirects=true", "ls-remote", f.URL+"/o/r.git")
	select {
	case <-stolen:
	case <-time.After(10 * time.Second):
		t.Error("control: the redirect leads nowhere")
	}
	basic := base64.StdEncoding.EncodeToString([]byte("x-access-token:" + f.token))
	if strings.Contains(err.Error(), f.token) || strings.Contains(err.Error(), basic) {
		t.Errorf("the error holds the token: %v", err)
	}
	walkErr := filepath.WalkDir(filepath.Dir(sp.store.Dir()), func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), f.token) || strings.Contains(string(text), basic) {
			t.Errorf("%s holds the token", path)
		}
		return err
	})
	if walkErr != nil {
		t.Error(walkErr)
	}
}

func TestTheTokenIsInNoArgument(t *testing.T) {
	t.Parallel()
	_, sp, _ := candidate(t)
	e, err := Remote{URL: "https://forge.example:8443/o/r.git", Token: "se" + "cret"}.endpoint()
	if err != nil {
		t.Fatal(err)
	}
	cmd := sp.git.command(t.Context(), sp.store.remote(e, "push", "--", e.url))
	for _, arg := range cmd.Args {
		if strings.Contains(arg, "secret") {
			t.Errorf("argument %q", arg)
		}
	}
	var key string
	for _, pair := range cmd.Env {
		if strings.HasSuffix(pair, ".extraHeader") {
			key = pair
		}
	}
	if !strings.HasSuffix(key, "=http.https://forge.example:8443/.extraHeader") {
		t.Errorf("the header is bound to %q", key)
	}
}

func TestRemotesThatWouldGiveTheTokenAwayAreRefused(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"https://user:pass@forge.example/o/r.git", "http://forge.example/o/r.git", "ssh://git@forge.example/o/r.git", "git@forge.example:o/r.git",
		"ext::sh -c touch% x", "file://host/path", "https:///o/r.git", "https://forge.example/o/r.git?x=y", "", "-oProxyCommand=x", "/abs/path",
		"https://forge.example/\nx",
	} {
		if _, err := (Remote{URL: url, Token: "x"}).endpoint(); err == nil {
			t.Errorf("%q was taken", url)
		} else if strings.Contains(err.Error(), "pass") && strings.Contains(url, "pass") {
			t.Errorf("the error repeats the password: %v", err)
		}
	}
	if _, err := (Remote{URL: "https://forge.example/o/r.git", Token: "x\r\nEvil: y"}).endpoint(); err == nil {
		t.Error("a token with a line break was taken")
	}
}

func TestPushFailuresAreToldApart(t *testing.T) {
	t.Parallel()
	hook := func(message string) func(t *testing.T, f *forge) {
		return func(t *testing.T, f *forge) {
			put(t, f.bare, "hooks/pre-receive", "#!/bin/sh\ncat >/dev/null\necho '"+message+"' >&2\nexit 1\n")
		}
	}
	answer := func(status int, body string) func(t *testing.T, f *forge) {
		return func(_ *testing.T, f *forge) {
			f.before = func(w http.ResponseWriter, _ *http.Request) bool {
				if status == http.StatusUnauthorized {
					w.Header().Set("WWW-Authenticate", "Basic")
				}
				http.Error(w, body, status)
				return true
			}
		}
	}
	cases := map[string]struct {
		kind  RemoteKind
		setup func(t *testing.T, f *forge)
	}{
		"wrong token":      {Auth, func(_ *testing.T, f *forge) { f.token = "another" }},
		"expired":          {Auth, answer(401, "bad credentials")},
		"read-only":        {Forbidden, answer(403, "Write access to repository not granted.")},
		"gone":             {NotFound, answer(404, "Not Found")},
		"pack too large":   {TooBig, answer(413, "too large")},
		"server error":     {Unreachable, answer(503, "unavailable")},
		"nobody listens":   {Unreachable, func(_ *testing.T, f *forge) { f.Close() }},
		"protected branch": {Protected, hook("error: GH006: Protected branch update failed for refs/heads/x.")},
		"ruleset":          {Protected, hook("error: GH013: Repository rule violations found for refs/heads/x.")},
		"gitlab protected": {Protected, hook("GitLab: You are not allowed to push code to protected branches on this project.")},
		"workflows":        {Workflows, hook("refusing to allow a GitHub App to create or update workflow `.github/workflows/ci.yml` without `workflows` permission")},
		"large file":       {TooBig, hook("error: GH001: Large files detected. File big is 123.00 MB; this exceeds GitHub file size limit of 100.00 MB")},
		"some hook":        {Hook, hook("the commit has no ticket")},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, sp, snap := candidate(t)
			remote := f.remote()
			f.mu.Lock()
			c.setup(t, f)
			f.mu.Unlock()
			err := sp.store.Push(t.Context(), remote, []RefUpdate{{branch, snap.Commit, ""}})
			failure := wantKind(t, err, c.kind)
			if strings.Contains(failure.Error(), remote.Token) {
				t.Errorf("the token is in %v", failure)
			}
			if failure.Ref != branch {
				t.Errorf("the ref is %q", failure.Ref)
			}
		})
	}
}

func TestAnUpdateSomebodyElseWonIsRejectedWhole(t *testing.T) {
	t.Parallel()
	f, sp, snap := candidate(t)
	s := sp.store
	if err := s.Push(t.Context(), f.remote(), []RefUpdate{{branch, snap.Commit, ""}}); err != nil {
		t.Fatal(err)
	}
	put(t, sp.agent.Dir(), "pkg/sum.go", "another\n")
	other := sp.snapshot(t, "").Commit
	err := s.Push(t.Context(), f.remote(), []RefUpdate{{"refs/proctor/7/new", snap.Commit, ""}, {branch, other, s.Base()}})
	if failure := wantKind(t, err, Rejected); failure.Ref != branch {
		t.Errorf("the refused ref is %q", failure.Ref)
	}
	if f.ref(t, "refs/proctor/7/new") != "" {
		t.Error("half of the update was written")
	}
	if err := s.Push(t.Context(), f.remote(), []RefUpdate{{branch, snap.Commit, ""}}); err != nil {
		t.Errorf("repeating a push whose answer was lost: %v", err)
	}
}

func TestACancelledPushEndsAtOnceWithItsChildren(t *testing.T) {
	t.Parallel()
	f, sp, snap := candidate(t)
	ctx, cancel := context.WithCancel(t.Context())
	held := make(chan struct{})
	f.mu.Lock()
	f.before = func(_ http.ResponseWriter, r *http.Request) bool {
		cancel()
		<-r.Context().Done() // the client hangs up
		close(held)
		return true
	}
	f.mu.Unlock()
	err := sp.store.Push(ctx, f.remote(), []RefUpdate{{branch, snap.Commit, ""}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	select {
	case <-held:
	case <-time.After(30 * time.Second):
		t.Error("the process that talks to the forge is still there")
	}
}

// A forge that takes the connection and says nothing would hold a run until its clock ends it.
func TestAForgeThatFallsSilentIsUnreachable(t *testing.T) {
	t.Parallel()
	f, sp, snap := candidate(t)
	f.mu.Lock()
	f.before = func(_ http.ResponseWriter, r *http.Request) bool {
		<-r.Context().Done()
		return true
	}
	f.mu.Unlock()
	r := f.remote()
	r.Silence = time.Second
	for name, ask := range map[string]func() error{
		"push":  func() error { return sp.store.Push(t.Context(), r, []RefUpdate{{branch, snap.Commit, ""}}) },
		"fetch": func() error { return sp.store.Fetch(t.Context(), r, "refs/heads/main") },
		"list":  func() error { _, err := sp.store.LsRemote(t.Context(), r); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantKind(t, ask(), Unreachable)
		})
	}
}

func TestLsRemoteAndFetchSeeTheForge(t *testing.T) {
	t.Parallel()
	f, sp, snap := candidate(t)
	s := sp.store
	if err := s.Push(t.Context(), f.remote(), []RefUpdate{{"refs/proctor/7/work", snap.Commit, ""}}); err != nil {
		t.Fatal(err)
	}
	refs, err := s.LsRemote(t.Context(), f.remote(), "refs/heads/*", "refs/proctor/7/*")
	want := map[string]ID{"refs/heads/main": s.Base(), "refs/proctor/7/work": snap.Commit}
	if diff := cmp.Diff(want, refs); diff != "" || err != nil {
		t.Errorf("refs (-want +got):\n%s%v", diff, err)
	}
	err = s.Fetch(t.Context(), f.remote(), "refs/heads/nowhere")
	if wantKind(t, err, NoRef); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing ref is no fs.ErrNotExist: %v", err)
	}
	for _, spec := range []string{"main", "--upload-pack=x", "refs/heads/main:HEAD", "+refs/heads/main", "refs/heads/*:refs/x/*"} {
		if err := s.Fetch(t.Context(), f.remote(), spec); err == nil {
			t.Errorf("refspec %q was taken", spec)
		}
	}
}

func TestRedactionLeavesNoFormOfASecret(t *testing.T) {
	t.Parallel()
	secret := "se" + "cret/+value="
	text := fmt.Sprintf("a %s b %s c %s d https://user:pw@host/x \x1b[31m", secret,
		base64.StdEncoding.EncodeToString([]byte(secret)), "se"+"cret%2F%2Bvalue%3D")
	got := redact(text, []string{secret})
	for _, leak := range []string{"cret", "pw@", "\x1b"} {
		if strings.Contains(got, leak) {
			t.Errorf("%q is left in %q", leak, got)
		}
	}
	// Half a secret at the cut of a tail goes with its line.
	tail := &tail{limit: 20}
	_, _ = tail.Write([]byte("xxxxxxxxxx" + secret + "\nwhole line\n"))
	if s := tail.String(); s != "whole line\n" {
		t.Errorf("tail %q", s)
	}
}
