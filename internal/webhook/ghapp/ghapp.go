// Package ghapp owns a GitHub App's credentials: its key, and installation tokens for one repository with
// the least permissions. It must never print a key or a token, nor send one to another host.
package ghapp

import (
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bradleyfalzon/ghinstallation/v2"
	"github.com/golang-jwt/jwt/v4"
	"github.com/google/go-github/v66/github"

	"github.com/proctor-ci/proctor/internal/forge"
)

// Config is an App at one GitHub.
type Config struct {
	// BaseURL of the REST API: https://api.github.com when empty; https://HOST/api/v3 on Enterprise Server.
	BaseURL string
	AppID   int64
	// Key is the App's, or Sign signs with it where it is kept: a SHA-256 digest, by RSASSA-PKCS1-v1_5. One of them is set.
	Key  *rsa.PrivateKey
	Sign func(ctx context.Context, digest []byte) ([]byte, error)
	// Transport carries every request, http.DefaultTransport when nil.
	Transport http.RoundTripper
	Now       func() time.Time
}

// App makes clients. It is safe for concurrent use.
type App struct {
	cfg  Config
	base *url.URL

	mu      sync.Mutex
	clients map[target]*ghinstallation.Transport

	signing sync.Mutex
	said    string    // the App's own token, as it was signed last
	until   time.Time // its end
}

type target struct {
	install     int64
	owner, repo string
	pulls       bool // to read pull requests, and nothing else
}

// maxClients bounds the token cache; a full one is emptied, which costs a token request each.
const maxClients = 1000

// ErrNotInstalled is an installation that is gone, suspended, or does not hold the repository.
var ErrNotInstalled = errors.New("the App is not installed in this repository")

