package ghapp

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/google/go-github/v66/github"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/webhook"
)

// maxPages bounds one look at the log: 20 calls of the App's 5,000 an hour.
const maxPages = 20

// Attempts implements webhook.Attempts as the App itself, which alone may read its log.
func (a *App) Attempts(ctx context.Context, since time.Time) ([]webhook.Attempt, bool, error) {
	api, err := a.api()
	if err != nil {
		return nil, false, err
	}
	var all []webhook.Attempt
	opt := &github.ListCursorOptions{PerPage: 100}
	for range maxPages {
		page, resp, err := api.Apps.ListHookDeliveries(ctx, opt)
		if err != nil {
			return nil, false, logError(resp, err)
		}
		for _, d := range page {
			if d.GetDeliveredAt().Before(since) {
				return all, true, nil
			}
			all = append(all, webhook.Attempt{
				ID: d.GetID(), Delivery: d.GetGUID(), Event: d.GetEvent(), At: d.GetDeliveredAt().Time, Delivered: d.GetStatusCode()/100 == 2,
			})
		}
		if resp.Cursor == "" {
			return all, true, nil
		}
		opt.Cursor = resp.Cursor
	}
	return all, false, nil
}

// Redeliver implements webhook.Attempts. GitHub answers 202: it will be tried.
func (a *App) Redeliver(ctx context.Context, id int64) error {
	api, err := a.api()
	if err != nil {
		return err
	}
	if _, resp, err := api.Apps.RedeliverHookDelivery(ctx, id); err != nil && (resp == nil || resp.StatusCode != http.StatusAccepted) {
		return logError(resp, err)
	}
	return nil
}

func (a *App) api() (*github.Client, error) {
	apps, err := a.itself()
	if err != nil {
		return nil, err
	}
	client := github.NewClient(&http.Client{Transport: hostGuard{a.base, apps}, Timeout: 10 * time.Second})
	client.BaseURL = a.base.JoinPath("/")
	return client, nil
}

// logError keeps the URL out, and says what a person can do.
func logError(resp *github.Response, err error) error {
	var se *signError
	if errors.As(err, &se) {
		return se
	}
	e := &forge.Error{Op: "read the App's log of deliveries", Kind: forge.ErrUnavailable}
	if resp == nil {
		return e
	}
	e.Status = resp.StatusCode
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		e.Kind, e.Next = forge.ErrUnauthorized, "check that GITHUB_APP_ID and the private key belong to one App, and the machine's clock"
	case http.StatusNotFound:
		e.Kind, e.Next = forge.ErrNotFound, "set the webhook up at the App, not at a repository: only an App's own deliveries are listed"
	case http.StatusForbidden, http.StatusTooManyRequests:
		e.Kind = forge.ErrRateLimited
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		e.Kind = forge.ErrInvalid
	}
	return e
}
