package webhook_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/trigger"
	"github.com/proctor-ci/proctor/internal/webhook"
)

func TestALabelDispatchesOneRunWithIdsOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	g := r.deliver("issues", "72d3162e-cc78-11e3-81ab-4c9367dc0958", labeled(12, nil))
	if g.Code != http.StatusAccepted || g.Status != "dispatched" || g.Run == "" {
		t.Fatalf("%v", g)
	}
	want := []map[string]string{{
		"issue": "12", "proctor_id": g.Run,
		"request": url.Values{
			"event": {"1012@2023-11-14T22:13:20Z"}, "delivery": {"72d3162e-cc78-11e3-81ab-4c9367dc0958"},
			"snapshot": {trigger.SnapshotOf(title(12), "as said")}, "actor": {"7:ann"},
		}.Encode(),
	}}
	if d := cmp.Diff(want, r.w.runs); d != "" {
		t.Error(d)
	}
	if r.w.refs[0] != "trunk" {
		t.Errorf("dispatched on %q, want the default branch of the event", r.w.refs[0])
	}
	log := r.log.String()
	if strings.Count(log, "\n") != 1 || strings.Contains(log, "as said") || strings.Contains(log, title(12)) || !strings.Contains(log, `"status":"dispatched"`) {
		t.Errorf("log: %s: want one line without any payload", log)
	}
}

// The E31 budget: what is sent to the forge stays small however long the issue is.
// INV-40, INV-41, INV-46, INV-48: each refusal has its reason, dispatches nothing and burns no claim. The
// control is in every row: once the fault is mended, the very same delivery dispatches.
func TestARefusalSaysWhyDispatchesNothingAndBurnsNoClaim(t *testing.T) {
	t.Parallel()
	issue := func(change func(*forge.Issue)) func(*rig) {
		return func(r *rig) {
			was := r.w.issue
			r.w.issue = func(n int) forge.Issue { i := was(n); change(&i); return i }
		}
	}
	for _, c := range []struct {
		name  string
		fault func(*rig)
		want  string
	}{
		{"INV-40 role triage", func(r *rig) { r.w.role = forge.RoleTriage }, "202 refused role"},
		{"INV-40 role read", func(r *rig) { r.w.role = forge.RoleRead }, "202 refused role"},
		{"INV-40 no access", func(r *rig) { r.w.role = forge.RoleNone }, "202 refused role"},
		{"E12 the permission API forbids", func(r *rig) { r.w.roleErr = forge.ErrForbidden }, "202 refused unknown_role"},
		{"E12 the permission API does not answer", func(r *rig) { r.w.roleErr = forge.ErrUnavailable }, "503 retry forge"},
		{"the issue was closed since", issue(func(i *forge.Issue) { i.State = "closed" }), "202 refused closed"},
		{"the label is gone", issue(func(i *forge.Issue) { i.Labels = nil }), "202 refused label_gone"},
		{"INV-41 the body was edited since", issue(func(i *forge.Issue) { i.Body = "do evil" }), "202 refused edited"},
		{"INV-41 the title was edited since", issue(func(i *forge.Issue) { i.Title = "do evil" }), "202 refused edited"},
		{"somebody else labelled last", func(r *rig) {
			r.w.event = func(int) (forge.LabelEvent, error) {
				return forge.LabelEvent{ID: 5, Actor: forge.User{Login: "bob", ID: 8}}, nil
			}
		}, "202 refused stale_event"},
		{"no label event to be found", func(r *rig) {
			r.w.event = func(int) (forge.LabelEvent, error) { return forge.LabelEvent{}, forge.ErrNotFound }
		}, "202 refused label_gone"},
		{"the issue cannot be read", func(r *rig) { r.w.issueErr = forge.ErrUnavailable }, "503 retry forge"},
		{"the issue was deleted", func(r *rig) { r.w.issueErr = forge.ErrNotFound }, "202 failed not_found"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			c.fault(r)
			body := labeled(3, nil)
			if g := r.deliver("issues", "d1", body); g.String() != c.want {
				t.Errorf("%q, want %q", g, c.want)
			}
			if r.w.dispatched() != 0 {
				t.Error("it was dispatched")
			}
			mended := newWorld()
			r.w.role, r.w.roleErr, r.w.issue, r.w.issueErr, r.w.event = mended.role, nil, mended.issue, nil, mended.event
			if g := r.deliver("issues", "d1", body); g.Status != "dispatched" {
				t.Errorf("INV-46 the same delivery once mended: %v: a claim was burnt", g)
			}
		})
	}
}

