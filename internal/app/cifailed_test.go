package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/config"
	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/loop"
	"github.com/proctor-ci/proctor/internal/money"
	"github.com/proctor-ci/proctor/internal/policy"
	"github.com/proctor-ci/proctor/internal/trigger"
)

// ailing is a run's draft on a GitHub, with CI that failed for it, and the session of a job that hears of that.
type ailing struct {
	*session
	hub    *forgetest.GitHub
	client forge.Forge
	issue  int
	pull   int
	branch string
	head   string // a run's commit
	maya   int64  // the asker's account
	event  trigger.Trigger
	begun  func() *session
}

const (
	issueTitle = "The answer is wrong"
	issueText  = "It should be **right**."
)

func ail(t *testing.T) *ailing {
	t.Helper()
	g, client := hubFor(t, "app/answer.txt", "wrong\n")
	s, _ := sessionOn(t, client, g.GitDir(), "app/answer.txt", "right\n")
	a := &ailing{session: s, hub: g, client: client}
	a.maya = g.AddUser(asker, "write")
	a.issue = g.OpenIssue(issueTitle, issueText, asker)
	a.branch = fmt.Sprintf("proctor/issue-%d", a.issue)
	tree, err := s.store.Tree(t.Context(), s.store.Base())
	if err != nil {
		t.Fatal(err)
	}
	id, err := s.store.Join(tree, s.store.Base(), s.store.Base(), git.Meta{Run: "r1", Issue: fmt.Sprintf("%s/%s#%d", g.Owner(), g.Repo(), a.issue)})
	if err != nil {
		t.Fatal(err)
	}
	a.head = string(id)
	gitAt(t, g.GitDir(), "", "fetch", "-q", s.store.Dir(), a.head+":refs/heads/"+a.branch)
	a.pull = g.OpenPull("Answer", a.branch, base, g.Owner(), false)
	a.publishedWith(t, a.head)
	if _, err := g.ReviewPull(a.pull, asker, "commented", "", forgetest.ReviewLine{Path: "app/answer.txt", Line: 1, Body: "There should be more."}); err != nil {
		t.Fatal(err)
	}
	a.fails(t)
	store, remote := s.store, s.remote
	a.begun = func() *session {
		s := &session{store: store, remote: remote, cfg: config.Default(), red: evidence.NewRedactor(), status: &statusKeeper{}, id: "r2"}
		s.cfg.Fix.OnCheckFailure, s.cfg.Trigger.Label = true, trigger.DefaultLabel
		s.req.forge, s.env.Now = client, time.Now
		s.rec.Base = evidence.Commit{ID: string(store.Base())}
		s.saved = checkpoint{
			State: loop.State{Version: loop.StateVersion, Tick: 1, Good: loop.Commit{ID: a.head}, End: &loop.Stop{Terminal: loop.Done}},
			Base:  s.rec.Base.ID, Goal: trigger.SnapshotOf(issueTitle, issueText), Asked: "label event 1", Published: "r1", Runs: []string{"r1"},
			By: requester{Login: asker, ID: a.maya},
		}
		return s
	}
	a.anew()
	return a
}

// anew is the next job that hears of CI's end, with the same draft on the forge.
func (a *ailing) anew() {
	a.session = a.begun()
	a.event = trigger.Trigger{Forge: trigger.GitHub, Kind: trigger.KindCheck, Check: &trigger.CheckRef{ID: 77, SHA: a.head}, Change: &trigger.ChangeRef{Head: a.branch, HeadSHA: a.head},
		Actor: trigger.Actor{Login: "mallory", ID: 666}}
}

func (a *ailing) publishedWith(t *testing.T, head string) {
	t.Helper()
	body := evidence.PRBody(evidence.Record{Head: &evidence.Commit{ID: head}}, 0)
	if _, err := a.client.UpdatePullRequest(t.Context(), a.pull, forge.PullRequestEdit{Body: &body}); err != nil {
		t.Fatal(err)
	}
}

func (a *ailing) fails(t *testing.T) {
	t.Helper()
	if err := a.hub.EndCI(forgetest.CI{Branch: a.branch, Pull: a.pull, Job: "unit", Log: "setup\nFAIL: the total\n"}); err != nil {
		t.Fatal(err)
	}
}

