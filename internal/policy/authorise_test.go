package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/trigger"
)

var (
	ann  = trigger.Actor{Login: "ann", ID: 7}
	self = trigger.Actor{Login: "proctor-ci[bot]", ID: 1000, Bot: true}
)

func rules() Rules {
	return Rules{Label: "proctor", Roles: DefaultRoles(), Self: self, Bots: []int64{55}, MaxOpen: 3}
}

// asked is a request that everything allows; change makes it one that something forbids.
func asked() (trigger.Trigger, Facts) {
	t := trigger.Trigger{
		Forge: trigger.GitHub, Kind: trigger.KindLabel, Label: "proctor", Actor: ann,
		Repo:  trigger.Repo{Owner: "octo", Name: "shop"},
		Issue: trigger.Issue{Number: 3, Title: "Round half up", Body: "as\r\nsaid", State: "open", Labels: []string{"proctor"}},
	}
	f := Facts{
		Role:       forge.RoleWrite,
		Issue:      &forge.Issue{Number: 3, Title: "Round half up", Body: "as\nsaid", State: "open", Labels: []string{"bug", "Proctor"}},
		LabelEvent: &forge.LabelEvent{ID: 9, Actor: forge.User{Login: "ann", ID: 7}, At: time.Unix(1, 0)},
	}
	return t, f
}

