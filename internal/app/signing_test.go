package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
	"github.com/proctor-ci/proctor/internal/forge/github"
	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/publish"
)

// verified asserts by git itself that the forge's key signed a commit.
func (w *world) verified(commit string) {
	w.t.Helper()
	signers := filepath.Join(w.t.TempDir(), "signers")
	if err := os.WriteFile(signers, []byte(w.hub.AllowedSigners()), 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.git("-c", "gpg.format=ssh", "-c", "gpg.ssh.allowedSignersFile="+signers, "verify-commit", commit)
}

// signed holds a published run to what a signed one promises, and gives the branch's commit.
func (w *world) signed(j job, commits int) string {
	w.t.Helper()
	at, g := w.hub.Branch(w.branch()), j.rec.Signing
	if g == nil || !g.Signed || g.Pushed == nil || g.Commits != commits || g.Pushed.ID != at || j.rec.Published.Commit != at || at == j.rec.Head.ID {
		w.t.Fatalf("the branch is at %s, proved was %s, and of signing it is said %+v", at, j.rec.Head.ID, g)
	}
	id, proved := at, j.rec.Head.ID
	for range commits { // INV-15: one for one, down to what was there before
		w.verified(id)
		if a, b := w.git("log", "-1", "--format=%T%n%B", id), w.git("log", "-1", "--format=%T%n%B", proved); a != b {
			w.t.Errorf("INV-15 tree and message of %s are %q, proved was %q", id, a, b)
		}
		a, b := strings.Fields(w.git("log", "-1", "--format=%P", id)), strings.Fields(w.git("log", "-1", "--format=%P", proved))
		if len(a) != len(b) || len(a) == 0 {
			w.t.Fatalf("INV-15 the parents of %s are %q, of the proved one %q", id, a, b)
		}
		id, proved = a[0], b[0]
	}
	if id != proved {
		w.t.Errorf("INV-15 below what was signed is %s, and below what was proved %s", id, proved)
	}
	pull := w.hub.Pulls()[0]
	if pull.HeadSHA != at || evidence.PullRequestHead(pull.Body) != at || !strings.Contains(pull.Body, j.rec.Head.ID) || !strings.Contains(pull.Body, "signed by the forge") {
		w.t.Errorf("the draft is at %s and says\n%s", pull.HeadSHA, pull.Body)
	}
	if got, none := w.hub.Checks(at), w.hub.Checks(j.rec.Head.ID); len(got) != 1 || got[0].State != "success" || len(none) != 0 {
		w.t.Errorf("the signed commit's checks are %+v, the proved one's %+v", got, none)
	}
	if !strings.Contains(w.statuses()[0], "signed by the forge") {
		w.t.Errorf("the status does not say it: %s", w.statuses()[0])
	}
	return at
}

// INV-15, INV-20: what the forge signs is what was proved, tick for tick, and what stands on the branch under other ids is ours all the same: it is
// verified, built upon with what people put on top, and not taken for a person's.
func TestTicksAreSignedAndARoundBuildsUponThem(t *testing.T) {
	plan := []tick{{spend(1000, 100), reply(halfRight)}, {spend(1000, 100), reply(allRight)}, {spend(1000, 100), write("app/more.txt", "more\n")}}
	w := open(t, setting{plan: plan, byLabel: true, signs: true, config: map[string]string{"gates": visibleGates}})
	first := w.command("/proctor run").ended("done", 0, "proctor:review")
	tip := w.signed(first, len(first.rec.Ticks))
	d := w.desk()
	if c := d.verify(first.out["pull-request"]).want(t, reproduced); c.Head != tip || !slices.Contains(checked(c), "signature") {
		t.Errorf("verified was %s by %q", c.Head, checked(c))
	}
	d.git(d.dir, "fetch", "-q", "file://"+w.hub.GitDir(), tip, first.rec.Head.ID)
	for _, id := range []string{tip, first.rec.Head.ID} {
		if c := d.verify(id).want(t, reproduced); c.Head != id {
			t.Errorf("verified was %s, asked for %s", c.Head, id)
		}
	}
	if c := d.verify(first.reports).want(t, reproduced); c.Head != tip || !slices.Contains(checked(c), "tree of the proved commit") {
		t.Errorf("of the record was verified %s by %q", c.Head, checked(c))
	}
	pull := w.hub.Pulls()[0].Number
	_, err := w.hub.ReviewPull(pull, asker, "commented", "", forgetest.ReviewLine{Path: "app/answer.txt", Line: 1, Body: "There should be more."})
	w.must(err)
	w.skipped()
	theirs := onTop(t, w.hub.GitDir(), w.branch(), "by-hand.txt", "theirs\n")
	round, _ := w.commandOn(pull, asker, "/proctor fix")
	round.ended("done", 0, "proctor:review")
	at := w.signed(round, len(strings.Fields(w.git("rev-list", theirs+".."+w.branch()))))
	w.fixed(round, theirs)
	if log := w.git("log", "--format=%H", at); !strings.Contains(log, tip) || w.file("by-hand.txt") != "theirs\n" {
		t.Errorf("INV-20 the branch has lost what was on it:\n%s", log)
	}
	if said := w.hub.Threads(pull)[0].Comments; len(said) != 2 || !strings.Contains(said[1].Body, "which is now this branch") || !strings.Contains(said[1].Body, "proved "+at) {
		t.Errorf("the thread was answered %+v", said)
	}
	w.label().ended("refused", 7, "proctor:review").says("over a person's work", "commit "+theirs+" by Maya")
	if w.hub.Branch(w.branch()) != at {
		t.Error("INV-20 the branch has moved")
	}
}

func TestARequiredSignatureEndsARunThatCannotHaveIt(t *testing.T) {
	s := setting{plan: []tick{{spend(1000, 100), reply(allRight)}}, config: map[string]string{"gates": visibleGates, "publish": "{signing: required}"}}
	w := open(t, s)
	j := w.label().ended("usage_error", 1, "proctor:failed").says(".github/proctor.yml:", "publish.signing", `says "unsigned"`, "set it to auto")
	if n := len(w.model.Calls()); n != 0 || len(j.rec.Ticks) != 0 {
		t.Errorf("%d model calls were made before it was refused", n)
	}
	w.hub.Set(forgetest.CommitSigning(true))
	off := func() { w.hub.Set(forgetest.CommitSigning(false)) }
	w.mid.Store(&off)
	j = w.label().ended("publish_failed", 6, "proctor:failed").says("sign the branch", "publish.signing to auto")
	if kept := strings.TrimSpace(w.git("rev-parse", j.rec.Kept+"^")); kept != j.rec.Head.ID {
		t.Errorf("proved was %s, and kept is %s", j.rec.Head.ID, kept)
	}
	if w.unpublished(); j.rec.Signing == nil || j.rec.Signing.Signed || !strings.Contains(j.rec.Signing.Reason, "did not sign") {
		t.Errorf("of signing it is said %+v", j.rec.Signing)
	}
	w.hub.Set(forgetest.CommitSigning(true))
	again := w.label().ended("done", 0, "proctor:review")
	w.signed(again, 1)
	if n := len(w.model.Calls()); n != 1 || again.rec.Head.ID != j.rec.Head.ID {
		t.Errorf("%d model calls: signing later must cost nothing", n)
	}
	w.nothingTwice()
}

// lying is a forge that makes other commits than it is asked for, or says so.
type lying struct {
	*github.Client
	asked func(n int, c *forge.NewCommit)
	made  func(n int, c *forge.MadeCommit) error
	n     int
}

func (l *lying) MakeCommit(ctx context.Context, c forge.NewCommit) (forge.MadeCommit, error) {
	l.n++
	want := c
	if l.asked != nil {
		l.asked(l.n, &c)
	}
	out, err := l.Client.MakeCommit(ctx, c)
	if err != nil {
		return out, err
	}
	out.Tree, out.Parents = want.Tree, want.Parents
	if l.made != nil {
		err = l.made(l.n, &out)
	}
	return out, err
}

// INV-15: nothing that is not what was proved is pushed, whatever the forge says it made; and all commits are signed, or none.
func TestAForgeThatMakesAnotherCommitIsNotFollowed(t *testing.T) {
	t.Parallel()
	g, _ := hubFor(t, "app/answer.txt", "wrong\n")
	client, err := github.New(github.Config{BaseURL: g.APIURL(), ServerURL: g.URL(), Owner: g.Owner(), Repo: g.Repo(),
		Token: g.NewToken(forgetest.Token{Job: true, Permissions: map[string]string{"contents": "write", "pull_requests": "write"}})})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	s, _ := sessionOn(t, client, g.GitDir(), "app/answer.txt", "right\n")
	main, other := git.ID(g.Branch(base)), s.store.Base()
	trees := map[git.ID]git.ID{}
	for _, id := range []git.ID{main, other} {
		if trees[id], err = s.store.Tree(ctx, id); err != nil {
			t.Fatal(err)
		}
	}
	join := func(tree, on git.ID) git.ID {
		id, err := s.store.Join(tree, on, main, git.Meta{Run: "r1", Issue: "octo/shop#1"})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	first := join(trees[main], main)
	head := join(trees[other], first)
	s.remote.Branch = "of-none"
	if err := s.store.Push(ctx, s.remote, []git.RefUpdate{{Name: "refs/proctor/1/state", New: head}}); err != nil {
		t.Fatal(err)
	}
	second := func(do func(*forge.NewCommit)) func(int, *forge.NewCommit) {
		return func(n int, c *forge.NewCommit) {
			if n == 2 {
				do(c)
			}
		}
	}
	answer := func(do func(*forge.MadeCommit)) func(int, *forge.MadeCommit) error {
		return func(n int, c *forge.MadeCommit) error {
			if n == 2 {
				do(c)
			}
			return nil
		}
	}
	for name, c := range map[string]struct {
		lying
		why string // "" for signed
	}{
		"control: as asked":                {lying{}, ""},
		"of another tree":                  {lying{made: answer(func(c *forge.MadeCommit) { c.Tree = string(trees[main]) })}, "another tree"},
		"of another tree, told otherwise":  {lying{asked: second(func(c *forge.NewCommit) { c.Tree = string(trees[main]) })}, "another tree"},
		"on other parents":                 {lying{made: answer(func(c *forge.MadeCommit) { c.Parents = c.Parents[:1] })}, "other parents"},
		"on other parents, told otherwise": {lying{asked: second(func(c *forge.NewCommit) { c.Parents = []string{c.Parents[1], c.Parents[0]} })}, "other parents"},
		"on one parent less":               {lying{asked: second(func(c *forge.NewCommit) { c.Parents = c.Parents[:1] })}, "other parents"},
		"with another message":             {lying{asked: second(func(c *forge.NewCommit) { c.Message = "Work\n\nProctor-Run: r2\n" })}, "another message"},
		"under another id":                 {lying{made: answer(func(c *forge.MadeCommit) { c.ID = string(first) })}, "has the id"},
		"with another signature":           {lying{made: answer(func(c *forge.MadeCommit) { c.Signature = strings.ToLower(c.Signature) })}, "has the id"},
		"and signs the first alone":        {lying{made: answer(func(c *forge.MadeCommit) { c.Verified, c.Reason = false, "unsigned" })}, "did not sign"},
		"and is gone after the first": {lying{made: func(n int, _ *forge.MadeCommit) error {
			if n < 2 {
				return nil
			}
			return &forge.Error{Op: "have a commit signed", Kind: forge.ErrForbidden, Status: 403, Said: "no", Next: "ask"}
		}}, "not allowed"},
	} {
		for _, mode := range []string{"auto", "required"} {
			t.Run(name+" "+mode, func(t *testing.T) {
				branch := "proctor/" + strings.ReplaceAll(strings.ReplaceAll(t.Name()[strings.Index(t.Name(), "/")+1:], ":", ""), ",", "")
				s := &session{store: s.store, remote: s.remote}
				liar := c.lying
				liar.Client = client
				rec := evidence.Record{Schema: evidence.SchemaVersion, Run: "r1", Started: time.Now(), Resumed: []string{"r0"}, Base: evidence.Commit{ID: string(main), Tree: string(trees[main])},
					Head: &evidence.Commit{ID: string(head), Tree: string(trees[other])}, Kept: "refs/proctor/1/state"}
				rec.Finish(evidence.Done, "every gate passed", "")
				rec.Ended = rec.Started
				rec.Settle(0)
				told := 0
				p := publish.Publisher{Forge: &liar, Push: s, Commits: &signer{store: s.store, as: map[git.ID]git.ID{}}, Wait: func(context.Context, time.Duration) error { return nil }}
				out, err := p.Publish(ctx, publish.Request{Record: rec, Target: publish.Target{Branch: branch}, Base: base, Signing: mode,
					Pushing: func(context.Context, evidence.Signing) error { told++; return nil }})
				at := g.Branch(branch)
				if c.why == "" {
					if err != nil || out.Signing == nil || !out.Signing.Signed || out.Signing.Commits != 2 || at != out.Signing.Pushed.ID || at == string(head) || told != 1 {
						t.Fatalf("the control is not signed: %+v, %v, branch %q", out.Signing, err, at)
					}
					return
				}
				if out.Signing == nil || out.Signing.Signed || !strings.Contains(out.Signing.Reason, c.why) || told != 0 {
					t.Errorf("INV-15 of signing it is said %+v, want %q", out.Signing, c.why)
				}
				var failed *publish.Failure
				switch {
				case mode == "auto" && (err != nil || at != string(head) || !strings.Contains(g.Pulls()[len(g.Pulls())-1].Body, "not signed: ")):
					t.Errorf("INV-15 the branch is at %q, proved was %s: %v", at, head, err)
				case mode == "required" && (!errors.As(err, &failed) || failed.Step != publish.StepSign || failed.Next == "" || at != ""):
					t.Errorf("INV-15 a signature was required, and the branch is at %q: %v", at, err)
				}
			})
		}
	}
}
