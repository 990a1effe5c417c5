package app

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/config"
	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/policy"
	"github.com/proctor-ci/proctor/internal/trigger"
)

// A request beyond trigger.max_open waits and starts when a pull request of ours ends, with what was approved when it was made.
func TestARequestWithoutRoomWaitsForAPullRequestToEnd(t *testing.T) {
	w := open(t, setting{plan: []tick{{spend(10, 10), reply(allRight)}}, config: map[string]string{"gates": visibleGates, "trigger": "{max_open: 1}"}})
	first := w.label().ended("done", 0, "proctor:review")
	w.issue = w.hub.OpenIssue("Another one", "It should be right too.", asker)
	w.label().ended("refused", 7, "proctor:queued").says("trigger.max_open", "starts by itself")
	edited := w.hub.OpenIssue("A third one", "Right as well.", asker)
	waits := w.issue
	w.issue = edited
	w.label().ended("refused", 7, "proctor:queued")
	w.issue = waits

	if err := w.hub.MergePull(first.rec.Published.Number); err != nil {
		t.Fatal(err)
	}
	w.next(t.Context()).ended("done", 0, "proctor:review")
	one, _ := w.hub.Issue(1)
	if slices.ContainsFunc(one.Labels, func(l string) bool { return strings.HasPrefix(l, "proctor") }) {
		t.Errorf("the first issue still carries %q", one.Labels)
	}

	// INV-41: what is edited while it waits is not what was approved.
	if err := w.hub.EditIssue(edited, "", "Something else altogether."); err != nil {
		t.Fatal(err)
	}
	pulls := w.hub.Pulls()
	if err := w.hub.MergePull(pulls[len(pulls)-1].Number); err != nil {
		t.Fatal(err)
	}
	w.issue = edited
	w.next(t.Context()).ended("refused", 7, "proctor:needs-human").says("edited")
}

// nobody is a forge that knows its own account and nothing else.
type nobody struct{ forge.Forge }

func (nobody) Self(context.Context) (forge.User, error) {
	return forge.User{Login: "proctor[bot]", ID: 99}, nil
}

// A request that no label event names, such as one by hand, cannot be started later, so it does not wait.
func TestOnlyARequestByLabelWaitsForRoom(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		event   int64
		waits   bool
		advises string
	}{
		{"by label", 5, true, "starts by itself"},
		{"by hand", 0, false, "ask again"},
	} {
		s := session{labelEvent: c.event, cfg: config.Default(), req: request{forge: nobody{}, dryRun: true}, trigger: trigger.Trigger{
			Forge: trigger.GitHub, Kind: trigger.KindDispatch, Issue: trigger.Issue{Number: 7, State: "open"}, Actor: trigger.Actor{Login: asker, ID: 7},
		}}
		err := s.decide(t.Context(), policy.Facts{Role: forge.RoleWrite, Issue: &forge.Issue{Number: 7, State: "open"}, OpenPulls: 100, Started: true})
		var end *ended
		if !errors.As(err, &end) || !strings.Contains(end.reason, "trigger.max_open") || !strings.Contains(end.next, c.advises) || s.queued != c.waits {
			t.Errorf("%s: waits %t, want %t: %+v", c.name, s.queued, c.waits, end)
		}
	}
}

// What a day has cost binds the next run of the repository, through whichever door, by a ledger that lies in the repository.
func TestADaysBudgetBindsTheNextIssue(t *testing.T) {
	w := open(t, setting{
		plan:   []tick{{spend(50_000, 1000), reply(halfRight)}, {reply(allRight)}},
		config: map[string]string{"stops": "{max_cost_usd: 0.05}", "budget": "{per_issue_usd: 1, per_day_usd: 0.06, per_actor_day_usd: 0.055}"},
	})
	j := w.label().ended("stopped_budget", 3, "proctor:needs-human").says("stops.max_cost_usd")
	if got := j.rec.Totals.CostUSD.Decimal(); got != "0.055" {
		t.Fatalf("the first run cost %s", got)
	}
	calls := len(w.model.Calls())
	w.issue = w.hub.OpenIssue("Another one", "It should be right too.", asker)
	w.label().ended("stopped_budget", 3, "proctor:needs-human").says("budget.per_actor_day_usd")
	if got := len(w.model.Calls()); got != calls {
		t.Errorf("%d model calls after the actor's day was spent", got-calls)
	}
}

// INV-40: a request that waited is started by an id once. The controls are its first start, and a run that was lost before its end.
func TestAnApprovalThatWaitedIsUsedUpByItsRun(t *testing.T) {
	t.Parallel()
	s := daySession(t)
	s.trigger.Issue.Number, s.labelEvent, s.rec.Trigger.Snapshot = 7, 5, "what was approved"
	if err := s.remember(t.Context()); err != nil {
		t.Fatal(err)
	}
	start := func() error {
		s.trigger.Kind, s.trigger.Asked.ID, s.trigger.Snapshot = trigger.KindDispatch, 5, ""
		return s.recallApproval(t.Context())
	}
	if err := start(); err != nil || s.trigger.Snapshot != "what was approved" {
		t.Fatalf("control: the request that waited: %q, %v", s.trigger.Snapshot, err)
	}
	s.useUp(t.Context()) // without a lease no run was begun
	if err := start(); err != nil {
		t.Fatalf("control: again, as its run was lost: %v", err)
	}
	lease, err := s.store.Acquire(t.Context(), s.remote, s.leaseRef(), "r1", leaseTime)
	if err != nil {
		t.Fatal(err)
	}
	s.lease = lease
	s.useUp(t.Context())
	var end *ended
	if err := start(); !errors.As(err, &end) || !strings.Contains(end.next, "add it again") {
		t.Errorf("after its run: %v", err)
	}
}