// New checks the configuration. It sends nothing.
func New(c Config) (*App, error) {
	if c.AppID <= 0 {
		return nil, errors.New("the App's id is missing: it stands on the App's settings page")
	}
	switch {
	case c.Key == nil && c.Sign == nil:
		return nil, errors.New("the App's private key is missing: make one on the App's settings page")
	case c.Key != nil && c.Sign != nil:
		return nil, errors.New("the App's private key is given and kept elsewhere, too: give one of them")
	case c.Sign == nil:
		c.Sign = func(_ context.Context, digest []byte) ([]byte, error) {
			return rsa.SignPKCS1v15(nil, c.Key, crypto.SHA256, digest)
		}
	}
	if c.BaseURL == "" {
		c.BaseURL = "https://api.github.com"
	}
	base, err := url.Parse(strings.TrimRight(c.BaseURL, "/"))
	if err != nil || base.Host == "" || base.Scheme != "https" && base.Scheme != "http" {
		return nil, errors.New("the API address is no URL: write https://HOST/api/v3 for Enterprise Server")
	}
	if c.Transport == nil {
		c.Transport = http.DefaultTransport
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &App{cfg: c, base: base, clients: map[target]*ghinstallation.Transport{}}, nil
}

// Client gives an HTTP client whose requests carry a token of the installation, limited to the one
// repository and to what a webhook needs: read its metadata, write issues, start workflows. The token is
// asked for now, so that a missing installation is ErrNotInstalled here and no odd failure later.
func (a *App) Client(ctx context.Context, install int64, owner, repo string) (*http.Client, error) {
	return a.client(ctx, target{install: install, owner: owner, repo: repo})
}

// PullsClient is Client for reading pull requests, and nothing else: an App may do without that permission.
func (a *App) PullsClient(ctx context.Context, install int64, owner, repo string) (*http.Client, error) {
	return a.client(ctx, target{install: install, owner: owner, repo: repo, pulls: true})
}

func (a *App) client(ctx context.Context, t target) (*http.Client, error) {
	if t.install <= 0 {
		return nil, ErrNotInstalled
	}
	tr, err := a.transport(t)
	if err != nil {
		return nil, err
	}
	if _, err := tr.Token(ctx); err != nil {
		return nil, tokenError(err)
	}
	return &http.Client{Transport: hostGuard{a.base, tr}}, nil
}

func (a *App) transport(t target) (*ghinstallation.Transport, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if tr := a.clients[t]; tr != nil {
		return tr, nil
	}
	rights := &github.InstallationPermissions{Metadata: github.String("read"), Issues: github.String("write"), Actions: github.String("write")}
	if t.pulls {
		rights = &github.InstallationPermissions{Metadata: github.String("read"), PullRequests: github.String("read")}
	}
	tr, err := a.installed(t.install, &github.InstallationTokenOptions{Repositories: []string{t.repo}, Permissions: rights})
	if err != nil {
		return nil, err
	}
	if len(a.clients) >= maxClients {
		clear(a.clients)
	}
	a.clients[t] = tr
	return tr, nil
}

// installed has an apps transport of its own: refreshing writes to it, under the installation's lock alone.
func (a *App) installed(install int64, o *github.InstallationTokenOptions) (*ghinstallation.Transport, error) {
	apps, err := a.itself()
	if err != nil {
		return nil, err
	}
	tr := ghinstallation.NewFromAppsTransport(apps, install)
	tr.BaseURL = a.base.String()
	tr.InstallationTokenOptions = o
	return tr, nil
}

// itself sends requests as the App.
func (a *App) itself() (*ghinstallation.AppsTransport, error) {
	apps, err := ghinstallation.NewAppsTransportWithOptions(asApp{a}, a.cfg.AppID, ghinstallation.WithSigner(later{}))
	if err != nil {
		return nil, err
	}
	apps.BaseURL = a.base.String()
	return apps, nil
}

// RunToken makes a token for a run: for the one repository of that id, to write its contents, issues and pull requests and to read how its
// CI went. It is not kept here; it ends by itself within the hour, or when the run revokes it.
func (a *App) RunToken(ctx context.Context, install, repository int64) (string, time.Time, error) {
	if install <= 0 || repository <= 0 {
		return "", time.Time{}, ErrNotInstalled
	}
	tr, err := a.installed(install, &github.InstallationTokenOptions{
		RepositoryIDs: []int64{repository},
		Permissions: &github.InstallationPermissions{
			Metadata: github.String("read"), Contents: github.String("write"), Issues: github.String("write"), PullRequests: github.String("write"),
			Actions: github.String("read"),
		},
	})
	if err != nil {
		return "", time.Time{}, err
	}
	token, err := tr.Token(ctx)
	if err != nil {
		return "", time.Time{}, tokenError(err)
	}
	expires, _, err := tr.Expiry()
	return token, expires, err
}

// Forget drops what is cached for an installation, after it was deleted or suspended.
func (a *App) Forget(install int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for t := range a.clients {
		if t.install == install {
			delete(a.clients, t)
		}
	}
}

// tokenError sorts a refused token request by what a person can do about it.
func tokenError(err error) error {
	var se *signError
	if errors.As(err, &se) {
		return se
	}
	var he *ghinstallation.HTTPError
	if !errors.As(err, &he) || he.Response == nil {
		return &forge.Error{Op: "ask for an installation token", Kind: forge.ErrUnavailable}
	}
	gone := outside(he.Response)
	e := &forge.Error{Op: "ask for an installation token", Status: he.Response.StatusCode, Kind: forge.ErrUnavailable}
	switch he.Response.StatusCode {
	case http.StatusUnauthorized:
		e.Kind, e.Next = forge.ErrUnauthorized, "check that GITHUB_APP_ID and the private key belong to one App, and the machine's clock"
	case http.StatusForbidden, http.StatusNotFound:
		return fmt.Errorf("%w (HTTP %d)", ErrNotInstalled, he.Response.StatusCode)
	case http.StatusUnprocessableEntity:
		if gone {
			return fmt.Errorf("%w (HTTP %d)", ErrNotInstalled, he.Response.StatusCode)
		}
		e.Kind, e.Next = forge.ErrForbidden, "give the App the permissions Issues: read and write, Actions: read and write, Pull requests: read, for the token exchange also Contents and Pull requests: read and write, and approve them in the repository"
	case http.StatusTooManyRequests:
		e.Kind = forge.ErrRateLimited
	}
	return e
}

// maxRefusal bounds what is read of a refusal.
const maxRefusal = 4 << 10

// outside: GitHub refuses a token for a repository that the installation does not hold, or not any more, with the same status as one for
// permissions that it does not have, and tells them apart in words. It closes the answer.
func outside(resp *http.Response) bool {
	if resp.Body == nil {
		return false
	}
	defer func() { _ = resp.Body.Close() }() // it was read; nothing hangs on it
	var said struct{ Message string }
	err := json.NewDecoder(io.LimitReader(resp.Body, maxRefusal)).Decode(&said)
	return err == nil && strings.Contains(said.Message, "not accessible to the parent installation")
}

// The App's own token is dated a minute back, against clocks that run ahead, and ends below the ten minutes that GitHub allows. One is used
// until half of its time is over: a key that is kept elsewhere costs a call for each signature.
// https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app/generating-a-json-web-token-jwt-for-a-github-app
const (
	jwtBack = time.Minute
	jwtLife = 8 * time.Minute
)

// signed gives the App's own token, which is good for some minutes.
func (a *App) signed(ctx context.Context) (string, error) {
	a.signing.Lock()
	defer a.signing.Unlock()
	now := a.cfg.Now().Truncate(time.Second)
	if left := a.until.Sub(now); left > jwtLife/2 && left <= jwtLife {
		return a.said, nil
	}
	text, err := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.RegisteredClaims{
		Issuer: strconv.FormatInt(a.cfg.AppID, 10), IssuedAt: jwt.NewNumericDate(now.Add(-jwtBack)), ExpiresAt: jwt.NewNumericDate(now.Add(jwtLife)),
	}).SigningString()
	if err != nil {
		return "", &signError{err}
	}
	digest := sha256.Sum256([]byte(text))
	sig, err := a.cfg.Sign(ctx, digest[:])
	if err != nil {
		return "", &signError{err}
	}
	a.said, a.until = text+"."+base64.RawURLEncoding.EncodeToString(sig), now.Add(jwtLife)
	return a.said, nil
}

// signError is a request that was not sent, since the key could not be used.
type signError struct{ err error }

func (e *signError) Error() string { return "sign as the App: " + e.err.Error() }
func (e *signError) Unwrap() error { return e.err }

// later stands in for ghinstallation's signer, whose interface knows no context and loses what an error wraps: asApp puts the token where
// it left unsigned.
type later struct{}

const unsigned = "to-be-signed"

func (later) Sign(jwt.Claims) (string, error) { return unsigned, nil }

// asApp signs those requests that go out as the App, as they go out: work on an installation's token that is still good needs no signature.
type asApp struct{ app *App }

func (t asApp) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Authorization") != "Bearer "+unsigned {
		return t.app.cfg.Transport.RoundTrip(r)
	}
	token, err := t.app.signed(r.Context())
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // a transport closes it, sent or not
		}
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	return t.app.cfg.Transport.RoundTrip(r)
}

// hostGuard lets a token go to the API's own host only, redirects included.
type hostGuard struct {
	base *url.URL
	next http.RoundTripper
}

func (g hostGuard) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host != g.base.Host || r.URL.Scheme != g.base.Scheme {
		return nil, fmt.Errorf("refused to send a token to %s: it is not the configured API", r.URL.Host)
	}
	return g.next.RoundTrip(r)
}
