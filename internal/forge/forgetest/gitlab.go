package forgetest

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// GitLabOptions of a test GitLab. Only Dir is required.
type GitLabOptions struct {
	// Dir holds the bare repository; it is created and left behind.
	Dir string
	// Project is the full path, "group/sub/shop".
	Project       string
	Files         fs.FS
	DefaultBranch string
	Public        bool
	Clock         func() time.Time
}

// GitLab is one project on a GitLab of its own. Its issues and merge requests count apart, as iids do.
type GitLab struct {
	*site
	opt GitLabOptions

	// What follows is guarded by site's lock.
	archived  bool
	mergesOff bool
	protected []string // refs that take no push
	set       GitLabSettings
	tokens    map[string]*GitLabToken
	trigger   string
	labels    []*label
	merges    map[int]*issue
	secret    map[int]bool // confidential issues
	pipelines []*Pipeline
	hook      *glHook
	sent      []*Delivery
}

// GitLabToken is what a caller may do.
type GitLabToken struct {
	Login   string
	Scopes  []string // "api", "read_api", "write_repository", …; nil is api and write_repository
	Job     bool     // CI_JOB_TOKEN
	Expires time.Time
	revoked bool
}

// NewGitLab makes the project and starts listening on loopback. Close it when done.
func NewGitLab(o GitLabOptions) (*GitLab, error) {
	if o.Dir == "" {
		return nil, errors.New("test forge: GitLabOptions.Dir is empty: name a folder for its repository")
	}
	o.Project, o.DefaultBranch = or(o.Project, "group/sub/shop"), or(o.DefaultBranch, "main")
	i := strings.LastIndexByte(o.Project, '/')
	if i < 0 {
		return nil, fmt.Errorf("test forge: project %q: want GROUP/NAME", o.Project)
	}
	at, err := newSite(o.Dir, o.Project[:i], o.Project[i+1:], o.DefaultBranch, o.Files, o.Clock)
	if err != nil {
		return nil, err
	}
	at.nextID, at.ghost = 7000, account{login: "ghost1", kind: "User", id: 1}
	g := &GitLab{
		site: at, opt: o, tokens: map[string]*GitLabToken{}, merges: map[int]*issue{}, secret: map[int]bool{},
	}
	if err := g.start(g.handler()); err != nil {
		return nil, err
	}
	return g, nil
}

// URL is the instance; there is no trailing slash.
func (g *GitLab) URL() string { return g.url }

// Project is the full path.
func (g *GitLab) Project() string { return g.opt.Project }

// Protect refuses pushes to these branches.
func (g *GitLab) Protect(branches ...string) {
	g.state.Lock()
	defer g.state.Unlock()
	for _, b := range branches {
		g.protected = append(g.protected, "refs/heads/"+b)
	}
}

// Archive makes the project read-only.
func (g *GitLab) Archive() {
	g.state.Lock()
	defer g.state.Unlock()
	g.archived = true
}

// DisableMergeRequests turns the feature off.
func (g *GitLab) DisableMergeRequests() {
	g.state.Lock()
	defer g.state.Unlock()
	g.mergesOff = true
}

// GitLabSettings are what the project's owner chose. The zero value is as a project of this forge begins.
type GitLabSettings struct {
	IssuesOff, MergesOff, CIOff bool
	// VariablesRole is who may give a pipeline variables: "developer" (the default here), "maintainer", "owner", "no_one_allowed".
	VariablesRole string
	ConfigPath    string
	// Protected maps a pattern to the least role that may push: "developer", "maintainer" or "" for nobody. nil protects the default
	// branch for maintainers. They are told and, unlike Protect's, not enforced.
	Protected map[string]string
	// PushRules are as the API has them; nil is a plan without.
	PushRules map[string]any
	Variables []GitLabVariable
}

// GitLabVariable is one of the project's CI/CD variables.
type GitLabVariable struct {
	Key, Environment  string
	Masked, Protected bool
}

// Set replaces the settings.
func (g *GitLab) Set(s GitLabSettings) {
	g.state.Lock()
	defer g.state.Unlock()
	g.set, g.mergesOff = s, s.MergesOff
}

// accessLevel in GitLab's numbers.
func accessLevel(role string) int {
	return map[string]int{"guest": 10, "reporter": 20, "developer": 30, "maintainer": 40, "owner": 50}[role]
}

// NewToken registers a token and gives its value.
func (g *GitLab) NewToken(t GitLabToken) string {
	value := "gl" + "pat-" + secret(12)
	if t.Job {
		value = "glcb" + "t-" + secret(12)
	}
	if t.Scopes == nil {
		t.Scopes = []string{"api", "write_repository"}
	}
	g.state.Lock()
	defer g.state.Unlock()
	g.tokens[value] = &t
	return value
}

// Revoke ends a token.
func (g *GitLab) Revoke(value string) {
	g.state.Lock()
	defer g.state.Unlock()
	if t := g.tokens[value]; t != nil {
		t.revoked = true
	}
}

// NewTriggerToken makes the project's pipeline trigger token.
func (g *GitLab) NewTriggerToken() string {
	g.state.Lock()
	defer g.state.Unlock()
	g.trigger = "gl" + "ptt-" + secret(10)
	return g.trigger
}

func (g *GitLab) webURL() string { return g.url + "/" + g.opt.Project }

func (t *GitLabToken) has(scope string) bool { return slices.Contains(t.Scopes, scope) }