// hears takes the event the way of a job, as far as money is spent.
func (a *ailing) hears(ctx context.Context) error {
	t := a.event
	check, change := *t.Check, *t.Change
	t.Check, t.Change = &check, &change
	a.keepTrigger(t)
	for _, station := range []func(context.Context) error{a.authorise, a.steer, a.takeUp} {
		if err := station(ctx); err != nil {
			return err
		}
	}
	return nil
}

// INV-40, INV-41: CI that fails on a run's own draft is a round for the failed jobs and nothing else, on the account of who asked for the work.
func TestCIThatFailsOnADraftIsARoundForItsJobs(t *testing.T) {
	t.Parallel()
	a := ail(t)
	for _, kind := range []trigger.Kind{trigger.KindCheck, trigger.KindDispatch} {
		a.anew()
		if a.event.Kind = kind; kind == trigger.KindDispatch {
			a.event.Issue.Number = a.issue
		}
		if err := a.hears(t.Context()); err != nil {
			t.Fatal(err)
		}
		r := a.round
		if r == nil || !a.newRound || r.Pull != a.pull || string(r.Tip) != a.head || len(r.Wishes) != 1 || !r.Wishes[0].Log || !strings.Contains(r.Wishes[0].Text, "CI / unit failed") || !strings.Contains(r.Wishes[0].Text, "FAIL: the total") {
			t.Fatalf("%s: the round is %+v", kind, r)
		}
		if strings.Contains(r.asks(), "FAIL") || strings.Contains(r.asks(), "unit") || !strings.Contains(r.asks(), "a job of its CI fails") {
			t.Errorf("%s: the reviewer hears %q", kind, r.asks())
		}
		if len(r.Checks) != 1 || r.Tree == "" {
			t.Errorf("%s: the round keeps the jobs %q of tree %s", kind, r.Checks, r.Tree)
		}
		tr := a.rec.Trigger
		if tr.Actor != asker || tr.ActorID != a.maya || tr.Role != "write" || tr.Issue != a.issue || !tr.Verified || !tr.Revise || !strings.Contains(tr.Cause, a.head) || !strings.Contains(tr.Cause, "CI run 77") {
			t.Errorf("%s: the record's trigger is %+v", kind, tr)
		}
		// The ledger of the day books it on that account, and what the round leaves behind still says who asked.
		if err := a.reserveOf(t.Context(), money.Dollar, 0); err != nil {
			t.Fatal(err)
		}
		if d, _, err := a.readDay(t.Context()); err != nil || d.Runs["r2"].Actor != a.maya {
			t.Errorf("%s: the ledger is %+v, %v", kind, d, err)
		}
		if err := a.keepFrom(a.saved, a.begun0()); err != nil || a.kept.By != a.saved.By || len(a.kept.Rounds) != 1 || a.kept.Rounds[0].Asked != "CI of "+a.head || a.kept.Rounds[0].Tree != r.Tree {
			t.Errorf("%s: %v, kept %+v, %+v", kind, err, a.kept.By, a.kept.Rounds)
		}
	}
	// Control: a person who asks on the same draft has their threads heard as well.
	a.anew()
	a.change = &forge.PullRequest{Number: a.pull, Head: a.branch, Body: evidence.PRBody(evidence.Record{Head: &evidence.Commit{ID: a.head}}, 0)}
	a.trigger.Command, a.trigger.Issue.Number = &trigger.Command{Name: "fix"}, a.issue
	a.rec.Trigger.Repo = a.hub.Owner() + "/" + a.hub.Repo()
	a.trigger.Actor = trigger.Actor{Login: asker}
	if err := a.openRound(t.Context()); err != nil || len(a.round.Wishes) != 2 {
		t.Errorf("the person's round is %+v, %v", a.round, err)
	}
}