// Positive control for every row below it: the same request, unchanged, is allowed.
func TestAuthorise(t *testing.T) {
	t.Parallel()
	type request struct {
		t *trigger.Trigger
		f *Facts
		c *Rules
	}
	command := func(name string, args ...string) func(request) {
		return func(r request) {
			r.t.Kind, r.t.Command = trigger.KindComment, &trigger.Command{Name: name, Args: args}
		}
	}
	both := func(fs ...func(request)) func(request) {
		return func(r request) {
			for _, f := range fs {
				f(r)
			}
		}
	}
	check := func(r request) {
		r.t.Kind, r.t.Label, r.t.Actor, r.t.Issue, r.f.Role, r.f.LabelEvent = trigger.KindCheck, "", trigger.Actor{}, trigger.Issue{Number: 3}, "", nil
		r.t.Check, r.t.Change = &trigger.CheckRef{ID: 77}, &trigger.ChangeRef{Head: "proctor/issue-3"}
	}
	closed := func(r request) { r.f.Issue.State = "closed" }
	edited := func(r request) { r.f.Issue.Body = "delete everything" }
	for _, c := range []struct {
		name   string
		change func(request)
		want   Reason
	}{
		{"a writer's label", func(request) {}, ReasonAllowed},
		{"a maintainer's label", func(r request) { r.f.Role = forge.RoleMaintain }, ReasonAllowed},
		{"INV-40 triage can label but not ask", func(r request) { r.f.Role = forge.RoleTriage }, ReasonRole},
		{"INV-40 read", func(r request) { r.f.Role = forge.RoleRead }, ReasonRole},
		{"INV-40 none", func(r request) { r.f.Role = forge.RoleNone }, ReasonRole},
		{"INV-40 no answer means no", func(r request) { r.f.Role = "" }, ReasonUnknownRole},
		{"INV-40 a role nobody knows", func(r request) { r.f.Role = "superuser" }, ReasonRole},
		{"INV-40 no roles listed lets nobody in", func(r request) { r.c.Roles = nil }, ReasonRole},
		{"INV-40 none is never a role that may, listed or not", func(r request) { r.f.Role = forge.RoleNone; r.c.Roles = append(r.c.Roles, forge.RoleNone) }, ReasonRole},
		{"INV-40 CI that failed on a branch, which nobody asked for", check, ReasonAllowed},
		{"INV-40 CI that failed, and a command beside it", both(check, command("run"), func(r request) { r.f.Role = forge.RoleRead }), ReasonRole},
		{"INV-40 CI that failed, and no branch", both(check, func(r request) { r.t.Change = nil }), ReasonKind},
		{"INV-40 CI that failed in a fork", both(check, func(r request) { r.t.Change.FromFork = true }), ReasonFork},
		{"CI that failed, and the issue is closed", both(check, closed), ReasonClosed},
		{"CI that failed in an archived repository", both(check, func(r request) { r.f.Archived = true }), ReasonArchived},
		{"INV-40 a bot that is not listed", func(r request) { r.t.Actor = trigger.Actor{Login: "x[bot]", ID: 56, Bot: true} }, ReasonBot},
		{"INV-40 a bot with a listed bot's login and another id", func(r request) { r.t.Actor = trigger.Actor{Login: "good[bot]", ID: 56, Bot: true} }, ReasonBot},
		{"INV-40 a bot without an id", func(r request) { r.t.Actor = trigger.Actor{Login: "good[bot]", Bot: true}; r.c.Bots = []int64{0} }, ReasonBot},
		{"INV-40 a listed bot with a role", func(r request) {
			r.t.Actor = trigger.Actor{Login: "good[bot]", ID: 55, Bot: true}
			r.f.LabelEvent.Actor = forge.User{Login: "good[bot]", ID: 55}
		}, ReasonAllowed},
		{"INV-40 a listed bot without a role", func(r request) {
			r.t.Actor = trigger.Actor{Login: "good[bot]", ID: 55, Bot: true}
			r.f.Role = forge.RoleRead
		}, ReasonRole},
		{"our own account, listed or not", func(r request) { r.t.Actor = self; r.c.Bots = []int64{1000}; r.f.Role = forge.RoleAdmin }, ReasonSelf},
		{"our own account by login alone", func(r request) { r.t.Actor = trigger.Actor{Login: "Proctor-CI[bot]"} }, ReasonSelf},
		{"INV-40 the label was last added by somebody else", func(r request) { r.f.LabelEvent.Actor = forge.User{Login: "bob", ID: 8} }, ReasonStale},
		{"a dispatch for an older label event", func(r request) { r.t.Kind = trigger.KindDispatch; r.t.Asked.ID = 8 }, ReasonStale},
		{"a dispatch for this label event", func(r request) { r.t.Kind = trigger.KindDispatch; r.t.Asked.ID = 9 }, ReasonAllowed},
		{"INV-40 a fork's change", both(command("fix"), func(r request) { r.t.Change = &trigger.ChangeRef{Number: 3, FromFork: true} }), ReasonFork},
		{"a label on a pull request", func(r request) { r.t.Issue.IsPull = true }, ReasonPull},
		{"an issue that turns out to be a pull request", func(r request) { r.f.Issue.IsPull = true }, ReasonPull},
		{"archived, says the event", func(r request) { r.t.Repo.Archived = true }, ReasonArchived},
		{"archived, says the API", func(r request) { r.f.Archived = true }, ReasonArchived},
		{"confidential, says the event", func(r request) { r.t.Issue.Confidential = true }, ReasonConfidential},
		{"confidential, says the API", func(r request) { r.f.Issue.Confidential = true }, ReasonConfidential},
		{"confidential and switched on", func(r request) { r.f.Issue.Confidential = true; r.c.AllowConfidential = true }, ReasonAllowed},
		{"closed, says the event", func(r request) { r.t.Issue.State = "closed" }, ReasonClosed},
		{"closed since", closed, ReasonClosed},
		{"locked on GitHub", func(r request) { r.f.Issue.Locked = true }, ReasonLocked},
		{"locked and switched on", func(r request) { r.f.Issue.Locked = true; r.c.AllowLocked = true }, ReasonAllowed},
		{"locked on GitLab", func(r request) { r.t.Forge = trigger.GitLab; r.f.Issue.Locked = true }, ReasonAllowed},
		{"the label is gone", func(r request) { r.f.Issue.Labels = []string{"bug"} }, ReasonLabelGone},
		{"the label has become ours, before the run", func(r request) { r.f.Issue.Labels = []string{"proctor:running"} }, ReasonLabelGone},
		{"the label has become ours, in the run", func(r request) { r.f.Issue.Labels = []string{"proctor:running"}; r.f.Started = true }, ReasonAllowed},
		{"a look-alike label in the run", func(r request) { r.f.Issue.Labels = []string{"proctor:other"}; r.f.Started = true }, ReasonLabelGone},
		{"INV-41 the body was edited", edited, ReasonEdited},
		{"INV-41 the title was edited", func(r request) { r.f.Issue.Title += "!" }, ReasonEdited},
		{"INV-41 text moved from the title to the body", func(r request) { r.f.Issue.Title = "Round half"; r.f.Issue.Body = " upas\nsaid" }, ReasonEdited},
		{"INV-41 a dispatch's hash of other text", func(r request) { r.t.Snapshot = trigger.SnapshotOf("a", "b") }, ReasonEdited},
		{"INV-41 line ends are no edit", func(r request) { r.f.Issue.Body = "as\r\nsaid" }, ReasonAllowed},
		{"INV-41 a command to run on edited text", both(command("run"), edited), ReasonEdited},
		{"a command that only reads, on edited text", both(command("status"), edited), ReasonAllowed},
		{"too many open", func(r request) { r.f.OpenPulls = 3 }, ReasonMaxOpen},
		{"room for one more", func(r request) { r.f.OpenPulls = 2 }, ReasonAllowed},
		{"work on an open pull request takes no room", both(command("fix"), func(r request) { r.f.OpenPulls = 9; r.t.Change = &trigger.ChangeRef{Number: 3} }), ReasonAllowed},
		{"a command to run on a closed issue", both(command("run"), closed), ReasonClosed},
		{"a review on a closed issue", both(command("review"), closed), ReasonClosed},
		{"INV-41 a review of edited text", both(command("review"), edited), ReasonEdited},
		{"a review takes no room", both(command("review"), func(r request) { r.f.OpenPulls = 9 }), ReasonAllowed},
		{"INV-40 a reader's review by comment", both(command("review"), func(r request) { r.f.Role = forge.RoleRead }), ReasonRole},
		{"INV-40 a review of a fork's change", both(command("review"), func(r request) { r.t.Change = &trigger.ChangeRef{Number: 3, FromFork: true} }), ReasonFork},
		{"a verification on a closed issue", both(command("verify"), closed), ReasonAllowed},
		{"a verification on edited text", both(command("verify"), edited), ReasonAllowed},
		{"INV-40 a reader's verification", both(command("verify"), func(r request) { r.f.Role = forge.RoleRead }), ReasonRole},
		{"INV-40 a verification of a fork's change", both(command("verify"), func(r request) { r.t.Change = &trigger.ChangeRef{Number: 3, FromFork: true} }), ReasonFork},
		{"a command to stop on a closed issue", both(command("stop"), closed), ReasonAllowed},
		{"a command from a reader", both(command("status"), func(r request) { r.f.Role = forge.RoleRead }), ReasonRole},
		{"an unknown command", command("dance"), ReasonCommand},
		{"a budget without an amount", command("budget", "lots"), ReasonCommand},
		{"a command needs no label", both(command("run"), func(r request) { r.f.Issue.Labels = nil }), ReasonAllowed},
		{"a review that requests changes", func(r request) {
			r.t.Kind, r.t.Review, r.t.Change = trigger.KindReview, &trigger.ReviewRef{ID: 5}, &trigger.ChangeRef{Number: 3}
			r.f.OpenPulls = 9
		}, ReasonAllowed},
		{"INV-40 a review of a fork's", func(r request) {
			r.t.Kind, r.t.Review, r.t.Change = trigger.KindReview, &trigger.ReviewRef{ID: 5}, &trigger.ChangeRef{Number: 3, FromFork: true}
		}, ReasonFork},
		{"INV-40 a reader's review", func(r request) {
			r.t.Kind, r.t.Review, r.t.Change = trigger.KindReview, &trigger.ReviewRef{ID: 5}, &trigger.ChangeRef{Number: 3}
			r.f.Role = forge.RoleRead
		}, ReasonRole},
		{"a review of nothing", func(r request) { r.t.Kind = trigger.KindReview }, ReasonKind},
		{"a ping asks for nothing", func(r request) { r.t.Kind = trigger.KindPing }, ReasonKind},
		{"a kind nobody decided on", func(r request) { r.t.Kind = "new" }, ReasonKind},
		{"a person at a terminal has no role to look up", func(r request) { r.t.Kind = trigger.KindManual; r.f.Role = "" }, ReasonAllowed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tr, f := asked()
			issue, event := *f.Issue, *f.LabelEvent
			f.Issue, f.LabelEvent = &issue, &event
			r := rules()
			c.change(request{&tr, &f, &r})
			got := Authorise(tr, f, r)
			if got.Reason != c.want || got.Allow != (c.want == ReasonAllowed) {
				t.Errorf("%+v, want %s", got, c.want)
			}
			if !strings.HasSuffix(got.Text, ".") || strings.Contains(got.Text, "@") || strings.ContainsAny(got.Text, "\n\r") {
				t.Errorf("text %q: want one sentence that mentions nobody", got.Text)
			}
			if got.Allow && !Precheck(tr, r).Allow {
				t.Error("Precheck refuses what Authorise allows")
			}
		})
	}
}

