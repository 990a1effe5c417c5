// Package gitlab is the forge.Forge for GitLab.com and self-managed GitLab, over go-gitlab.
// It must never let a go-gitlab type out, and its token never leaves the configured host.
package gitlab

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/xanzy/go-gitlab"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/forge/wire"
)

// Limits as GitLab documents them, in characters.
const (
	maxNote        = 1000000
	maxDescription = 1048576
	maxTitle       = 255
	perPage        = 100
	draftPrefix    = "Draft: "
)

const publicServer = "https://gitlab.com"

// Config binds a Client to one project.
type Config struct {
	// ServerURL is the instance: "" means gitlab.com; self-managed is https://HOST or https://HOST/PATH.
	ServerURL string
	// Project is its full path, "group/subgroup/name".
	Project string
	// Token is a project, group or personal access token with the api scope. JobToken says that it is
	// CI_JOB_TOKEN instead, which can read little and write nothing.
	Token    string
	JobToken bool
	// Lent says that Token is one of LendToken's: each has a bot user of its own, so that what earlier runs wrote is another account's.
	Lent bool
	// TriggerToken starts pipelines without an access token; "" starts them with Token.
	TriggerToken string
	HTTP         *http.Client
	// Now, Sleep and Log may be nil: wall clock, timer, no log.
	Now   func() time.Time
	Sleep func(context.Context, time.Duration) error
	Log   *slog.Logger
}

// Client is one project as one token sees it. It is safe for concurrent use.
type Client struct {
	api     *gitlab.Client
	retry   wire.Retry
	now     func() time.Time
	server  *url.URL
	project string
	token   string
	trigger string
	job     bool
	lent    bool
}

var (
	_ forge.Forge         = (*Client)(nil)
	_ forge.Dispatcher    = (*Client)(nil)
	_ forge.Reactor       = (*Client)(nil)
	_ forge.Requester     = (*Client)(nil)
	_ forge.RunFinder     = (*Client)(nil)
	_ forge.RunReader     = (*Client)(nil)
	_ forge.PushExplainer = (*Client)(nil)
)

// noLimiter: waiting is decided by wire.Retry.
type noLimiter struct{}

func (noLimiter) Wait(context.Context) error { return nil }

// New checks c and makes a Client. It sends nothing.
func New(c Config) (*Client, error) {
	if !strings.Contains(c.Project, "/") || strings.ContainsAny(c.Project, "?#% ") {
		return nil, fmt.Errorf("gitlab project %q: want its full path GROUP/NAME; set CI_PROJECT_PATH or --repo", c.Project)
	}
	if c.ServerURL == "" {
		c.ServerURL = publicServer
	}
	server, err := url.Parse(strings.TrimSuffix(strings.TrimRight(c.ServerURL, "/"), "/api/v4"))
	if err != nil || server.Host == "" || server.User != nil || (server.Scheme != "https" && server.Scheme != "http") {
		return nil, errors.New("gitlab server address: want https://HOST without credentials (CI_SERVER_URL)")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	header := "PRIVATE-TOKEN"
	if c.JobToken {
		header = "JOB-TOKEN"
	}
	httpClient := wire.Client(c.HTTP, server, func(h http.Header) {
		h.Del("PRIVATE-TOKEN") // the library sets an empty one
		if c.Token != "" {
			h.Set(header, c.Token)
		}
	})
	api, err := gitlab.NewClient("", gitlab.WithBaseURL(server.String()), gitlab.WithHTTPClient(httpClient),
		gitlab.WithoutRetries(), gitlab.WithCustomRetryMax(0), gitlab.WithCustomLimiter(noLimiter{}))
	if err != nil {
		return nil, fmt.Errorf("gitlab client: %w", err)
	}
	api.UserAgent = "proctor"
	return &Client{
		api: api, retry: wire.NewRetry(c.Now, c.Sleep, c.Log), now: c.Now, server: server,
		project: c.Project, token: c.Token, trigger: c.TriggerToken, job: c.JobToken, lent: c.Lent,
	}, nil
}

// Name is "gitlab", self-managed included.
func (c *Client) Name() string { return "gitlab" }

// Limits of this forge.
func (c *Client) Limits() forge.Limits {
	return forge.Limits{CommentBody: maxNote, PullRequestBody: maxDescription}
}

// Remote for git. A job token has a user name of its own.
func (c *Client) Remote() forge.Remote {
	user := "oauth2"
	if c.job {
		user = "gitlab-ci-token"
	}
	return forge.Remote{URL: c.web() + ".git", Username: user, Token: c.token}
}

func (c *Client) web() string { return c.server.JoinPath(c.project).String() }

func (c *Client) in(what string) string { return what + " in " + c.project }

// call is one operation with its retries.
type call struct {
	what    string
	safety  wire.Safety // wire.Repeatable unless said otherwise
	missing string      // next step of a 404
	// Named in next steps where they are set.
	head, base string
}

// do runs f with retries. go-gitlab turns every 404 into one error without the answer, so the response
// goes beside it.
func (c *Client) do(ctx context.Context, k call, f func(attempt int, opt gitlab.RequestOptionFunc) (*gitlab.Response, error)) error {
	return c.retry.Call(ctx, k.what, k.safety, func(ctx context.Context, attempt int) (*http.Response, error) {
		resp, err := f(attempt, gitlab.WithContext(ctx))
		var e *gitlab.ErrorResponse
		switch {
		case errors.As(err, &e) && e.Response != nil:
			return e.Response, err
		case resp != nil:
			return resp.Response, err
		}
		return nil, err
	}, func(last *wire.Failure) error { return c.explain(k, last) })
}

// every reads all pages of a list.
func every[T any](ctx context.Context, c *Client, k call, list func(page gitlab.ListOptions, opt gitlab.RequestOptionFunc) ([]T, *gitlab.Response, error)) ([]T, error) {
	var out []T
	for page := 1; page != 0; {
		var part []T
		next := 0
		err := c.do(ctx, k, func(_ int, opt gitlab.RequestOptionFunc) (*gitlab.Response, error) {
			var resp *gitlab.Response
			var err error
			part, resp, err = list(gitlab.ListOptions{Page: page, PerPage: perPage}, opt)
			if err == nil {
				next = resp.NextPage
			}
			return resp, err
		})
		if err != nil {
			return nil, err
		}
		out, page = append(out, part...), next
	}
	return out, nil
}
