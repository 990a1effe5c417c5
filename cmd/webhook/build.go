package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/forge/github"
	"github.com/proctor-ci/proctor/internal/forge/gitlab"
	"github.com/proctor-ci/proctor/internal/policy"
	"github.com/proctor-ci/proctor/internal/trigger"
	"github.com/proctor-ci/proctor/internal/webhook"
	"github.com/proctor-ci/proctor/internal/webhook/aws"
	"github.com/proctor-ci/proctor/internal/webhook/ghapp"
)

// forgeTime bounds one call to a forge: several have to fit into the time for an answer.
const forgeTime = 4 * time.Second

// Rates that people do not reach and automation that has gone astray does.
const (
	actorRate = 100
	repoRate  = 300
)

// build checks every setting and makes the handler. Each error names the variable and the fix. It
// sends nothing.
func build(e env, k keeping, log *slog.Logger) (*webhook.Handler, error) {
	c := webhook.Config{
		Options:  trigger.Options{Label: e.getenv("PROCTOR_LABEL"), Prefix: e.getenv("PROCTOR_COMMANDS"), Self: trigger.Actor{Login: e.getenv("PROCTOR_SELF")}},
		Workflow: e.getenv("PROCTOR_WORKFLOW"), Branches: e.getenv("PROCTOR_BRANCHES"), Repos: e.list("PROCTOR_REPOS"), Store: k.store, Queue: k.queue, Log: log,
	}
	var err error
	if c.GitHubSecrets, err = e.secrets("PROCTOR_WEBHOOK_SECRET", "PROCTOR_WEBHOOK_SECRET_PREVIOUS"); err != nil {
		return nil, err
	}
	if c.GitLabTokens, err = e.secrets("PROCTOR_GITLAB_WEBHOOK_TOKEN", "PROCTOR_GITLAB_WEBHOOK_TOKEN_PREVIOUS"); err != nil {
		return nil, err
	}
	if c.GitLabSigning, err = e.secrets("PROCTOR_GITLAB_SIGNING_TOKEN"); err != nil {
		return nil, err
	}
	gitlabHooks := len(c.GitLabTokens)+len(c.GitLabSigning) > 0
	if len(c.GitHubSecrets) == 0 && !gitlabHooks {
		return nil, errors.New("no webhook secret is set: set PROCTOR_WEBHOOK_SECRET (GitHub) or PROCTOR_GITLAB_WEBHOOK_TOKEN to what you entered at the forge; `openssl rand -hex 32` makes one")
	}
	if c.Rules, err = rules(e); err != nil {
		return nil, err
	}
	if c.Rates.Actor, err = e.rate("PROCTOR_ACTOR_PER_HOUR", actorRate); err != nil {
		return nil, err
	}
	if c.Rates.Repo, err = e.rate("PROCTOR_REPO_PER_HOUR", repoRate); err != nil {
		return nil, err
	}
	if c.Checks, err = e.flag("PROCTOR_CHECK_FAILURES"); err != nil {
		return nil, err
	}
	var door doors
	var app *ghapp.App
	if len(c.GitHubSecrets) > 0 {
		if door.github, door.pulls, app, err = githubDoor(e); err != nil {
			return nil, err
		}
		if app != nil {
			c.Attempts = app
		}
	}
	if gitlabHooks {
		if door.gitlab, err = gitlabDoor(e); err != nil {
			return nil, err
		}
	}
	if c.Exchange, err = exchange(e, app); err != nil {
		return nil, err
	}
	c.Connect, c.Pulls = door.connect, door.counter
	return webhook.New(c)
}

func rules(e env) (policy.Rules, error) {
	roles, err := e.roles()
	if err != nil {
		return policy.Rules{}, err
	}
	bots, err := e.bots()
	return policy.Rules{Roles: roles, Bots: bots}, err
}

// doors are the forges that are configured; nil for the other.
type doors struct {
	github, gitlab connector
	pulls          connector // github's, to read pull requests
}

type connector = func(ctx context.Context, to webhook.Target) (webhook.Forge, error)

func (d doors) connect(ctx context.Context, to webhook.Target) (webhook.Forge, error) {
	switch {
	case to.Forge == trigger.GitHub && d.github != nil:
		return d.github(ctx, to)
	case to.Forge == trigger.GitLab && d.gitlab != nil:
		return d.gitlab(ctx, to)
	}
	return nil, webhook.ErrNoInstallation
}

// counter is connect for counting pull requests: an App's token for that is another one.
func (d doors) counter(ctx context.Context, to webhook.Target) (forge.PullCounter, error) {
	if to.Forge == trigger.GitHub && d.pulls != nil {
		d.github = d.pulls
	}
	f, err := d.connect(ctx, to)
	if err != nil {
		return nil, err
	}
	return f.(forge.PullCounter), nil // both forges' clients are
}