// What the event alone answers costs no API call.
func TestRefusalsThatTheEventAnswersAskNobody(t *testing.T) {
	t.Parallel()
	self := map[string]any{"login": "proctor[bot]", "id": 99, "type": "Bot"}
	for _, c := range []struct {
		name  string
		event string
		body  []byte
		want  string
	}{
		{"another label", "issues", labeled(1, map[string]any{"label.name": "bug"}), "202 ignored other_label"},
		{"INV-40 a bot", "issues", labeled(1, map[string]any{"sender.type": "Bot", "sender.id": 31}), "202 refused bot"},
		{"our own label", "issues", labeled(1, map[string]any{"sender": self}), "202 ignored own_account"},
		{"a closed issue", "issues", labeled(1, map[string]any{"issue.state": "closed"}), "202 refused closed"},
		{"a pull request", "issues", labeled(1, map[string]any{"issue.pull_request": map[string]any{}}), "202 refused pull_request"},
		{"an archived repository", "issues", labeled(1, map[string]any{"repository.archived": true}), "202 refused archived"},
		{"a repository that is not served", "issues", labeled(1, map[string]any{"repository.name": "other"}), "202 refused repository"},
		{"INV-48 our own comment", "issue_comment", commented(1, 4, "/proctor run", map[string]any{"sender": self}), "202 ignored own_account"},
		{"INV-48 a quoted command", "issue_comment", commented(1, 4, "> /proctor run", nil), "202 ignored no_command"},
		{"INV-48 an edited comment", "issue_comment", commented(1, 4, "/proctor run", map[string]any{"action": "edited"}), "202 ignored action"},
		{"a budget without an amount", "issue_comment", commented(1, 4, "/proctor budget much", nil), "202 refused unknown_command"},
		{"a dispatched run's own event", "workflow_dispatch", labeled(1, map[string]any{"inputs": map[string]any{"issue": "1"}}), "202 ignored event"},
		{"an event of no interest", "star", labeled(1, nil), "202 ignored event"},
		{"ping", "ping", labeled(1, nil), "202 recorded ping"},
		{"installation", "installation", []byte(`{"action":"deleted","installation":{"id":6}}`), "202 recorded install"},
		{"no JSON", "issues", []byte(`{"action":`), "400 invalid shape"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			r := newRig(t, func(cfg *webhook.Config) {
				cfg.Repos = []string{"octo/sho*"}
				cfg.Connect = func(context.Context, webhook.Target) (webhook.Forge, error) {
					asked++
					return nil, forge.ErrUnavailable
				}
			})
			if g := r.deliver(c.event, "d1", c.body); g.String() != c.want {
				t.Errorf("%q, want %q", g, c.want)
			}
			if asked != 0 {
				t.Error("the forge was asked")
			}
			if g := r.deliver("issues", "d2", labeled(1, nil)); g.String() != "503 retry forge" || asked != 1 {
				t.Errorf("control: %v after %d connections", g, asked)
			}
		})
	}
}

func TestCommandsOfWritersDispatchAndAreAcknowledged(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	g := r.deliver("issue_comment", "d1", commented(3, 44, "/proctor budget +5\r\nthanks", nil))
	if g.Status != "dispatched" {
		t.Fatalf("%v", g)
	}
	in, err := url.ParseQuery(r.w.runs[0]["request"])
	if err != nil || in.Get("command") != "budget +5" || in.Get("comment") != "44" || r.w.runs[0]["issue"] != "3" || in.Has("event") {
		t.Errorf("inputs %v (%v)", r.w.runs[0], err)
	}
	if d := cmp.Diff([]forge.Reaction{forge.ReactionAccepted}, r.w.reactions); d != "" {
		t.Error(d)
	}
	if g := r.deliver("issue_comment", "d2", commented(3, 44, "/proctor budget +5\r\nthanks", nil)); g.Status != "duplicate" {
		t.Errorf("the same comment again: %v", g)
	}
	r.w.role = forge.RoleRead
	if g := r.deliver("issue_comment", "d3", commented(3, 45, "/proctor run", nil)); g.String() != "202 refused role" || r.w.dispatched() != 1 {
		t.Errorf("INV-48 a reader's command: %v", g)
	}
}

func TestHelpAndUnknownCommandsAreAnsweredOnceAndOnlyToWriters(t *testing.T) {
	t.Parallel()
	for text, unknown := range map[string]bool{"/proctor help": false, "/proctor dance @everyone": true} {
		r := newRig(t, nil)
		r.w.role = forge.RoleRead
		if g := r.deliver("issue_comment", "d1", commented(3, 44, text, nil)); g.String() != "202 refused role" || len(r.w.comments) != 0 {
			t.Errorf("%s by a reader: %v, %d comments", text, g, len(r.w.comments))
		}
		r.w.role = forge.RoleWrite
		for _, want := range []string{"answered", "duplicate"} {
			if g := r.deliver("issue_comment", "d1", commented(3, 44, text, nil)); g.Status != want {
				t.Errorf("%s: %v, want %s", text, g, want)
			}
		}
		if len(r.w.comments) != 1 || r.w.dispatched() != 0 {
			t.Fatalf("%s: %d comments and %d dispatches, want one and none", text, len(r.w.comments), r.w.dispatched())
		}
		c := r.w.comments[0]
		if !strings.Contains(c, "`/proctor budget +N`") || strings.Contains(c, "no such command") != unknown || strings.Contains(c, "everyone") {
			t.Errorf("%s: answer %q", text, c)
		}
		if _, ok := trigger.FindCommand(c, "/proctor"); ok {
			t.Error("the answer is itself a command")
		}
	}
}

