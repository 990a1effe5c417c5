package app

import (
	"context"
	"errors"
	"strings"

	"github.com/proctor-ci/proctor/internal/config"
	"github.com/proctor-ci/proctor/internal/doctor"
	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/meter"
	"github.com/proctor-ci/proctor/internal/scaffold"
)

// settings are what people clicked. What this token may not see is told as unknown.
func (x examination) settings(ctx context.Context, f forge.Forge) {
	reader, ok := f.(forge.SettingsReader)
	if !ok {
		return
	}
	n := forge.Needs{Branch: strings.ReplaceAll(x.s.cfg.Publish.Branch, "{number}", "1"), Workflow: scaffold.GitHubWorkflow, Variables: labVariables(x.s.cfg)}
	if x.s.store != nil {
		workflow, err := x.s.store.ReadFile(ctx, x.s.store.Base(), scaffold.GitHubWorkflow, 1<<20)
		if err == nil {
			n.JobToken, n.Secrets = doctor.HandsOver(workflow, x.s.cfg)
		}
	}
	found, err := reader.Settings(ctx, n)
	if err != nil {
		x.rep.Add(fault("settings", err, "run this again"))
		return
	}
	status := map[forge.Sight]doctor.Status{forge.Right: doctor.OK, forge.Wrong: doctor.Failed, forge.Doubtful: doctor.Noted, forge.Unseen: doctor.Unproved}
	for _, s := range found {
		x.rep.Add(doctor.Finding{Check: "settings." + s.Name, Status: status[s.Sight], Text: s.Said, Fix: s.Next})
	}
}

// labVariables are the secrets that GitLab's job reads.
func labVariables(c config.Config) []string {
	names := []string{"PROCTOR_GITLAB_TOKEN"}
	switch apiOf(c.Agent.Name) {
	case meter.Anthropic:
		names = append(names, "PROCTOR_ANTHROPIC_API_KEY")
	case meter.OpenAI:
		names = append(names, "PROCTOR_OPENAI_API_KEY")
	case meter.Gemini:
		names = append(names, "PROCTOR_GEMINI_API_KEY")
	}
	return names
}

// starts: whether this token may start CI. A run of GitHub's needs no such right, for the label starts it.
func (x examination) starts(ctx context.Context, f forge.Forge) {
	starter, ok := f.(forge.Starter)
	if !ok {
		return
	}
	err := starter.Startable(ctx, scaffold.GitHubWorkflow, doctorBranch)
	switch {
	case err == nil:
		x.rep.Add(doctor.Finding{Check: "forge.start", Status: doctor.OK, Text: "the token may start CI"})
	case f.Name() == "github" && errors.Is(err, forge.ErrNotFound): // settings.workflow tells
	case f.Name() == "github" && errors.Is(err, forge.ErrForbidden):
		x.rep.Add(doctor.Finding{Check: "forge.start", Status: doctor.Noted, Text: "the token may not start the workflow itself; a label does, and so does the webhook with its App's token"})
	default:
		x.rep.Add(fault("forge.start", err, "give the token's account the role Developer"))
	}
}

// pushed: a run reads the forge's default branch, not this checkout.
func (x examination) pushed(ctx context.Context, f forge.Forge, repo forge.Repository) {
	store := x.s.store
	if store == nil {
		return
	}
	tip, err := f.Branch(ctx, repo.DefaultBranch)
	if err != nil {
		x.rep.Add(fault("config.pushed", err, "push the default branch: `git push`"))
		return
	}
	if git.ID(tip) == store.Base() {
		x.rep.Add(doctor.Finding{Check: "config.pushed", Status: doctor.OK, Text: "what was looked at is the tip of " + repo.DefaultBranch})
		return
	}
	ahead, err := store.Contains(ctx, store.Base(), git.ID(tip))
	if err != nil || !ahead {
		x.rep.Add(doctor.Finding{Check: "config.pushed", Status: doctor.Noted, Text: "what was looked at is not the tip of " + repo.DefaultBranch + ", from which runs read", Fix: "`git pull`, then run this again"})
		return
	}
	for _, p := range append(config.Paths(), scaffold.GitHubWorkflow, scaffold.GitLabPipeline, scaffold.GitLabTemplate) {
		here, _ := store.Entry(ctx, store.Base(), p) // no entry where there is no file
		there, _ := store.Entry(ctx, git.ID(tip), p)
		if here.ID != there.ID {
			x.rep.Add(doctor.Finding{Check: "config.pushed", Status: doctor.Failed, Text: p + " is not on " + repo.DefaultBranch + " of the forge as it was looked at here, and only what is there counts", Fix: "`git push origin HEAD:" + repo.DefaultBranch + "`, or have it merged"})
			return
		}
	}
	x.rep.Add(doctor.Finding{Check: "config.pushed", Status: doctor.Noted, Text: "commits here are not on " + repo.DefaultBranch + " of the forge, from which runs read", Fix: "`git push origin HEAD:" + repo.DefaultBranch + "`, or have them merged"})
}
