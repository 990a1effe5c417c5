package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/proctor-ci/proctor/internal/ci"
	"github.com/proctor-ci/proctor/internal/config"
	"github.com/proctor-ci/proctor/internal/trigger"
)

// stageName is which part of a run a job does. A run in one job does them all. Split, no machine that code of the agent's or the candidate's runs on
// has a token that can push, and the machine that publishes runs none of either.
type stageName string

const (
	stageAll     stageName = ""
	stageAgent   stageName = "agent"   // the loop; hands a commit and a record over
	stageVerify  stageName = "verify"  // repeats patch policy and proof of the commit on a fresh machine
	stagePublish stageName = "publish" // pushes exactly what was verified
	stageTell    stageName = "tell"    // says how a run ended that did not come to be published
)

// splits tells whether the run is one of several jobs.
func (st stageName) splits() bool { return st != stageAll }

// writes tells whether the job may write to the forge at all.
func (st stageName) writes() bool { return st != stageAgent && st != stageVerify }

// concludes tells whether the job works on what another one found, with a right to write.
func (st stageName) concludes() bool { return st == stagePublish || st == stageTell }

// writes tells whether this run may write anything to its forge: refs, labels, comments.
func (s *session) writes() bool { return s.req.forge != nil && !s.req.dryRun && s.req.stage.writes() }

// jobStage reads the input stage and holds the others to it. It comes before a token is borrowed: the jobs that run foreign code get none.
func jobStage(host ci.Host) (stageName, error) {
	name := host.Input("stage")
	if name == "" || name == "all" {
		return stageAll, nil
	}
	known := []string{"all", string(stageAgent), string(stageVerify), string(stagePublish), string(stageTell)}
	if !slices.Contains(known, name) {
		next := "give one of " + strings.Join(known, ", ")
		if near := config.Nearest(name, known); near != "" {
			next = fmt.Sprintf("did you mean %q? There are %s", near, strings.Join(known, ", "))
		}
		return stageAll, fmt.Errorf("input stage is %q. Next: %s", name, next)
	}
	st := stageName(name)
	if host.Job().System != "github" {
		return st, fmt.Errorf("input stage is %q, and runs are split into jobs on GitHub alone: what one GitLab job hands to the next, any job of the pipeline can write. Next: leave PROCTOR_STAGE out, so that one job does it all", name)
	}
	if !st.writes() && host.Input("token-url") != "" {
		return st, fmt.Errorf("stage %s has token-url, which brings a token that can push to the machine that must not have one. Next: give token-url to the stages publish and tell alone", st)
	}
	if st == stageAgent {
		return st, nil
	}
	for _, key := range []string{"anthropic-api-key", "claude-code-oauth-token", "openai-api-key", "gemini-api-key"} {
		if host.Input(key) != "" {
			return st, fmt.Errorf("stage %s asks no model and was given %s. Next: give the key to the stage agent alone", st, key)
		}
	}
	if host.Input("handover") == "" {
		return st, fmt.Errorf("stage %s has no input handover. Next: download the agent job's artifact with actions/download-artifact and give the directory", st)
	}
	if st == stagePublish && host.Input("verified") == "" {
		return st, errors.New("stage publish has no input verified: no verify job vouches for anything. Next: write `verified: ${{ needs.verify.outputs.verified }}`, and run this job only behind a verify job that succeeded")
	}
	return st, nil
}

// handoverDir is where the agent job's artifact lies: as given, or in the workspace, which is all that a container action sees.
func handoverDir(job ci.Job, given string) string {
	if given == "" || filepath.IsAbs(given) {
		return given
	}
	return filepath.Join(job.Workspace, given)
}

// stations are the parts of the one path that this job does, in order.
func (s *session) stations() []func(context.Context) error {
	switch s.req.stage {
	case stageAgent:
		return []func(context.Context) error{s.open, s.signable, s.intake, s.harmless, s.claim, s.prepare, s.loop, s.ready}
	case stageVerify:
		return []func(context.Context) error{s.open, s.meetForge, s.harmless, s.receive, s.arrange, s.recheck, s.reproof}
	case stagePublish:
		return []func(context.Context) error{s.open, s.intake, s.takeOver, s.claim, s.bookSpent, s.readopt, s.publish}
	case stageTell:
		return []func(context.Context) error{s.open, s.intake, s.takeOver, s.takeLease, s.bookSpent, s.conclude}
	}
	return []func(context.Context) error{s.open, s.signable, s.intake, s.look, s.claim, s.prepare, s.loop, s.publish}
}

// splittable refuses what a split run cannot do: its jobs share no checkpoint, so there is no round to go on with, and a command that
// answers or steers needs a right that the agent's job is not to have.
func (s *session) splittable() error {
	if !s.req.stage.splits() {
		return nil
	}
	what := ""
	switch {
	case s.trigger.Command != nil:
		what = "a comment's command"
	case s.trigger.Review != nil:
		what = "a review that requests changes"
	case s.trigger.Check != nil:
		what = "CI that failed"
	case s.trigger.Kind == trigger.KindReview:
		what = "a review"
	default:
		return nil
	}
	return refused("a run that is split into jobs begins with a label or by hand, not with "+what, "add the label to the issue; for rounds and commands use the workflow of `proctor init --ci github`, in which one job does it all")
}

// harmless refuses a job that runs foreign code beside a token that can push: to keep the two apart is all that the split is for.
func (s *session) harmless(ctx context.Context) error {
	if s.req.dryRun {
		return nil
	}
	may, err := s.store.MayPush(ctx, s.remote)
	if err != nil {
		return fmt.Errorf("ask whether the token of this job could push: %w", err)
	}
	if may {
		return refused(fmt.Sprintf("the token of stage %s can push to %s, and a run is split into jobs to keep such a token from this machine", s.req.stage, s.trigger.Repo.FullName()),
			"give this job `permissions: {contents: read}` (the agent's also issues and pull-requests: read), and no github-token of another kind")
	}
	return nil
}