// INV-46: a dispatch that failed gives the claim back, so that the next delivery starts the run.
// A lost answer is looked up, never repeated blindly.
// markless is a store that cannot be written to while a claim is open.
// INV-46: a claim whose run never started is reaped; one whose run did is not.
// A label event can be younger than the list that tells of it.
func TestALabelEventThatIsNotListedYetIsLookedForAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	looks := 0
	was := r.w.event
	r.w.event = func(n int) (forge.LabelEvent, error) {
		if looks++; looks < 3 {
			return forge.LabelEvent{}, forge.ErrNotFound
		}
		return was(n)
	}
	if g := r.deliver("issues", "d1", labeled(3, nil)); g.Status != "dispatched" || looks != 3 {
		t.Errorf("%v after %d looks", g, looks)
	}
}

func TestADeliveryWithoutAnInstallationIsRefusedInPeace(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *webhook.Config) {
		c.Connect = func(_ context.Context, to webhook.Target) (webhook.Forge, error) {
			if to.Install == 0 {
				return nil, webhook.ErrNoInstallation
			}
			return newWorld(), nil
		}
	})
	if g := r.deliver("issues", "d1", labeled(3, map[string]any{"installation.id": 0})); g.String() != "202 refused no_installation" {
		t.Error(g)
	}
	if g := r.deliver("issues", "d1", labeled(3, nil)); g.Status != "dispatched" {
		t.Errorf("control: %v", g)
	}
}

func TestAPanicIsAnAnswerAndNothingInternalLeaks(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *webhook.Config) {
		c.Connect = func(context.Context, webhook.Target) (webhook.Forge, error) { panic("token=abc at /srv/key.pem") }
	})
	g := r.deliver("issues", "d1", labeled(3, nil))
	if g.String() != "503 retry internal" || strings.Contains(g.Raw+r.log.String(), "abc") {
		t.Errorf("%v: %s %s", g, g.Raw, r.log)
	}
	leaky := newRig(t, func(c *webhook.Config) {
		c.Connect = func(context.Context, webhook.Target) (webhook.Forge, error) {
			return nil, errors.New("dial 10.0.0.7: refused")
		}
	})
	if g := leaky.deliver("issues", "d1", labeled(3, nil)); strings.Contains(g.Raw, "10.0.0.7") || !strings.Contains(leaky.log.String(), "10.0.0.7") {
		t.Errorf("answer %s, log %s: want the cause in the log alone", g.Raw, leaky.log)
	}
}

// A caller that hangs up must not leave a claim half done.
func TestAForgeThatHangsIsGivenUpInTime(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *webhook.Config) {
		c.Timeout = time.Millisecond
		c.Connect = func(ctx context.Context, _ webhook.Target) (webhook.Forge, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
	})
	if g := r.deliver("issues", "d1", labeled(3, nil)); g.String() != "503 retry forge" {
		t.Error(g)
	}
}

// INV-12 at this door: one label event is one run, however many deliveries of it are handled at once.
func TestGitLabDeliveriesComeThroughTheSameDoor(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	post := func(token, key string) got {
		return send(r.h, gitlabRequest("Issue Hook", token, key, labeledOnGitLab(3)))
	}
	if g := post("glt-SAMPLE", "k1"); g.Status != "dispatched" || r.w.runs[0]["issue"] != "3" {
		t.Errorf("%v", g)
	}
	if g := post("glt-SAMPLE", "k2"); g.Status != "duplicate" {
		t.Errorf("E16 a second hook of the same project: %v", g)
	}
	if g := post("glt-SAMPLF", "k3"); g.Code != http.StatusUnauthorized {
		t.Errorf("%v", g)
	}
}

func TestHealthIsAnsweredWithoutALogLine(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	if g := send(r.h, httptest.NewRequest(http.MethodGet, "/healthz", nil)); g.Code != http.StatusOK {
		t.Error(g)
	}
	if r.log.String() != "" {
		t.Error(r.log.String())
	}
}

// Whoever looks at the forge's list of deliveries sees what to do about those that start nothing by mistake.
func TestAnAnswerToAMistakeNamesTheSetting(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	if got := r.deliver("issues", "d1", labeled(3, map[string]any{"label.name": "Proctr"})); !strings.Contains(got.Raw, "PROCTOR_LABEL") {
		t.Errorf("another label: %s", got.Raw)
	}
	forged := githubRequest("issues", "d2", labeled(3, nil))
	forged.Header.Set("X-Hub-Signature-256", sign("another secret than ours", labeled(3, nil)))
	if got := send(r.h, forged); got.Code != http.StatusUnauthorized || !strings.Contains(got.Raw, "PROCTOR_WEBHOOK_SECRET") {
		t.Errorf("another secret: %s", got.Raw)
	}
	if got := r.deliver("issues", "d3", labeled(3, nil)); strings.Contains(got.Raw, "hint") {
		t.Errorf("what is right gets a hint: %s", got.Raw)
	}
}
