package app

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/publish/publishtest"
)

// checkTaker is a forge that takes checks, or refuses them.
type checkTaker struct {
	*publishtest.Forge
	checks   []forge.Check
	err      error
	deadline time.Time
}

func (f *checkTaker) SetCheck(ctx context.Context, c forge.Check) error {
	f.deadline, _ = ctx.Deadline()
	f.checks = append(f.checks, c)
	return f.err
}

func TestARunsEndIsToldOnTheHeadOfItsPullRequest(t *testing.T) {
	t.Parallel()
	const ours, theirs = "aaaa", "bbbb"
	published := &evidence.Published{Branch: "proctor/issue-3", Commit: ours, Number: 7}
	on := func(tip git.ID) *round { return &round{Pull: 7, Branch: "proctor/issue-3", Tip: tip} }
	for name, c := range map[string]struct {
		terminal  string
		published *evidence.Published
		round     *round
		want      string
	}{
		"a proof":                              {evidence.Done, published, nil, "success aaaa"},
		"a round's proof":                      {evidence.Done, published, on(theirs), "success aaaa"},
		"a round that proves nothing":          {evidence.TickCap, nil, on(theirs), "failure bbbb"},
		"a round that breaks a rule":           {evidence.SafetyHalt, nil, on(theirs), "failure bbbb"},
		"a round that is stopped":              {evidence.Cancelled, nil, on(theirs), "cancelled bbbb"},
		"a round whose reviewer is away":       {evidence.JudgeUnavailable, nil, on(theirs), "action_required bbbb"},
		"a round out of money":                 {evidence.StoppedBudget, nil, on(theirs), "action_required bbbb"},
		"a proof that is not published":        {evidence.PublishFailed, nil, on(theirs), "action_required bbbb"},
		"a round that leaves a proof standing": {evidence.TickCap, nil, on(ours), ""},
		"a run without a pull request":         {evidence.TickCap, nil, nil, ""},
	} {
		f := &checkTaker{Forge: publishtest.New()}
		s := &session{id: "r1", req: request{forge: f, runURL: "https://ci.example.com/1"}, red: evidence.NewRedactor(), round: c.round}
		s.saved.Pushed = []string{ours}
		s.rec.Finish(c.terminal, strings.Repeat("because @maya said so ", 10_000), "")
		s.rec.Published = c.published
		s.tellCommit(t.Context())
		got := ""
		for _, k := range f.checks {
			got += fmt.Sprint(k.Conclusion, " ", k.Commit)
			if k.Run != "r1" || k.Branch != "proctor/issue-3" || k.URL != s.req.runURL || k.Title == "" || len([]rune(k.Title)) > forge.MaxCheckTitle || len(k.Summary) > forge.MaxCheckSummary || strings.ContainsAny(k.Title, "\n<") {
				t.Errorf("%s: %+v", name, k)
			}
			if strings.Contains(k.Summary, " @maya") || !strings.Contains(k.Summary, k.Title[:strings.Index(k.Title, ":")]) {
				t.Errorf("INV-52 %s: the summary mentions people or says nothing of the end: %.300q", name, k.Summary)
			}
		}
		if got != c.want {
			t.Errorf("%s: checks %q, want %q", name, got, c.want)
		}
	}
}

// INV-15: where a branch rule requires the check, GitHub merges what is success, neutral or skipped: only a proof may be one of them.
func TestOnlyAProofPassesARequiredCheck(t *testing.T) {
	t.Parallel()
	passes := func(r evidence.Record) bool {
		return slices.Contains([]string{"success", "neutral", "skipped"}, string(conclusion(r)))
	}
	for _, term := range evidence.Terminals() {
		r := evidence.Record{}
		if r.Finish(term.Name, "", ""); passes(r) {
			t.Errorf("%s without a pull request passes as %s", term.Name, conclusion(r))
		}
		if r.Published = (&evidence.Published{}); passes(r) != (term.Name == evidence.Done) {
			t.Errorf("%s of a pull request is %s", term.Name, conclusion(r))
		}
	}
}

// A token that may write no check is told of once, and that ends nothing.
func TestACheckThatMayNotBeWrittenIsNoted(t *testing.T) {
	t.Parallel()
	f := &checkTaker{Forge: publishtest.New(), err: publishtest.Error("write the check", forge.ErrForbidden, 403, "", "add `checks: write`")}
	s := &session{req: request{forge: f}, red: evidence.NewRedactor()}
	s.rec.Finish(evidence.Done, "", "")
	s.rec.Published = &evidence.Published{Branch: "proctor/issue-3", Commit: "aaaa", Number: 7}
	for range 2 {
		s.tellCommit(t.Context())
	}
	if n := s.rec.Notes; len(n) != 1 || !strings.Contains(n[0], "checks: write") || s.rec.Terminal != evidence.Done || s.rec.ExitCode != 0 {
		t.Errorf("%s with %d, notes %q", s.rec.Terminal, s.rec.ExitCode, n)
	}
	if left, bound := f.deadline.Sub(time.Now()), !f.deadline.IsZero(); !bound || left > checkTime {
		t.Errorf("a check may take %v of a run's last seconds", left)
	}
	s.req.forge = publishtest.New() // a forge that knows no checks
	if s.tellCommit(t.Context()); len(s.rec.Notes) != 1 {
		t.Errorf("notes %q", s.rec.Notes)
	}
}
