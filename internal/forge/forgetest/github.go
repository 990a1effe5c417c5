package forgetest

import (
	"crypto/ed25519"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"
)

// Options of a test GitHub. Only Dir is required.
type Options struct {
	// Dir holds the bare repository; it is created and left behind.
	Dir string
	// Owner and Name of the repository, "octo" and "shop".
	Owner, Name string
	// Files are the first commit of DefaultBranch ("main"); nil leaves the repository empty.
	Files         fs.FS
	DefaultBranch string
	Private       bool
	// Enterprise serves and reports the API below /api/v3, as Enterprise Server does. (Both prefixes answer either way.)
	Enterprise bool
	// WorkflowTriggers starts workflows by their `issues:` trigger too; workflow_dispatch always works.
	WorkflowTriggers bool
	// Installation is put into webhook payloads; 0 leaves it out, as a repository's own webhook does.
	Installation int64
	Clock        func() time.Time
}

// GitHub is one repository on a GitHub of its own. All methods are safe for concurrent use.
type GitHub struct {
	*site
	opt   Options
	app   *app
	since time.Time

	// What follows is guarded by site's lock. Settings of the repository.
	archived, actionsPRs, draftsOff, issuesOff bool
	actionsOff                                 bool
	allowedActions                             string
	rules                                      []branchRule
	secretNames                                []string
	protected                                  []string
	maxBlob                                    int64
	signingOff                                 bool
	signingKey                                 ed25519.PrivateKey
	oldNames                                   []string
	beside                                     map[string]bool // further repositories, true: private
	// Content.
	nextNumber int64
	tokens     map[string]*Token
	manifests  map[string]appManifest // by code
	identities map[string]*Run        // by the token that a job asks for its identity with
	labels     []*label
	runs       []*Run
	disabled   map[string]bool
	runNumber  map[string]int
	queued     chan struct{}
	hook       *hook
	deliveries []*Delivery
	attempts   []attempt
}

// NewGitHub makes the repository and starts listening on loopback. Close it when done.
func NewGitHub(o Options) (*GitHub, error) {
	if o.Dir == "" {
		return nil, fmt.Errorf("test forge: Options.Dir is empty: name a folder for its repository")
	}
	o.Owner, o.Name, o.DefaultBranch = or(o.Owner, "octo"), or(o.Name, "shop"), or(o.DefaultBranch, "main")
	at, err := newSite(o.Dir, o.Owner, o.Name, o.DefaultBranch, o.Files, o.Clock)
	if err != nil {
		return nil, err
	}
	at.nextID, at.ghost = 1000, account{login: "ghost", kind: "User", id: 10137}
	g := &GitHub{
		site: at, opt: o, maxBlob: defaultMaxBlob, tokens: map[string]*Token{}, identities: map[string]*Run{}, manifests: map[string]appManifest{},
		disabled: map[string]bool{}, runNumber: map[string]int{}, queued: make(chan struct{}, 1),
		actionsPRs: true,
	}
	g.since = g.now()
	g.AddUser(o.Owner, "admin")
	g.addAccount("github-actions[bot]", "Bot", "").id = 41898282 // its real id
	if err := g.start(g.handler()); err != nil {
		return nil, err
	}
	return g, nil
}

func mustDir(dir string) string {
	os.MkdirAll(dir, 0o755) // MkdirTemp reports a failure
	return dir
}

func or(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

// URL is where people and git go; there is no trailing slash.
func (g *GitHub) URL() string { return g.url }

// APIURL is what a client takes as its base.
func (g *GitHub) APIURL() string { return g.url + g.prefix() }

func (g *GitHub) prefix() string {
	if g.opt.Enterprise {
		return "/api/v3"
	}
	return ""
}

// Owner of the repository.
func (g *GitHub) Owner() string { return g.opt.Owner }

// Repo is the repository's name, the newest after a rename.
func (g *GitHub) Repo() string {
	g.state.Lock()
	defer g.state.Unlock()
	return g.opt.Name
}

// Setting changes what the repository's owner can click.
type Setting func(*GitHub)

// ActionsMayOpenPullRequests is the check box of Settings → Actions. GitHub's default is off; here it starts on.
func ActionsMayOpenPullRequests(on bool) Setting { return func(g *GitHub) { g.actionsPRs = on } }

// Archived makes the repository read-only.
func Archived(on bool) Setting { return func(g *GitHub) { g.archived = on } }

// DraftsUnsupported is a private repository on a free plan.
func DraftsUnsupported(on bool) Setting { return func(g *GitHub) { g.draftsOff = on } }

// IssuesDisabled turns the Issues feature off.
func IssuesDisabled(on bool) Setting { return func(g *GitHub) { g.issuesOff = on } }

// Protected refuses pushes to these branches.
func Protected(branches ...string) Setting {
	return func(g *GitHub) {
		g.protected = nil
		for _, b := range branches {
			g.protected = append(g.protected, "refs/heads/"+b)
		}
	}
}

// MaxBlob is the largest file a push may hold, in bytes.
func MaxBlob(n int64) Setting { return func(g *GitHub) { g.maxBlob = n } }

// WorkflowDisabled turns one workflow file off.
func WorkflowDisabled(file string) Setting {
	return func(g *GitHub) { g.disabled[path.Base(file)] = true }
}

// WorkflowEnabled turns it on again.
func WorkflowEnabled(file string) Setting {
	return func(g *GitHub) { delete(g.disabled, path.Base(file)) }
}

// ActionsAllowed is the choice of Settings → Actions: "all", "selected", "local_only", or "" for none.
func ActionsAllowed(which string) Setting {
	return func(g *GitHub) { g.actionsOff, g.allowedActions = which == "", which }
}

// Ruleset puts a rule on the branches that pattern covers, as path.Match does; an empty kind takes all away.
func Ruleset(kind, pattern string) Setting {
	return func(g *GitHub) {
		if g.rules = append(g.rules, branchRule{kind, pattern}); kind == "" {
			g.rules = nil
		}
	}
}

// SecretNames are those of the repository's Actions secrets.
func SecretNames(names ...string) Setting { return func(g *GitHub) { g.secretNames = names } }

// Renamed gives the repository a new name; the old one redirects, as GitHub's does.
func Renamed(name string) Setting {
	return func(g *GitHub) {
		g.oldNames = append(g.oldNames, g.opt.Name)
		g.opt.Name = name
	}
}

// Set applies settings.
func (g *GitHub) Set(settings ...Setting) {
	g.state.Lock()
	defer g.state.Unlock()
	for _, s := range settings {
		s(g)
	}
}

func (g *GitHub) fullName() string { return g.opt.Owner + "/" + g.opt.Name }

func (g *GitHub) isThis(owner, name string) (this, old bool) {
	if !strings.EqualFold(owner, g.opt.Owner) {
		return false, false
	}
	for _, n := range g.oldNames {
		if strings.EqualFold(n, name) && !strings.EqualFold(name, g.opt.Name) {
			return false, true
		}
	}
	return strings.EqualFold(name, g.opt.Name), false
}