func githubDoor(e env) (door, pulls connector, app *ghapp.App, err error) {
	base := e.getenv("GITHUB_API_URL")
	if _, err := github.New(github.Config{BaseURL: base, Owner: "owner", Repo: "name"}); err != nil {
		return nil, nil, nil, fmt.Errorf("GITHUB_API_URL: %w", err)
	}
	id, err := e.appID()
	if err != nil {
		return nil, nil, nil, err
	}
	token, err := e.secret("GITHUB_TOKEN")
	if err != nil {
		return nil, nil, nil, err
	}
	switch {
	case id != 0:
		return appDoor(e, base, id)
	case token != "":
		door = func(_ context.Context, to webhook.Target) (webhook.Forge, error) {
			return github.New(github.Config{BaseURL: base, Owner: to.Repo.Owner, Repo: to.Repo.Name, Token: token, HTTP: &http.Client{Timeout: forgeTime}})
		}
		return door, door, nil, nil
	}
	return nil, nil, nil, errors.New("nothing may start runs on GitHub: set GITHUB_APP_ID and GITHUB_APP_PRIVATE_KEY, or GITHUB_TOKEN")
}

func appDoor(e env, base string, id int64) (door, pulls connector, app *ghapp.App, err error) {
	c := ghapp.Config{BaseURL: base, AppID: id}
	if err := privateKey(e, &c); err != nil {
		return nil, nil, nil, err
	}
	if app, err = ghapp.New(c); err != nil {
		return nil, nil, nil, err
	}
	by := func(get func(ctx context.Context, install int64, owner, repo string) (*http.Client, error)) connector {
		return func(ctx context.Context, to webhook.Target) (webhook.Forge, error) {
			client, err := get(ctx, to.Install, to.Repo.Owner, to.Repo.Name)
			if errors.Is(err, ghapp.ErrNotInstalled) {
				app.Forget(to.Install)
				return nil, webhook.ErrNoInstallation
			}
			if err != nil {
				return nil, err
			}
			client.Timeout = forgeTime
			return github.New(github.Config{BaseURL: base, Owner: to.Repo.Owner, Repo: to.Repo.Name, HTTP: client})
		}
	}
	return by(app.Client), by(app.PullsClient), app, nil
}

// privateKey finds the App's private key: in the environment, a file, a parameter, or in KMS.
func privateKey(e env, c *ghapp.Config) error {
	raw, err := e.secret("GITHUB_APP_PRIVATE_KEY")
	kept := strings.TrimSpace(e.getenv("GITHUB_APP_KMS_KEY"))
	switch {
	case err != nil:
		return err
	case raw != "" && kept != "":
		return errors.New("GITHUB_APP_PRIVATE_KEY and GITHUB_APP_KMS_KEY are both set: unset the first, and destroy that copy of the key")
	case kept != "":
		client, err := awsClient(e)
		if err != nil {
			return fmt.Errorf("GITHUB_APP_KMS_KEY: %w", err)
		}
		s, err := aws.NewSigner(client, kept)
		if err != nil {
			return fmt.Errorf("GITHUB_APP_KMS_KEY: %w", err)
		}
		c.Sign = s.Sign
		return nil
	case raw == "":
		return errors.New("GITHUB_APP_ID is set and GITHUB_APP_PRIVATE_KEY is not: set it, GITHUB_APP_PRIVATE_KEY_FILE to the .pem file's path, or GITHUB_APP_KMS_KEY")
	}
	if c.Key, err = ghapp.ParseKey([]byte(raw)); err != nil {
		return fmt.Errorf("GITHUB_APP_PRIVATE_KEY: %w", err)
	}
	return nil
}

func gitlabDoor(e env) (connector, error) {
	server := e.getenv("GITLAB_URL")
	token, err := e.secret("GITLAB_TOKEN")
	if err != nil {
		return nil, err
	}
	if token == "" {
		return nil, errors.New("nothing may start pipelines on GitLab: set GITLAB_TOKEN to a project or group access token with the api scope and the role Developer")
	}
	trig, err := e.secret("GITLAB_TRIGGER_TOKEN")
	if err != nil {
		return nil, err
	}
	open := func(project string) (*gitlab.Client, error) {
		return gitlab.New(gitlab.Config{ServerURL: server, Project: project, Token: token, TriggerToken: trig, HTTP: &http.Client{Timeout: forgeTime}})
	}
	if _, err := open("group/name"); err != nil {
		return nil, fmt.Errorf("GITLAB_URL: %w", err)
	}
	return func(_ context.Context, to webhook.Target) (webhook.Forge, error) { return open(to.Repo.FullName()) }, nil
}
