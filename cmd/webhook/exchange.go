package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/proctor-ci/proctor/internal/webhook"
	"github.com/proctor-ci/proctor/internal/webhook/ghapp"
	"github.com/proctor-ci/proctor/internal/webhook/oidc"
)

// exchange is how runs get tokens of the App's; nil where no audience is set.
func exchange(e env, app *ghapp.App) (*webhook.Exchange, error) {
	audience, issuer := e.getenv("PROCTOR_TOKEN_AUDIENCE"), e.getenv("PROCTOR_OIDC_ISSUER")
	switch {
	case audience == "" && issuer+e.getenv("PROCTOR_TOKEN_ENVIRONMENT") != "":
		return nil, errors.New("PROCTOR_OIDC_ISSUER or PROCTOR_TOKEN_ENVIRONMENT is set and PROCTOR_TOKEN_AUDIENCE is not: set it to this webhook's address, or unset them")
	case audience == "":
		return nil, nil
	case app == nil:
		return nil, errors.New("PROCTOR_TOKEN_AUDIENCE is set and there is no App whose tokens could be given: set GITHUB_APP_ID and GITHUB_APP_PRIVATE_KEY, or unset it")
	case issuer == "" && e.getenv("GITHUB_API_URL") != "":
		return nil, errors.New("PROCTOR_TOKEN_AUDIENCE and GITHUB_API_URL are set and PROCTOR_OIDC_ISSUER is not: set it to https://HOST/_services/token")
	case issuer == "":
		issuer = oidc.GitHub
	}
	v, err := oidc.New(oidc.Config{Issuer: issuer, Audience: audience})
	if err != nil {
		return nil, fmt.Errorf("PROCTOR_OIDC_ISSUER, PROCTOR_TOKEN_AUDIENCE: %w", err)
	}
	mint := func(ctx context.Context, to webhook.Target, _ webhook.Purpose) (string, time.Time, error) {
		token, expires, err := app.RunToken(ctx, to.Install, to.Repo.ID)
		if errors.Is(err, ghapp.ErrNotInstalled) {
			return "", time.Time{}, webhook.ErrNoInstallation
		}
		return token, expires, err
	}
	return &webhook.Exchange{Verify: v.Verify, Mint: mint, Environment: e.getenv("PROCTOR_TOKEN_ENVIRONMENT")}, nil
}
