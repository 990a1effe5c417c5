package app

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/proctor-ci/proctor/internal/config"
	"github.com/proctor-ci/proctor/internal/detect"
	"github.com/proctor-ci/proctor/internal/scaffold"
	"github.com/proctor-ci/proctor/templates"
)

func initCommand(env Env) *cobra.Command {
	var o initOptions
	c := &cobra.Command{
		Use:   "init",
		Short: "Write the configuration and the CI job for this repository",
		Long: `Init looks at the repository and writes a configuration with the gates it found, each with where it was seen, and what starts
runs: a workflow on GitHub, a job and its include on GitLab. It never overwrites a file: of one that exists it shows what it would
change, as a diff that git apply takes. What loopkit.toml and autoloop.toml say is taken over where it means the same here.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return initialise(env, o) },
	}
	f := c.Flags()
	f.StringVar(&o.ci, "ci", "", "github or gitlab (default: what the remote origin, then the repository's files say)")
	f.BoolVar(&o.check, "check", false, "on GitHub, also write the workflow that runs doctor weekly and when the set-up changes")
	f.BoolVar(&o.staged, "staged", false, "on GitHub: split a run into jobs, so that nothing that runs the agent or the change has a token that can push")
	return c
}

// initOptions are the flags of `proctor init`.
type initOptions struct {
	ci            string
	check, staged bool
}

func initialise(env Env, o initOptions) error {
	top, err := checkoutOf(env.Dir)
	if err != nil {
		return err
	}
	forge, why, err := chooseForge(env, top, o.ci)
	if err != nil {
		return err
	}
	if o.check && forge == scaffold.GitLab {
		return errors.New("--check writes a workflow for GitHub. Next: on GitLab run doctor by Build → Pipelines → New pipeline with the variable PROCTOR_DOCTOR=true, or by a schedule with it")
	}
	if o.staged && forge != scaffold.GitHub {
		return fmt.Errorf("--staged splits a run into jobs of GitHub Actions, and this is %s (%s). Next: leave --staged out, or write --ci github", forge, why)
	}
	fmt.Fprintf(env.Stdout, "for %s (%s)\n", forge, why)
	at, _, err := config.Find(func(p string) ([]byte, error) { return os.ReadFile(filepath.Join(top, filepath.FromSlash(p))) })
	if err != nil {
		return err
	}
	detected, assumed := scaffold.Detected(detect.Detect(os.DirFS(top)))
	imported, err := scaffold.Import(os.DirFS(top))
	if err != nil {
		return err
	}
	settings, comments := detected, prefixed("assumed: ", assumed)
	for _, i := range imported {
		settings = scaffold.Merge(settings, i.Settings)
		comments = append(comments, "taken over from "+i.File+": "+strings.Join(keysOf(i.Settings), ", "))
	}
	files := scaffold.Files(forge, at, scaffold.Starter(settings, comments))
	if o.staged {
		files = scaffold.Staged(at, scaffold.Starter(settings, comments))
	}
	if o.check {
		files = append(files, scaffold.File{Path: scaffold.GitHubDoctor, Data: templates.GitHubDoctor})
	}
	results, err := scaffold.Apply(top, files)
	if err != nil {
		return err
	}
	for _, r := range results {
		tellFile(env, r)
	}
	for _, a := range assumed {
		fmt.Fprintf(env.Stdout, "assumed  %s\n", a)
	}
	for _, i := range imported {
		for _, s := range i.Settings {
			fmt.Fprintf(env.Stdout, "taken    %s → %s: %s\n", s.From, s.Key, s.Value)
		}
		for _, l := range i.Left {
			fmt.Fprintf(env.Stdout, "left     %s\n", l)
		}
	}
	fmt.Fprint(env.Stdout, nextSteps(forge, results[0].Path, keysOf(settings)))
	if o.staged {
		fmt.Fprint(env.Stdout, stagedSteps)
	}
	return nil
}

func tellFile(env Env, r scaffold.Result) {
	switch r.State {
	case scaffold.Written:
		fmt.Fprintf(env.Stdout, "written  %s\n", r.Path)
	case scaffold.Same:
		fmt.Fprintf(env.Stdout, "kept     %s (nothing to change)\n", r.Path)
	default:
		fmt.Fprintf(env.Stdout, "kept     %s (it exists; init never overwrites)\n", r.Path)
		if r.Ask != "" {
			fmt.Fprintf(env.Stdout, "to do    %s: %s\n", r.Path, r.Ask)
		} else {
			fmt.Fprintf(env.Stdout, "what init would change, for git apply:\n\n%s\n", r.Diff)
		}
	}
}

// chooseForge says which CI this repository has, and how that is known.
func chooseForge(env Env, top, asked string) (scaffold.Forge, string, error) {
	switch asked {
	case "github", "gitlab":
		return scaffold.Forge(asked), "asked for by --ci", nil
	case "":
	default:
		return "", "", fmt.Errorf("--ci is %q. Next: write --ci github or --ci gitlab", asked)
	}
	if url, err := originURL(top); err == nil {
		if a, err := parseOrigin(url); err == nil {
			switch {
			case sameHostname(a.host, serverOf(env, "github")):
				return scaffold.GitHub, "the remote origin is on " + a.host, nil
			case sameHostname(a.host, serverOf(env, "gitlab")), strings.Contains(strings.ToLower(a.host), "gitlab"):
				return scaffold.GitLab, "the remote origin is on " + a.host, nil
			case strings.Contains(strings.ToLower(a.host), "github"):
				return scaffold.GitHub, "the remote origin is on " + a.host, nil
			}
		}
	}
	exists := func(p string) bool { _, err := os.Lstat(filepath.Join(top, p)); return err == nil }
	switch hub, lab := exists(".github"), exists(".gitlab-ci.yml") || exists(".gitlab"); {
	case lab && !hub:
		return scaffold.GitLab, "the repository has GitLab's files", nil
	case hub && !lab:
		return scaffold.GitHub, "the repository has a folder .github", nil
	}
	return scaffold.GitHub, "assumed: neither the remote origin nor the files say; --ci gitlab for the other", nil
}

// sameHostname compares without ports: a remote by SSH has another one than the server's pages.
func sameHostname(a, b string) bool {
	name := func(s string) string { h, _, _ := strings.Cut(s, ":"); return h }
	return a != "" && strings.EqualFold(name(a), name(b))
}

func prefixed(with string, lines []string) (out []string) {
	for _, l := range lines {
		out = append(out, with+l)
	}
	return out
}

func keysOf(settings []scaffold.Setting) (out []string) {
	for _, s := range settings {
		out = append(out, s.Key)
	}
	return out
}

func nextSteps(forge scaffold.Forge, configPath string, keys []string) string {
	if forge == scaffold.GitLab {
		return fmt.Sprintf(gitlabSteps, firstStep(configPath, keys))
	}
	return fmt.Sprintf(githubSteps, firstStep(configPath, keys))
}

// firstStep is what only a person can say of the gates, by the keys that init could fill in.
func firstStep(configPath string, keys []string) string {
	switch {
	case !slices.Contains(keys, "gates.iteration"):
		return "Write the command that tests this repository into gates.iteration of " + configPath + ": without one nothing can be proved."
	case !slices.Contains(keys, "gates.acceptance.run"):
		return "Read " + configPath + "; add a held-out acceptance gate if you have tests the agent should not see."
	}
	return "Read " + configPath + ": are these the commands that test this repository, and the files that the agent should not see?"
}

const githubSteps = `
Next:
  1. %s
  2. Add the secret ANTHROPIC_API_KEY (Settings → Secrets and variables → Actions), and allow Actions to create pull
     requests (Settings → Actions → General → Workflow permissions).
  3. Commit the files to the default branch and push. proctor doctor says what is still missing; then label an issue "proctor".
`

const stagedSteps = `
The workflow splits a run into jobs. Settings → Environments → New environment: make "proctor-publish" and name its required reviewers; without
them whatever the verify job proved is published at once. Give the jobs agent and verify the same toolchain steps.
`

const gitlabSteps = `
Next:
  1. %s
     The job's image holds git, no toolchain and no vendor's CLI: give the include the input image with one of yours that does
     (docs/image.md builds one with Claude Code and Codex).
  2. Make a project access token, not a personal one (Settings → Access tokens: role Developer, scopes api and write_repository), and add it as the
     masked, protected variable PROCTOR_GITLAB_TOKEN, and the model's key as PROCTOR_ANTHROPIC_API_KEY (Settings → CI/CD → Variables).
     In the same place let Developers use pipeline variables.
  3. Commit the files to the default branch and push. proctor doctor says what is still missing. Start a run with Build →
     Pipelines → New pipeline and the variable PROCTOR_ISSUE, or let the webhook do it at the label "proctor".

Jobs of yours that have no rules run in that pipeline too; to keep one out, give it the rule:
    rules: [{if: $PROCTOR_ISSUE || $PROCTOR_GOAL || $PROCTOR_DOCTOR, when: never}, {when: on_success}]

With a mirror of proctor on your own GitLab, this stands for .gitlab/ci/proctor.yml (ref is a released tag of the mirror):
    include:
      - project: my-group/proctor
        ref: v0.1.0
        file: /templates/proctor.yml
        inputs: {max-cost-usd: "2"}
`
