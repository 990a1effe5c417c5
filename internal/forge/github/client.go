// Package github is the forge.Forge for GitHub.com and GitHub Enterprise Server, over go-github.
// It must never let a go-github type out, and its token never leaves the configured host.
package github

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/google/go-github/v66/github"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/forge/wire"
)

// Limits as GitHub documents them, in characters.
const (
	maxBody       = 65536
	maxTitle      = 256
	maxInputs     = 25
	maxInputBytes = 65535
	perPage       = 100
)

const (
	publicAPI    = "https://api.github.com"
	publicServer = "https://github.com"
)

// Config binds a Client to one repository.
type Config struct {
	// BaseURL of the REST API: "" means api.github.com; GitHub Enterprise Server is https://HOST/api/v3.
	BaseURL string
	// ServerURL is where people and git go: "" is derived from BaseURL.
	ServerURL   string
	Owner, Repo string
	// Token is sent as a bearer token. "" leaves authentication to HTTP's own transport (an App's).
	Token string
	HTTP  *http.Client
	// Now, Sleep and Log may be nil: wall clock, timer, no log.
	Now   func() time.Time
	Sleep func(context.Context, time.Duration) error
	Log   *slog.Logger
}

// Client is one repository as one token sees it. It is safe for concurrent use.
type Client struct {
	api         *github.Client
	retry       wire.Retry
	owner, repo string
	now         func() time.Time
	server      *url.URL
	graphql     string
	token       string
	plain       *http.Client // for other hosts: it has no token

	mu     sync.Mutex
	labels map[string]bool // labels known to exist, so that each is looked up once
}

var (
	_ forge.Forge         = (*Client)(nil)
	_ forge.Dispatcher    = (*Client)(nil)
	_ forge.Reactor       = (*Client)(nil)
	_ forge.Requester     = (*Client)(nil)
	_ forge.RunFinder     = (*Client)(nil)
	_ forge.PushExplainer = (*Client)(nil)
)

// New checks c and makes a Client. It sends nothing.
func New(c Config) (*Client, error) {
	if !plainName(c.Owner) || !plainName(c.Repo) {
		return nil, fmt.Errorf("github repository %q: want OWNER/NAME; set GITHUB_REPOSITORY or --repo", c.Owner+"/"+c.Repo)
	}
	base, err := parseBase(c.BaseURL, publicAPI, "API")
	if err != nil {
		return nil, err
	}
	server, err := serverURL(c.ServerURL, base)
	if err != nil {
		return nil, err
	}
	httpClient := wire.Client(c.HTTP, base, authoriser(c.Token))
	api := github.NewClient(httpClient)
	api.BaseURL = base.JoinPath("/") // the library wants the slash
	api.UserAgent = "proctor"
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Client{
		plain: &http.Client{Timeout: time.Minute},
		api:   api, retry: wire.NewRetry(c.Now, c.Sleep, c.Log), now: c.Now, owner: c.Owner, repo: c.Repo,
		server: server, graphql: graphqlURL(base), token: c.Token, labels: map[string]bool{},
	}, nil
}

// plainName keeps names from becoming other paths of the API.
func plainName(s string) bool {
	return strings.Trim(s, ".") != "" && !strings.ContainsAny(s, "/\\?#% ")
}

// segment escapes one path segment; one of dots only would climb.
func segment(s string) string {
	if strings.Trim(s, ".") == "" {
		return strings.ReplaceAll(s, ".", "%2E")
	}
	return url.PathEscape(s)
}

func authoriser(token string) func(http.Header) {
	if token == "" {
		return nil
	}
	return func(h http.Header) { h.Set("Authorization", "Bearer "+token) }
}

func parseBase(raw, fallback, what string) (*url.URL, error) {
	if raw == "" {
		raw = fallback
	}
	u, err := url.Parse(strings.TrimRight(raw, "/"))
	if err != nil || u.Host == "" || u.User != nil || (u.Scheme != "https" && u.Scheme != "http") {
		return nil, fmt.Errorf("github %s address: want https://HOST/… without credentials, for Enterprise Server https://HOST/api/v3", what)
	}
	return u, nil
}

// serverURL of api.github.com is github.com; of Enterprise Server the API's host without its path; of
// data residency (api.NAME.ghe.com) the host without "api.".
func serverURL(raw string, base *url.URL) (*url.URL, error) {
	if raw != "" {
		return parseBase(raw, "", "server")
	}
	if base.String() == publicAPI {
		return url.Parse(publicServer)
	}
	return &url.URL{Scheme: base.Scheme, Host: strings.TrimPrefix(base.Host, "api.")}, nil
}

func graphqlURL(base *url.URL) string {
	u := *base
	u.Path = strings.TrimSuffix(u.Path, "/v3") + "/graphql"
	return u.String()
}

// Name is "github", Enterprise included.
func (c *Client) Name() string { return "github" }

// Limits of this forge.
func (c *Client) Limits() forge.Limits {
	return forge.Limits{CommentBody: maxBody, PullRequestBody: maxBody}
}

// Remote for git.
func (c *Client) Remote() forge.Remote {
	return forge.Remote{URL: c.web() + ".git", Username: "x-access-token", Token: c.token}
}

// web is the repository's page.
func (c *Client) web() string { return c.server.JoinPath(c.owner, c.repo).String() }

// call is one operation with its retries. The closure returns go-github's response and error.
type call struct {
	what  string // "create pull request in octo/shop"
	needs permission
	// safety is wire.Repeatable unless said otherwise.
	safety wire.Safety
	// missing is the next step for a 404, where the caller knows what is not there.
	missing string
	// Named in next steps where they are set.
	head, base, workflow string
}

func (c *Client) do(ctx context.Context, k call, f func(ctx context.Context, attempt int) (*github.Response, error)) error {
	return c.retry.Call(ctx, k.what, k.safety, func(ctx context.Context, attempt int) (*http.Response, error) {
		resp, err := f(ctx, attempt)
		var e *github.ErrorResponse
		switch {
		case errors.As(err, &e) && e.Response != nil:
			return e.Response, err
		case resp != nil:
			return resp.Response, err
		}
		return nil, err
	}, func(last *wire.Failure) error { return c.explain(k, last) })
}

// pages reads a list page by page until use, which gets each page, has seen enough of it. most bounds the pages, 0 for all there are.
func pages[T any](ctx context.Context, c *Client, k call, most int, list func(context.Context, github.ListOptions) ([]T, *github.Response, error), use func([]T) (enough bool)) error {
	for n, page := 1, 1; page != 0 && (most == 0 || n <= most); n++ {
		var part []T
		next := 0
		err := c.do(ctx, k, func(ctx context.Context, _ int) (resp *github.Response, err error) {
			part, resp, err = list(ctx, github.ListOptions{Page: page, PerPage: perPage})
			if err == nil {
				next = resp.NextPage
			}
			return resp, err
		})
		if err != nil || use(part) {
			return err
		}
		page = next
	}
	return nil
}

func (c *Client) in(what string) string { return what + " in " + c.owner + "/" + c.repo }
