package app

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/ci"
	"github.com/proctor-ci/proctor/internal/config"
	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
	"github.com/proctor-ci/proctor/internal/money"
	"github.com/proctor-ci/proctor/internal/trigger"
)

// INV-49: every way in which a split run does not come to be published is told on the issue in the words of the job that ended it, with labels and exit code, and what it
// spent counts: of a job that was lost, all that it could have.
func TestASplitRunThatIsNotPublishedIsToldOnTheIssue(t *testing.T) {
	d := openSplit(t, setting{plan: []tick{{spend(1000, 100), reply(allRight)}}, config: map[string]string{"gates": bothGates}})
	_, reports := d.stage(stageVerify, d.handover, "", readsCode)
	green := read(t, filepath.Join(reports, verifiedFile))
	_, reports = d.stage(stageVerify, d.forge(forgery{files: map[string]string{"app/answer.txt": "no\n"}}), "", readsCode)
	red := read(t, filepath.Join(reports, verifiedFile))
	for _, c := range []struct {
		name, handover, verified string
		terminal, words, label   string
	}{
		{"nobody approved", d.handover, green, "publish_failed", "was not approved", "proctor:failed"},
		{"the proof does not hold", d.handover, red, "not_reproduced", "the verify job: the iteration gate does not pass", "proctor:needs-human"},
		{"the verify job was lost", d.handover, "", "internal_error", "read the log of the verify job", "proctor:failed"},
		{"the agent's job was lost", t.TempDir(), "", "internal_error", "read the log of the agent's job", "proctor:failed"},
		{"a finding of no known end", d.handover, strings.Replace(green, `"done"`, `"merged"`, 1), "internal_error", "left no finding", "proctor:failed"},
	} {
		d.asked()
		rec, _ := d.stage(stageTell, c.handover, c.verified, writesAll)
		if rec.Terminal != c.terminal || !strings.Contains(rec.Reason+rec.Next, c.words) {
			t.Errorf("%s: ended %s: %s Next: %s", c.name, rec.Terminal, rec.Reason, rec.Next)
		}
		is, _ := d.hub.Issue(d.issue)
		if said := d.statuses(); fmt.Sprint(is.Labels) != "["+c.label+"]" || len(said) != 1 || !strings.Contains(said[0], evidenceTitle(rec)) {
			t.Errorf("%s: labels %q, the issue says %q", c.name, is.Labels, said)
		}
		if refs := strings.Join(d.refs(), " "); strings.Contains(refs, "refs/heads/proctor") || len(d.hub.Pulls()) != 0 {
			t.Errorf("%s: refs %s", c.name, refs)
		}
	}
}

// Rule 8: what a lost job has spent nobody knows, so that all counts which it could have; where no model is asked there is nothing to lose.
func TestALostAgentsJobCountsAtItsCeiling(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		agent string
		per   money.USD
		want  money.USD
	}{
		"the run's ceiling":   {"claude-code", 20 * money.Dollar, 5 * money.Dollar},
		"the issue's is less": {"claude-code", 2 * money.Dollar, 2 * money.Dollar},
		"no model":            {"script", 20 * money.Dollar, 0},
	} {
		s := &session{cfg: config.Default()}
		s.cfg.Agent.Name, s.cfg.Review.Enabled = c.agent, false
		s.cfg.Stops.MaxCost, s.cfg.Budget.PerIssue = 5*money.Dollar, c.per
		if got := s.spent(); got != c.want {
			t.Errorf("%s: %s counts, want %s", name, got, c.want)
		}
	}
}

func TestInputsOfStagesThatDoNotFitAreRefusedByName(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		inputs map[string]string
		system string
		want   stageName
		words  string
	}{
		"none":                    {nil, "github", stageAll, ""},
		"all":                     {map[string]string{"stage": "all"}, "github", stageAll, ""},
		"agent":                   {map[string]string{"stage": "agent", "anthropic-api-key": "k"}, "github", stageAgent, ""},
		"verify":                  {map[string]string{"stage": "verify", "handover": "/x"}, "github", stageVerify, ""},
		"publish":                 {map[string]string{"stage": "publish", "handover": "/x", "verified": "{}", "token-url": "https://h/token"}, "github", stagePublish, ""},
		"tell without a finding":  {map[string]string{"stage": "tell", "handover": "/x"}, "github", stageTell, ""},
		"a slip":                  {map[string]string{"stage": "verfy"}, "github", "", `did you mean "verify"?`},
		"no stage":                {map[string]string{"stage": "deploy-now"}, "github", "", "give one of all, agent, verify, publish, tell"},
		"GitLab":                  {map[string]string{"stage": "agent"}, "gitlab", "", "leave PROCTOR_STAGE out"},
		"GitLab in one job":       {map[string]string{"stage": "all"}, "gitlab", stageAll, ""},
		"a lent token for agents": {map[string]string{"stage": "agent", "token-url": "https://h/token"}, "github", "", "to the stages publish and tell alone"},
		"a key for verify":        {map[string]string{"stage": "verify", "handover": "/x", "openai-api-key": "k"}, "github", "", "was given openai-api-key"},
		"a key for publish":       {map[string]string{"stage": "publish", "handover": "/x", "verified": "{}", "gemini-api-key": "k"}, "github", "", "was given gemini-api-key"},
		"verify without handover": {map[string]string{"stage": "verify"}, "github", "", "actions/download-artifact"},
		"publish without finding": {map[string]string{"stage": "publish", "handover": "/x"}, "github", "", "needs.verify.outputs.verified"},
	} {
		env := Env{Stdout: io.Discard, Getenv: func(k string) string {
			for in, v := range c.inputs {
				if k == "PROCTOR_"+strings.ToUpper(strings.ReplaceAll(in, "-", "_")) {
					return v
				}
			}
			return map[string]string{
				"GITHUB_ACTIONS": fmt.Sprint(c.system == "github"), "GITLAB_CI": "true", "GITHUB_REPOSITORY": "octo/shop", "GITHUB_EVENT_NAME": "issues", "GITHUB_WORKSPACE": "/w", "GITHUB_API_URL": "https://a", "GITHUB_SERVER_URL": "https://s",
				"CI_PROJECT_PATH": "octo/shop", "CI_PROJECT_DIR": "/w", "CI_SERVER_URL": "https://s", "CI_API_V4_URL": "https://s/api/v4", "CI_PIPELINE_SOURCE": "api",
			}[k]
		}}
		host, err := ci.Detect(env.Getenv, env.Stdout, func([]byte) {})
		if err != nil {
			t.Fatal(err)
		}
		got, err := jobStage(host)
		switch {
		case c.words == "" && (err != nil || got != c.want):
			t.Errorf("%s: stage %q, %v", name, got, err)
		case c.words != "" && (err == nil || !strings.Contains(err.Error(), c.words) || !strings.Contains(err.Error(), "Next: ") && !strings.Contains(err.Error(), "did you mean")):
			t.Errorf("%s: stage %q, %v", name, got, err)
		}
	}
	job := ci.Job{Workspace: "/w"}
	for given, want := range map[string]string{"": "", "/t/h": "/t/h", "h": "/w/h"} {
		if got := handoverDir(job, given); got != want {
			t.Errorf("handover %q lies in %q", given, got)
		}
	}
}

