package app

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/forge/github"
	"github.com/proctor-ci/proctor/internal/forge/gitlab"
)

// address is a repository on a forge, and maybe one of its pull requests.
type address struct {
	host    string // with its port
	project string // "octo/shop", "group/sub/shop"
	number  int    // 0: none
}

// pullPath takes project and number out of the page of a pull or merge request.
var pullPath = regexp.MustCompile(`^/((?:[^/]+/)+[^/]+?)(?:/pull/|/-/merge_requests/)([1-9][0-9]{0,8})(?:/.*)?$`)

func parsePullURL(raw string) (address, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return address{}, fmt.Errorf("%q is no address", raw)
	}
	m := pullPath.FindStringSubmatch(u.Path)
	if m == nil {
		return address{}, fmt.Errorf("%s names no pull request. Next: give an address such as https://github.com/octo/shop/pull/12 or https://gitlab.com/group/shop/-/merge_requests/12", raw)
	}
	n, err := strconv.Atoi(m[2])
	return address{host: u.Host, project: m[1], number: n}, err
}

// parseOrigin reads host and project from https://host/owner/name.git, ssh://git@host/owner/name or git@host:owner/name.git.
func parseOrigin(raw string) (address, error) {
	a := address{}
	if u, err := url.Parse(raw); err == nil && u.Host != "" {
		a.host, a.project = u.Host, u.Path
		if u.Scheme == "ssh" {
			a.host = u.Hostname() // the port is SSH's
		}
	} else if at, path, ok := strings.Cut(raw, ":"); ok {
		a.host, a.project = at[strings.LastIndexByte(at, '@')+1:], path
	}
	a.project = strings.TrimSuffix(strings.Trim(a.project, "/"), ".git")
	if a.host == "" || !strings.Contains(a.project, "/") {
		return a, errors.New("the remote origin is no repository on a forge. Next: give --repo owner/name, or the address of the pull request")
	}
	return a, nil
}

// originURL is the text of remote.origin.url. Nothing of the checkout's configuration takes effect.
func originURL(top string) (string, error) {
	b, err := os.ReadFile(filepath.Join(top, ".git", "config"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("read .git/config: %w. Next: give --repo owner/name", err)
	}
	in := false
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			in = line == `[remote "origin"]`
			continue
		}
		if k, v, ok := strings.Cut(line, "="); in && ok && strings.TrimSpace(k) == "url" {
			return strings.TrimSpace(v), nil
		}
	}
	return "", errors.New("this checkout has no remote origin. Next: give --repo owner/name")
}

// forgeAt makes the client of the forge that a is on. A token only ever goes to the host that the environment
// names for it: an address that somebody pasted cannot send it elsewhere.
func forgeAt(env Env, a address) (forge.Forge, error) {
	hub := cmp.Or(env.Getenv("GITHUB_SERVER_URL"), "https://github.com")
	lab := cmp.Or(env.Getenv("CI_SERVER_URL"), env.Getenv("GITLAB_URL"), "https://gitlab.com")
	switch {
	case sameHost(a.host, hub):
		owner, name, ok := cutLast(a.project)
		if !ok || strings.Contains(owner, "/") {
			return nil, fmt.Errorf("%q is no repository on GitHub: want owner/name", a.project)
		}
		token := first(env.Getenv("GITHUB_TOKEN"), env.Getenv("GH_TOKEN"))
		return github.New(github.Config{BaseURL: env.Getenv("GITHUB_API_URL"), ServerURL: hub, Owner: owner, Repo: name, Token: token, HTTP: &http.Client{Timeout: time.Minute}, Now: env.Now, Sleep: env.Sleep})
	case sameHost(a.host, lab):
		token := first(env.Getenv("PROCTOR_GITLAB_TOKEN"), env.Getenv("GITLAB_TOKEN"))
		return gitlab.New(gitlab.Config{ServerURL: lab, Project: a.project, Token: token, Now: env.Now, Sleep: env.Sleep})
	}
	return nil, fmt.Errorf("%s is neither the GitHub (%s) nor the GitLab (%s) that this environment names, so no token goes there. Next: export GITHUB_SERVER_URL and GITHUB_API_URL, or CI_SERVER_URL, for that host", a.host, hub, lab)
}

func sameHost(host, server string) bool {
	u, err := url.Parse(server)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, host)
}

// serverOf is the host that the environment names for a kind of forge.
func serverOf(env Env, kind string) string {
	server := cmp.Or(env.Getenv("GITHUB_SERVER_URL"), "https://github.com")
	if kind == "gitlab" {
		server = cmp.Or(env.Getenv("CI_SERVER_URL"), env.Getenv("GITLAB_URL"), "https://gitlab.com")
	}
	u, err := url.Parse(server)
	if err != nil {
		return ""
	}
	return u.Host
}