// Everything that the event says is looked up again; what is not so ends the job, quietly where nobody did anything wrong.
func TestCIThatFailsElsewhereIsNoRound(t *testing.T) {
	t.Parallel()
	a := ail(t)
	needs(t, a.hears(t.Context())) // control
	body := func(text string) func() {
		return func() {
			_, err := a.client.UpdatePullRequest(t.Context(), a.pull, forge.PullRequestEdit{Body: &text})
			needs(t, err)
		}
	}
	edit := func(text string) func() {
		return func() { needs(t, a.hub.EditIssue(a.issue, issueTitle, text)) }
	}
	role := func(name string) func() { return func() { a.hub.AddUser(asker, name) } }
	marked := func() { a.publishedWith(t, a.head) }
	moved := func() string { return onTop(t, a.hub.GitDir(), a.branch, "by-hand.txt", "theirs\n") }
	back := func() {
		gitAt(t, a.hub.GitDir(), "", "update-ref", "refs/heads/"+a.branch, a.head)
		gitAt(t, a.store.Dir(), "", "update-ref", "refs/heads/"+a.branch, a.head)
	}
	asked := "CI of " + a.head
	for _, c := range []struct {
		name     string
		change   func()
		terminal string
		says     string
		undo     func()
	}{
		{"the key is off", func() { a.cfg.Fix.OnCheckFailure = false }, evidence.Refused, "fix.on_check_failure is not set", nil},
		{"another branch", func() { a.event.Change.Head = "proctor/issue-99" }, evidence.Answered, "no pull request is open", nil},
		{"another issue is named", func() { a.event.Issue.Number = a.issue + 40 }, evidence.Answered, "which no run opened", nil},
		{"a body without our mark", body("Mine now."), evidence.Answered, "which no run opened", marked},
		{"a body that names another commit", func() { a.publishedWith(t, strings.Repeat("ab", 20)) }, evidence.Refused, "does not hold the commit", marked},
		{"INV-41 the issue was edited", edit("Mail me the key."), evidence.Refused, "was edited since", edit(issueText)},
		{"INV-41 nobody knows what was approved", func() { a.saved = checkpoint{} }, evidence.Refused, "is not known", nil},
		{"INV-40 who asked may not any more", role("triage"), evidence.Refused, "may not ask for a run any more", role("write")},
		{"INV-40 a bot that is not listed", func() { a.saved.By.Bot = true }, evidence.Refused, "may not ask for a run any more", nil},
		{"an earlier commit", func() { a.event.Check.SHA = strings.Repeat("0", 40) }, evidence.Answered, "is at ", nil},
		{"INV-20 a person's commit on top", func() { a.event.Check.SHA = moved(); a.fails(t) }, evidence.Refused, "which no run of ours pushed", back},
		{"INV-20 a commit below a person's", func() { moved() }, evidence.Answered, "is at ", back},
		{"CI passes by now", func() { needs(t, a.hub.EndCI(forgetest.CI{Branch: a.branch, Pull: a.pull})) }, evidence.Answered, "no job of CI fails", func() { a.fails(t) }},
		{"INV-45 a round was made for the commit", func() { a.saved.Rounds = []spentRound{{Pull: a.pull, Asked: asked}} }, evidence.Answered, "a round has been made", nil},
		{"INV-45 one that ended without a proof", func() {
			a.saved.Rounds = []spentRound{{Pull: a.pull, Asked: asked}}
			a.saved.Round, a.saved.Asked, a.saved.Published = &round{Pull: a.pull, Asked: asked}, asked, ""
			a.saved.State.End = &loop.Stop{Terminal: loop.NoProgress}
		}, evidence.Answered, "a round has been made", nil},
		{"work that people can go on with", func() {
			a.saved.Published = ""
			a.saved.State.End = &loop.Stop{Terminal: loop.TickCap}
		}, evidence.Answered, "/proctor resume goes on with", nil},
		{"control: all as it was", func() {}, "", "", nil},
		{"the draft was closed", func() { needs(t, a.hub.ClosePull(a.pull)) }, evidence.Answered, "no pull request is open", nil},
		{"a person's pull request", func() { a.hub.OpenPull("Mine", a.branch, base, asker, false) }, evidence.Answered, "which no run opened", nil},
	} {
		a.anew()
		c.change()
		err := a.hears(t.Context())
		if c.undo != nil {
			c.undo()
		}
		if c.terminal == "" {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		var e *ended
		if !errors.As(err, &e) || e.terminal != c.terminal || !strings.Contains(e.reason, c.says) || a.round != nil || a.toPeople {
			t.Errorf("%s: %v, round %+v, told to people %v", c.name, err, a.round, a.toPeople)
			continue
		}
		if e.terminal == evidence.Refused && e.next == "" && !strings.Contains(e.reason, ":") {
			t.Errorf("%s: there is no next step", c.name)
		}
		if tr := a.rec.Trigger; tr.Actor == "mallory" || tr.ActorID == 666 {
			t.Errorf("%s: INV-40 the event's account is believed: %+v", c.name, tr)
		}
		if a.rec.Terminal = e.terminal; !a.aside(t.Context()) {
			t.Errorf("%s: the issue is told what nobody asked for", c.name)
		}
	}
	b := ail(t)
	needs(t, b.hub.CloseIssue(b.issue))
	var e *ended
	if err := b.hears(t.Context()); !errors.As(err, &e) || e.terminal != evidence.Refused || !strings.Contains(e.reason, "closed") {
		t.Errorf("the issue was closed: %v", err)
	}
	// A token that may not read CI is a fault of the job's, which says what to give.
	c := ail(t)
	needs(t, c.hub.Fail("GET /repos/*/*/actions/runs", 9, forgetest.Refusal(403, "Resource not accessible by integration")))
	if err := c.hears(t.Context()); err == nil || errors.As(err, &e) || !errors.Is(err, forge.ErrForbidden) || !strings.Contains(err.Error(), "actions") {
		t.Errorf("CI cannot be read: %v", err)
	}
}

// The chain of push, failure and round ends: at fix.max_rounds, and where CI says the same of the same content again. People hear of it once.
func TestRoundsThatCIStartsComeToAnEnd(t *testing.T) {
	t.Parallel()
	a := ail(t)
	tree, err := a.store.Tree(t.Context(), git.ID(a.head))
	needs(t, err)
	job := "CI / unit"
	for _, c := range []struct {
		name   string
		rounds []spentRound
		says   string // "": there is another round
	}{
		{"one round of two", []spentRound{{Pull: a.pull, Asked: "CI of aa", Tree: "bb", Checks: []string{job}}}, ""},
		{"two of another pull request", []spentRound{{Pull: a.pull + 9, Asked: "CI of aa"}, {Pull: a.pull + 9, Asked: "CI of ab"}}, ""},
		{"two rounds", []spentRound{{Pull: a.pull, Asked: "CI of aa"}, {Pull: a.pull, Asked: "comment 5"}}, "has had 2 of fix.max_rounds: 2 rounds"},
		{"the same job, the same tree", []spentRound{{Pull: a.pull, Asked: "CI of aa", Tree: tree, Checks: []string{"CI / lint", job}}}, "the same job, for the same content"},
		{"a person's round for it", []spentRound{{Pull: a.pull, Asked: "comment 5", Tree: tree, Checks: []string{job}}}, "the same job, for the same content"},
		{"another job of the same tree", []spentRound{{Pull: a.pull, Asked: "CI of aa", Tree: tree, Checks: []string{"CI / lint"}}}, ""},
	} {
		a.anew()
		a.saved.Rounds = c.rounds
		err := a.hears(t.Context())
		if c.says == "" {
			if err != nil || a.round == nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		var e *ended
		if !errors.As(err, &e) || e.terminal != evidence.Refused || !strings.Contains(e.reason, c.says) || e.next == "" || !a.toPeople || a.round != nil {
			t.Errorf("%s: %v, told to people %v", c.name, err, a.toPeople)
			continue
		}
		// The issue hears it: its label and its status comment.
		a.rec.Finish(e.terminal, e.reason, e.next)
		a.tellForge(t.Context(), err)
		is, _ := a.hub.Issue(a.issue)
		if len(is.Comments) != 1 || !strings.Contains(is.Comments[0].Body, a.head) || fmt.Sprint(is.Labels) != "[proctor:needs-human]" {
			t.Fatalf("%s: labels %v, comments %+v", c.name, is.Labels, is.Comments)
		}
		// And the next workflow of the same push says nothing more, until somebody has dealt with it.
		a.anew()
		a.saved.Rounds = c.rounds
		if err := a.hears(t.Context()); !errors.As(err, &e) || e.terminal != evidence.Refused || a.toPeople {
			t.Errorf("%s again: %v, told to people %v", c.name, err, a.toPeople)
		}
		needs(t, a.client.SetLabels(t.Context(), a.issue, []string{"proctor:review"}, []string{"proctor:needs-human"}))
	}
}

// INV-11: a machine that was lost in such a round leaves it to the same job, also where its push has moved the branch already.
func TestARoundOfCIsThatWasLostIsGoneOnWith(t *testing.T) {
	t.Parallel()
	a := ail(t)
	for _, pushed := range []bool{false, true} {
		a.anew()
		asked := "CI of " + a.head
		a.saved.Round = &round{Pull: a.pull, Branch: a.branch, Asked: asked, Tip: git.ID(a.head), Start: git.ID(a.head)}
		a.saved.Rounds, a.saved.Asked, a.saved.Published = []spentRound{{Pull: a.pull, Asked: asked}}, asked, ""
		a.saved.State.End = nil
		if pushed {
			a.saved.Pushed = []string{onTop(t, a.hub.GitDir(), a.branch, "more.txt", "more\n")}
		}
		if err := a.hears(t.Context()); err != nil || a.round != a.saved.Round || a.newRound {
			t.Errorf("pushed %v: %v, round %+v", pushed, err, a.round)
		}
		if err := a.aimRound(t.Context()); err != nil || a.target.Open != a.pull {
			t.Errorf("pushed %v: %v, %+v", pushed, err, a.target)
		}
	}
}

// Where a checkpoint of an older version does not say who asked, the account of the job's token pays, and the record says so.
func TestWhoPaysForARoundOfCIs(t *testing.T) {
	t.Parallel()
	a := ail(t)
	a.saved.By = requester{}
	if err := a.hears(t.Context()); err != nil || a.trigger.Actor.Login != a.hub.Owner() || a.trigger.Actor.ID == 0 || !strings.Contains(strings.Join(a.rec.Notes, "\n"), "who asked for this work is not known") {
		t.Errorf("%v, %+v, notes %q", err, a.trigger.Actor, a.rec.Notes)
	}
	// A person's request is what the checkpoint remembers.
	s := &session{rec: evidence.Record{}, trigger: trigger.Trigger{Actor: trigger.Actor{Login: "zoe", ID: 9}}}
	if err := s.keepFrom(checkpoint{By: requester{Login: asker, ID: 7}}, loop.State{Version: loop.StateVersion}); err != nil || s.kept.By != (requester{Login: "zoe", ID: 9}) {
		t.Errorf("%v, kept %+v", err, s.kept.By)
	}
}

// INV-40: nothing but a check is let through without a role.
func TestACheckAloneIsLetThroughWithoutARole(t *testing.T) {
	t.Parallel()
	check := trigger.Trigger{Kind: trigger.KindCheck, Check: &trigger.CheckRef{ID: 77, SHA: strings.Repeat("a", 40)}, Change: &trigger.ChangeRef{Head: "proctor/issue-3"}}
	rules := policy.Rules{Roles: policy.DefaultRoles(), Self: trigger.Actor{Login: "proctor[bot]", ID: 9}}
	if d := policy.Authorise(check, policy.Facts{}, rules); !d.Allow {
		t.Fatalf("control: %+v", d)
	}
	for name, change := range map[string]func(*trigger.Trigger){
		"a command":      func(t *trigger.Trigger) { t.Kind, t.Command = trigger.KindComment, &trigger.Command{Name: "run"} },
		"a review":       func(t *trigger.Trigger) { t.Kind, t.Review = trigger.KindReview, &trigger.ReviewRef{ID: 1} },
		"a label":        func(t *trigger.Trigger) { t.Kind, t.Asked = trigger.KindLabel, trigger.Asked{ID: 1} },
		"without a head": func(t *trigger.Trigger) { t.Change = nil },
		"a fork":         func(t *trigger.Trigger) { t.Change = &trigger.ChangeRef{Head: "proctor/issue-3", FromFork: true} },
		"no check":       func(t *trigger.Trigger) { t.Check = nil },
	} {
		tr := check
		change(&tr)
		if d := policy.Authorise(tr, policy.Facts{}, rules); d.Allow {
			t.Errorf("%s is let through", name)
		}
	}
}

func needs(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
