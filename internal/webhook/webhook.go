// Package webhook owns the path from a forge's delivery to one dispatched run: verify, read, authorise,
// claim, dispatch. It must never parse a byte before its signature holds, run a loop itself, or put
// internal text, a payload or a secret into an answer or a log line.
package webhook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/proctor-ci/proctor/internal/clock"
	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/policy"
	"github.com/proctor-ci/proctor/internal/trigger"
)

// Forge is what the handler asks of one repository. Where the value also is a forge.RunFinder, an
// ambiguous dispatch is looked up before it is tried again; a forge.Reactor, commands get a
// reaction; a Commenter, help and a missing workflow are told on the issue.
type Forge interface {
	Role(ctx context.Context, login string) (forge.Role, error)
	Issue(ctx context.Context, number int) (forge.Issue, error)
	LabelEvent(ctx context.Context, number int, label string) (forge.LabelEvent, error)
	forge.Dispatcher
}

// Commenter answers on an issue or pull request.
type Commenter interface {
	CreateComment(ctx context.Context, number int, body string) (forge.Comment, error)
}

// Target says which repository, and as whom, to connect to.
type Target struct {
	Forge   trigger.Forge
	Repo    trigger.Repo
	Install int64 // GitHub App installation, 0 when the delivery came from a plain repository webhook
}

// ErrNoInstallation is what Connect answers where there is no token to be had: a plain repository
// webhook of a repository the App is not installed in, or a suspended or deleted installation.
var ErrNoInstallation = errors.New("the app is not installed in this repository")

// Config is what New needs. Zero limits take the defaults named beside them.
type Config struct {
	// GitHubSecrets verify X-Hub-Signature-256; several during a rotation.
	GitHubSecrets []string
	// GitLabTokens are compared with X-Gitlab-Token.
	GitLabTokens []string
	// GitLabSigning are Standard Webhooks keys ("whsec_…") for webhook-signature.
	GitLabSigning []string

	Options trigger.Options
	Rules   policy.Rules
	// Repos are globs over "owner/name"; empty lets every repository in that the signature covers.
	Repos []string
	// Branches is how branches of ours begin, "proctor/" when empty: what stands in front of the number in publish.branch.
	Branches string
	// Workflow is the file to dispatch, "proctor.yml" when empty.
	Workflow string
	// Checks lets CI that failed on a branch of ours ask for a round; what the repository's configuration says of it, the run finds out.
	Checks bool
	// Paths are where deliveries arrive, as suffixes of the request's path: a gateway puts its stage in
	// front. Empty means "/", "/github", "/gitlab" and "/webhook".
	Paths []string

	Connect func(ctx context.Context, to Target) (Forge, error)
	// Pulls counts a repository's open pull requests, for requests that wait for room; with nil they are started by ends alone.
	Pulls func(ctx context.Context, to Target) (forge.PullCounter, error)
	Store Store
	// Queue keeps verified deliveries for Work. With nil a delivery is dealt with before it is answered.
	Queue Queue
	// Attempts lists what the forge sent here, for Sweep; nil where there is no such list.
	Attempts Attempts
	// Exchange gives runs their tokens; with nil there is no such path.
	Exchange *Exchange
	Log      *slog.Logger
	Now      func() time.Time
	// Wait pauses between looks at a label event that the API does not show yet; time.Sleep with a
	// context when nil.
	Wait func(ctx context.Context, d time.Duration) error

	MaxBody int64         // 25 MB, GitHub's own cap
	Timeout time.Duration // 8 s: GitHub gives up at 10
	Leases  Leases
	Rates   Rates
}

// Rates are how many runs may be asked for in an hour by the clock; 0 is any number.
type Rates struct {
	Actor int // by one account, in all repositories
	Repo  int // in one repository, by whomever
}

