package app

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/proctor-ci/proctor/internal/config"
	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge/github"
	"github.com/proctor-ci/proctor/internal/money"
	"github.com/proctor-ci/proctor/internal/trigger"
)

// localOptions are the flags of `proctor run`.
type localOptions struct {
	issue               int
	goal, repo, reports string
	heldDir             string
	agent, model, cost  string
	ticks               int
	duration            time.Duration
	dryRun              bool
}

func runCommand(env Env, code *int) *cobra.Command {
	var o localOptions
	c := &cobra.Command{
		Use:   "run (--issue N | --goal TEXT)",
		Short: "Work on an issue or a goal from this checkout",
		Long: `Run takes the same path as a CI job: gates and policy come from the commit that is checked out, the agent works in
a directory of its own, and what is pushed was proved in a pristine checkout. Uncommitted changes play no part.

With --issue it needs GITHUB_TOKEN (or GH_TOKEN) and opens a draft pull request. With --goal nothing leaves this machine:
a proved commit becomes the local branch proctor/goal-…, and what a stopped run had come to becomes
proctor/goal-…-unproved. No branch is ever moved: where a name is taken, a number follows it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			req, err := localRequest(env, o)
			if err != nil {
				return err
			}
			view := newAccount(env.Stdout, env.Terminal, env.Now)
			req.watch, req.speak = view.Event, func(s string) { view.say("%s", s) }
			stop := spinning(view)
			rec := run(cmd.Context(), env, req)
			stop()
			fmt.Fprint(env.Stdout, "\n", evidence.Plain(rec, req.reports))
			*code = rec.ExitCode
			return nil
		},
	}
	f := c.Flags()
	f.IntVar(&o.issue, "issue", 0, "number of the issue")
	f.StringVar(&o.goal, "goal", "", "what to do, in words, without an issue")
	f.StringVar(&o.repo, "repo", "", "owner/name on GitHub (default: from the remote origin)")
	f.StringVar(&o.reports, "report", "", "directory of the record and the report (default: below the user's state directory)")
	f.StringVar(&o.agent, "agent", "", "agent instead of the configured one")
	f.StringVar(&o.model, "model", "", "model instead of the configured one")
	f.StringVar(&o.cost, "max-cost", "", "lower ceiling in dollars")
	f.IntVar(&o.ticks, "max-ticks", 0, "lower ceiling for ticks")
	f.DurationVar(&o.duration, "max-duration", 0, "lower ceiling for time")
	f.StringVar(&o.heldDir, "acceptance-dir", "", "directory with held-out files, where gates.acceptance.dir is input")
	f.BoolVar(&o.dryRun, "dry-run", false, "check everything up to the first paid call; spend and push nothing")
	return c
}

// spinning moves the last line of a live account until the returned function is called.
func spinning(a *account) func() {
	t := time.NewTicker(100 * time.Millisecond)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() { defer close(done); a.Spin(t.C, stop) }()
	return func() { t.Stop(); close(stop); <-done }
}

func localRequest(env Env, o localOptions) (request, error) {
	switch goal := strings.TrimSpace(o.goal) != ""; {
	case o.issue == 0 && !goal:
		return request{}, errors.New("nothing says what to work on. Next: give --issue N or --goal \"what to do\"")
	case o.issue != 0 && goal:
		return request{}, errors.New("--issue and --goal are both given, and a run works on one. Next: leave one out")
	}
	top, err := checkoutOf(env.Dir)
	if err != nil {
		return request{}, err
	}
	token := first(env.Getenv("GITHUB_TOKEN"), env.Getenv("GH_TOKEN"))
	key := modelKey(env.Getenv("ANTHROPIC_API_KEY"), env.Getenv("CLAUDE_CODE_OAUTH_TOKEN"))
	other := openAI(env.Getenv("OPENAI_API_KEY"), env.Getenv("OPENAI_BASE_URL"))
	google := gemini(env.Getenv("GEMINI_API_KEY"), env.Getenv("GOOGLE_GEMINI_BASE_URL"))
	req := request{
		checkout: top, scratch: os.TempDir(), reports: o.reports, toolPath: env.Getenv("PATH"), home: env.Getenv("HOME"), dryRun: o.dryRun, local: true,
		heldDir: first(o.heldDir, env.Getenv("PROCTOR_ACCEPTANCE_DIR")), builder: env.Getenv("PROCTOR_DOCKER_HOST"),
		key: key, modelAt: first(env.Getenv("ANTHROPIC_BASE_URL"), defaultModelAt), openAI: other, gemini: google, secrets: held(env, token, key.Value, other.Key.Value, google.Key.Value),
		override: config.Override{From: "flag", Operator: true, Agent: o.agent, Model: o.model, MaxTicks: o.ticks, MaxDuration: o.duration},
	}
	if o.cost != "" {
		if req.override.MaxCost, err = money.Parse(o.cost); err != nil {
			return request{}, fmt.Errorf("flag --max-cost: %w", err)
		}
	}
	if req.reports == "" {
		// Two runs may begin in the same second.
		runs := filepath.Join(stateDir(env), "runs")
		if err := os.MkdirAll(runs, 0o755); err != nil {
			return request{}, fmt.Errorf("make the directory of reports: %w. Next: give --report DIR", err)
		}
		if req.reports, err = os.MkdirTemp(runs, env.Now().UTC().Format("20060102-150405-")); err != nil {
			return request{}, fmt.Errorf("make the directory of reports: %w. Next: give --report DIR", err)
		}
	}
	actor := trigger.Actor{Login: first(env.Getenv("USER"), "you")}
	if o.issue == 0 {
		req.parse = func(config.Config) (trigger.Trigger, error) { return trigger.FromGoal(o.goal, actor) }
		return req, nil
	}
	return forIssue(env, req, o, token, actor)
}

func forIssue(env Env, req request, o localOptions, token string, actor trigger.Actor) (request, error) {
	if token == "" {
		return req, errors.New("--issue needs a token for GitHub. Next: export GITHUB_TOKEN=$(gh auth token), or use --goal to stay on this machine")
	}
	full := o.repo
	if full == "" {
		var err error
		if full, err = originOf(req.checkout); err != nil {
			return req, err
		}
	}
	owner, name, ok := cutLast(full)
	if !ok {
		return req, fmt.Errorf("--repo %q: want owner/name", full)
	}
	f, err := github.New(github.Config{BaseURL: env.Getenv("GITHUB_API_URL"), ServerURL: env.Getenv("GITHUB_SERVER_URL"), Owner: owner, Repo: name, Token: token, Now: env.Now, Sleep: env.Sleep})
	if err != nil {
		return req, err
	}
	req.forge = f
	req.parse = func(config.Config) (trigger.Trigger, error) {
		return trigger.FromIssue(trigger.GitHub, trigger.Repo{Owner: owner, Name: name}, o.issue, actor)
	}
	return req, nil
}

// checkoutOf is the work tree that holds dir, found without asking git: its configuration is not ours to run.
func checkoutOf(dir string) (string, error) {
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Lstat(filepath.Join(d, ".git")); err == nil {
			return d, nil
		}
		if d == filepath.Dir(d) {
			return "", fmt.Errorf("%s is not in a git work tree. Next: cd into the repository to work on", dir)
		}
	}
}

// originOf reads "owner/name" from the address of the remote origin. Only the text of .git/config is looked at.
func originOf(top string) (string, error) {
	address, err := originURL(top)
	if err != nil {
		return "", err
	}
	return repoOf(address)
}

// repoOf takes "owner/name" out of https://host/owner/name.git or git@host:owner/name.git.
func repoOf(address string) (string, error) {
	path := ""
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		path = u.Path
	} else if _, after, ok := strings.Cut(address, ":"); ok {
		path = after
	}
	path = strings.TrimSuffix(strings.Trim(path, "/"), ".git")
	if strings.Count(path, "/") != 1 {
		return "", errors.New("the remote origin is no repository on GitHub. Next: give --repo owner/name")
	}
	return path, nil
}

func stateDir(env Env) string {
	if d := env.Getenv("XDG_STATE_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "proctor")
	}
	if h := env.Getenv("HOME"); h != "" {
		return filepath.Join(h, ".local", "state", "proctor")
	}
	return filepath.Join(os.TempDir(), "proctor")
}
