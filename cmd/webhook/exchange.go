package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/proctor-ci/proctor/internal/forge/gitlab"
	"github.com/proctor-ci/proctor/internal/trigger"
	"github.com/proctor-ci/proctor/internal/webhook"
	"github.com/proctor-ci/proctor/internal/webhook/ghapp"
	"github.com/proctor-ci/proctor/internal/webhook/oidc"
)

// exchange is how runs get tokens of their own; nil where no audience is set. app is nil where there is none.
func exchange(e env, app *ghapp.App) (*webhook.Exchange, error) {
	audience, issuer := e.getenv("PROCTOR_TOKEN_AUDIENCE"), e.getenv("PROCTOR_OIDC_ISSUER")
	lender, err := e.secret("GITLAB_LENDER_TOKEN")
	switch {
	case err != nil:
		return nil, err
	case audience == "" && issuer+e.getenv("PROCTOR_TOKEN_ENVIRONMENT")+lender != "":
		return nil, errors.New("PROCTOR_OIDC_ISSUER, PROCTOR_TOKEN_ENVIRONMENT or GITLAB_LENDER_TOKEN is set and PROCTOR_TOKEN_AUDIENCE is not: set it to this webhook's address, or unset them")
	case audience == "":
		return nil, nil
	case app == nil && lender == "":
		return nil, errors.New("PROCTOR_TOKEN_AUDIENCE is set and there is nobody whose tokens could be given: set GITHUB_APP_ID and GITHUB_APP_PRIVATE_KEY, or GITLAB_LENDER_TOKEN, or unset it")
	case app != nil && issuer == "" && e.getenv("GITHUB_API_URL") != "":
		return nil, errors.New("PROCTOR_TOKEN_AUDIENCE and GITHUB_API_URL are set and PROCTOR_OIDC_ISSUER is not: set it to https://HOST/_services/token")
	}
	x := &webhook.Exchange{Environment: e.getenv("PROCTOR_TOKEN_ENVIRONMENT")}
	var verify oidc.Any
	mints := map[trigger.Forge]mint{}
	add := func(issuer string) error {
		v, err := oidc.New(oidc.Config{Issuer: issuer, Audience: audience})
		verify = append(verify, v)
		return err
	}
	if app != nil {
		if err := add(cmp.Or(issuer, oidc.GitHub)); err != nil {
			return nil, fmt.Errorf("PROCTOR_OIDC_ISSUER, PROCTOR_TOKEN_AUDIENCE: %w", err)
		}
		mints[trigger.GitHub] = ofApp(app)
	}
	if lender != "" {
		x.GitLab = strings.TrimSuffix(strings.TrimRight(cmp.Or(e.getenv("GITLAB_URL"), "https://gitlab.com"), "/"), "/api/v4")
		if err := add(x.GitLab); err != nil {
			return nil, fmt.Errorf("GITLAB_URL, PROCTOR_TOKEN_AUDIENCE: %w", err)
		}
		mints[trigger.GitLab] = ofProject(x.GitLab, lender)
	}
	x.Verify = verify.Verify
	x.Mint = func(ctx context.Context, to webhook.Target, _ webhook.Purpose) (string, time.Time, error) {
		m := mints[to.Forge]
		if m == nil {
			return "", time.Time{}, webhook.ErrNoInstallation
		}
		return m(ctx, to)
	}
	return x, nil
}

type mint func(ctx context.Context, to webhook.Target) (string, time.Time, error)

func ofApp(app *ghapp.App) mint {
	return func(ctx context.Context, to webhook.Target) (string, time.Time, error) {
		token, expires, err := app.RunToken(ctx, to.Install, to.Repo.ID)
		if errors.Is(err, ghapp.ErrNotInstalled) {
			return "", time.Time{}, webhook.ErrNoInstallation
		}
		return token, expires, err
	}
}

// ofProject makes tokens of the project's own, with one that may make them and is used for nothing else.
func ofProject(server, lender string) mint {
	return func(ctx context.Context, to webhook.Target) (string, time.Time, error) {
		c, err := gitlab.New(gitlab.Config{ServerURL: server, Project: to.Repo.FullName(), Token: lender, HTTP: &http.Client{Timeout: forgeTime}})
		if err != nil {
			return "", time.Time{}, err
		}
		return c.LendToken(ctx)
	}
}