// Leases are how long a claim may stay in one state before the reaper looks at it.
type Leases struct {
	Claimed    time.Duration // 1 minute: well above Timeout
	Dispatched time.Duration // 30 minutes: queues of busy runners included
	Running    time.Duration // 7 hours: above the longest hosted job
	Ended      time.Duration // 4 days: redelivery is possible for three
}

// Secrets shorter than this can be guessed: a GitHub secret offline by whoever sees one signature, a
// GitLab token only by asking us.
const (
	minSecret = 16
	minToken  = 10
)

// Handler is the http.Handler. It is safe for concurrent use.
type Handler struct {
	cfg     Config
	repos   policy.Globs
	signing [][]byte

	gaveUp sync.Map // delivery → time of its last attempt: what this process knows to have been told
}

// New checks the configuration. An error names the setting and what to do.
func New(c Config) (*Handler, error) {
	if len(c.GitHubSecrets)+len(c.GitLabTokens)+len(c.GitLabSigning) == 0 {
		return nil, errors.New("no webhook secret is set: give the one you entered at the forge, so that deliveries can be verified")
	}
	for _, s := range c.GitHubSecrets {
		if err := checkSecret("the GitHub webhook secret", s, minSecret); err != nil {
			return nil, err
		}
	}
	for _, s := range c.GitLabTokens {
		if err := checkSecret("the GitLab secret token", s, minToken); err != nil {
			return nil, err
		}
	}
	h := &Handler{cfg: c.withDefaults()}
	for _, s := range c.GitLabSigning {
		key, err := signingKey(s)
		if err != nil {
			return nil, err
		}
		h.signing = append(h.signing, key)
	}
	if c.Connect == nil || c.Store == nil {
		return nil, errors.New("webhook: Connect and Store are required")
	}
	repos, err := policy.Compile(c.Repos, true)
	if err != nil {
		return nil, fmt.Errorf("list of repositories: %w: write owner/name or owner/*", err)
	}
	h.repos = repos
	return h, nil
}

func checkSecret(what, s string, least int) error {
	switch {
	case strings.TrimSpace(s) == "":
		return fmt.Errorf("%s is empty: set the value you entered at the forge, or leave the setting out", what)
	case strings.TrimSpace(s) != s:
		return fmt.Errorf("%s begins or ends with white space, which was most likely pasted along: remove it here and at the forge", what)
	case len(s) < least:
		return fmt.Errorf("%s has %d bytes and needs at least %d: make one with `openssl rand -hex 32` and set it here and at the forge", what, len(s), least)
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.Options.Label == "" {
		c.Options.Label = trigger.DefaultLabel
	}
	if c.Options.Prefix == "" {
		c.Options.Prefix = trigger.DefaultPrefix
	}
	if c.Rules.Label == "" {
		c.Rules.Label = c.Options.Label
	}
	if c.Rules.Self == (trigger.Actor{}) {
		c.Rules.Self = c.Options.Self
	}
	if c.Rules.Roles == nil {
		c.Rules.Roles = policy.DefaultRoles()
	}
	if c.Branches == "" {
		c.Branches = "proctor/"
	}
	if c.Workflow == "" {
		c.Workflow = "proctor.yml"
	}
	if c.Paths == nil {
		c.Paths = []string{"/", "/github", "/gitlab", "/webhook"}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Wait == nil {
		c.Wait = clock.Sleep
	}
	if c.MaxBody == 0 {
		c.MaxBody = 25 << 20
	}
	c.Timeout = orElse(c.Timeout, 8*time.Second)
	c.Leases.Claimed = orElse(c.Leases.Claimed, time.Minute)
	c.Leases.Dispatched = orElse(c.Leases.Dispatched, 30*time.Minute)
	c.Leases.Running = orElse(c.Leases.Running, 7*time.Hour)
	c.Leases.Ended = orElse(c.Leases.Ended, 96*time.Hour)
	return c
}

func orElse(d, def time.Duration) time.Duration {
	if d <= 0 {
		return def
	}
	return d
}