// A split run has no round and answers no command; in one job there are both.
func TestASplitRunBeginsWithALabelOrByHand(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		trigger trigger.Trigger
		words   string
	}{
		"a label":   {trigger.Trigger{Kind: trigger.KindLabel}, ""},
		"by hand":   {trigger.Trigger{Kind: trigger.KindDispatch}, ""},
		"a command": {trigger.Trigger{Kind: trigger.KindDispatch, Command: &trigger.Command{Name: "fix"}}, "not with a comment's command"},
		"a review":  {trigger.Trigger{Kind: trigger.KindReview, Review: &trigger.ReviewRef{}}, "not with a review"},
		"CI":        {trigger.Trigger{Kind: trigger.KindDispatch, Check: &trigger.CheckRef{}}, "not with CI"},
	} {
		for _, st := range []stageName{stageAll, stageAgent, stagePublish, stageTell} {
			s := &session{req: request{stage: st}, trigger: c.trigger}
			err := s.splittable()
			if want := c.words != "" && st != stageAll; (err != nil) != want || want && (!strings.Contains(err.Error(), c.words) || !strings.Contains(err.(*ended).next, "add the label")) {
				t.Errorf("%s, stage %q: %v", name, st, err)
			}
		}
	}
}

// INV-49, INV-51: a push or a draft that the forge refuses leaves the verified commit on the run's ref, and the next run proves it again without a model call. A run
// that came to no proof leaves its last commit in the agent job's artifact, says so, and the next one begins anew.
func TestWhatASplitRunCouldNotPublishIsGoneOnWithAndUnprovedWorkIsNot(t *testing.T) {
	d := openSplit(t, setting{plan: []tick{{spend(1000, 100), reply(allRight)}}, config: map[string]string{"gates": bothGates}})
	_, reports := d.stage(stageVerify, d.handover, "", readsCode)
	d.must(d.hub.Fail("POST /repos/*/*/pulls", 1, forgetest.Refusal(403, "GitHub Actions is not permitted to create or approve pull requests.")))
	rec, _ := d.stage(stagePublish, d.handover, read(t, filepath.Join(reports, verifiedFile)), writesAll)
	if rec.Terminal != "publish_failed" || rec.Kept != fmt.Sprintf("refs/proctor/%d/state", d.issue) {
		t.Fatalf("ended %s: %s; kept on %q", rec.Terminal, rec.Reason, rec.Kept)
	}
	d.asked()
	again, _ := d.stage(stageAgent, "", "", readsAll)
	if again.Terminal != "done" || again.Totals.Calls != 0 || again.Head.ID != d.agent.Head.ID || again.Totals.IssueUSD != d.agent.Totals.CostUSD {
		t.Errorf("the next run ended %s: %s, %d calls, head %+v, the issue has cost %s", again.Terminal, again.Reason, again.Totals.Calls, again.Head, again.Totals.IssueUSD)
	}
	var r evidence.Record
	r.Head = &evidence.Commit{ID: d.agent.Head.ID}
	for terminal, want := range map[string]string{
		evidence.StoppedBudget: "then add the label again. The next run begins anew; what this one came to is proctor.bundle in the artifact of the agent's job",
		evidence.TickCap:       "add the label again. The next run begins anew; what this one came to is proctor.bundle in the artifact of the agent's job",
		evidence.SafetyHalt:    "Read the finding. If the change is wanted, a person makes it, or the policy allows it on the default branch.",
	} {
		r.Finish(terminal, "x", "")
		if got := splitNext(r); !strings.HasSuffix(got, want) || strings.Contains(got, "resume") {
			t.Errorf("%s: next %q", terminal, got)
		}
	}
}