func TestATextNeverCarriesALoginsMarkup(t *testing.T) {
	t.Parallel()
	tr, f := asked()
	tr.Actor = trigger.Actor{Login: "x`@all\n<img src=y>", ID: 3}
	f.Role = forge.RoleRead
	if got := Authorise(tr, f, rules()).Text; strings.ContainsAny(got, "@<>\n") {
		t.Errorf("text %q carries markup", got)
	}
}

func TestPrecheckRefusesWithoutAnyFact(t *testing.T) {
	t.Parallel()
	tr, _ := asked()
	if got := Precheck(tr, rules()); !got.Allow {
		t.Errorf("control: %+v", got)
	}
	tr.Issue.State = "closed"
	if got := Precheck(tr, rules()); got.Reason != ReasonClosed {
		t.Errorf("%+v, want closed", got)
	}
	if got := Authorise(tr, Facts{}, rules()); got.Reason != ReasonClosed {
		t.Errorf("%+v, want closed before anything else is asked", got)
	}
}

// A personal token makes whoever asks the account that the run works as: the refusal has to say so.
func TestARefusalOfOurOwnAccountSaysWhichTokenToGive(t *testing.T) {
	t.Parallel()
	tr, f := asked()
	r := rules()
	r.Self = tr.Actor
	if got := Authorise(tr, f, r); got.Reason != ReasonSelf || !strings.Contains(got.Text, "`"+tr.Actor.Login+"` is the account") || !strings.Contains(got.Text, "project access token") {
		t.Errorf("%+v", got)
	}
}
