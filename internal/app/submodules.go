package app

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/git"
)

// enterSubmodules fetches what workspace.submodules asks for, before the work trees are made.
func (s *session) enterSubmodules(ctx context.Context) error {
	if !s.cfg.Workspace.Submodules {
		return nil
	}
	subs, err := s.store.Submodules(ctx)
	if err != nil {
		return usage(fmt.Errorf("workspace.submodules: %w", err))
	}
	for _, sub := range subs {
		remote, err := submoduleRemote(s.remote, sub.URL)
		if err != nil {
			return usage(fmt.Errorf("%s: workspace.submodules: %q in .gitmodules of the base commit: %w. Next: mend it on the default branch, or take workspace.submodules out", s.configName(), sub.Path, err))
		}
		nested, err := s.store.Enter(ctx, sub, remote)
		if err != nil {
			return &ended{
				terminal: evidence.GateBroken, reason: fmt.Sprintf("submodule %s at %s cannot be fetched: %s", sub.Path, short(string(sub.Commit)), err), err: err,
				next: "check that the commit exists there and that the run's token may read it; a repository on another host has to be public. Nothing was spent",
			}
		}
		if nested {
			s.note("the submodules of submodule " + sub.Path + " stay empty")
		}
	}
	return nil
}

// scpAddress is git@host:owner/name.git.
var scpAddress = regexp.MustCompile(`^[A-Za-z0-9._-]+@([A-Za-z0-9.-]+):([^:]+)$`)

// submoduleRemote is where a submodule is fetched from. A relative address is meant from the run's own repository; one
// that names this forge by SSH is fetched over the run's own way. The token goes to the forge's scheme, host and port and
// nowhere else: other hosts are asked over https, as a stranger. All else is refused, whatever git would make of it.
func submoduleRemote(own git.Remote, address string) (git.Remote, error) {
	home, err := url.Parse(own.URL)
	if err != nil {
		return git.Remote{}, errors.New("the address of the run's own repository cannot be parsed")
	}
	to, err := submoduleURL(home, address)
	if err != nil {
		return git.Remote{}, err
	}
	if to.Path != path.Clean(to.Path) || strings.ContainsAny(to.Path, "\\%:") || strings.Count(to.Path, "/") < 2 || strings.Contains(to.Path, "/-") {
		return git.Remote{}, fmt.Errorf("%q is no address of a repository: want https://host/owner/name.git, or a relative one such as ../name.git", address)
	}
	if to.Scheme == home.Scheme && strings.EqualFold(to.Host, home.Host) && home.Host != "" {
		return git.Remote{URL: to.String(), Username: own.Username, Token: own.Token}, nil
	}
	if to.Scheme != "https" {
		return git.Remote{}, fmt.Errorf("%q is not fetched: want https, or an address on the run's own forge", address)
	}
	return git.Remote{URL: to.String()}, nil
}

func submoduleURL(home *url.URL, address string) (*url.URL, error) {
	switch {
	case address == "":
		return nil, errors.New("it has no url")
	case strings.HasPrefix(address, "-"), strings.Contains(address, "::"), strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return nil, fmt.Errorf("%q is no address of a repository", address)
	case strings.HasPrefix(address, "./"), strings.HasPrefix(address, "../"):
		if home.Host == "" {
			return nil, fmt.Errorf("%q is relative, and this run has no forge that it could be relative to", address)
		}
		// path.Join would stop at the top and name another owner's repository.
		depth := strings.Count(home.Path, "/")
		for part := range strings.SplitSeq(address, "/") {
			if part == ".." {
				depth--
			}
		}
		if depth < 0 {
			return nil, fmt.Errorf("%q leads above the forge", address)
		}
		return &url.URL{Scheme: home.Scheme, Host: home.Host, Path: path.Join(home.Path, address)}, nil
	}
	if m := scpAddress.FindStringSubmatch(address); m != nil {
		return overSSH(home, m[1], "/"+m[2], address)
	}
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "":
		return nil, fmt.Errorf("%q is no address of a repository", address)
	case u.Scheme == "ssh":
		return overSSH(home, u.Hostname(), u.Path, address)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.RawPath != "":
		return nil, fmt.Errorf("the address on %s holds credentials, a query, a fragment or an escape", u.Host)
	}
	return u, nil
}

// overSSH rewrites an SSH address on the run's forge: the run has a token and no key.
func overSSH(home *url.URL, host, path, address string) (*url.URL, error) {
	if home.Hostname() == "" || !strings.EqualFold(host, home.Hostname()) {
		return nil, fmt.Errorf("%q is not fetched: a run has no SSH key, so another host needs https", address)
	}
	return &url.URL{Scheme: home.Scheme, Host: home.Host, Path: path}, nil
}
