package git

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/proctor-ci/proctor/internal/secureurl"
)

// Remote is where git pushes and fetches. Token goes to URL's scheme, host and port only, in a header
// set through the environment of the one process: never on a command line, never on disk, never after
// a redirect.
type Remote struct {
	URL      string // http(s)://host[:port]/owner/name.git, or file:///absolute/path; no credentials in it
	Username string // empty with a token: x-access-token
	Token    string // empty: anonymous

	// Branch is the one branch name (without refs/heads/) that Push may write, DefaultBranch the one it
	// must differ from. With either empty Push writes refs/proctor/** only.
	Branch, DefaultBranch string

	// Silence is how long a forge may send and take nothing before a transfer ends as Unreachable, in whole
	// seconds; 0: two minutes.
	Silence time.Duration
}

const longestSilence = 2 * time.Minute

// endpoint is a checked Remote.
type endpoint struct {
	url, scheme string
	config      [][2]string
	secrets     []string
}

func (r Remote) endpoint() (endpoint, error) {
	u, err := url.Parse(r.URL)
	if err != nil {
		return endpoint{}, errors.New("the remote's URL cannot be parsed: give https://host/owner/name.git")
	}
	if u.User != nil {
		return endpoint{}, fmt.Errorf("the remote's URL on %s holds credentials: give the token apart", u.Host)
	}
	if strings.ContainsAny(r.URL, "\n\r\x00") || u.RawQuery != "" || u.Fragment != "" {
		return endpoint{}, errors.New("the remote's URL holds a query, a fragment or a line break: give https://host/owner/name.git")
	}
	silence := cmp.Or(r.Silence, longestSilence)
	e := endpoint{url: r.URL, scheme: u.Scheme, config: [][2]string{
		{"http.followRedirects", "false"}, {"protocol.version", "2"},
		{"http.lowSpeedLimit", "1"}, {"http.lowSpeedTime", strconv.Itoa(int(silence.Seconds()))},
	}}
	switch u.Scheme {
	case "file":
		if u.Host != "" || !strings.HasPrefix(u.Path, "/") {
			return endpoint{}, fmt.Errorf("the remote %s is no absolute path: give file:///path", r.URL)
		}
		return e, nil
	case "https":
	case "http":
		// A token over plain HTTP is for a forge on this machine.
		if r.Token != "" && !secureurl.Local(u.Hostname()) {
			return endpoint{}, fmt.Errorf("the remote on %s would get the token unencrypted: use https", u.Host)
		}
	default:
		return endpoint{}, fmt.Errorf("the remote's scheme %q is not used: give https://host/owner/name.git", u.Scheme)
	}
	if u.Host == "" {
		return endpoint{}, errors.New("the remote's URL names no host: give https://host/owner/name.git")
	}
	if r.Token == "" {
		return e, nil
	}
	user := r.Username
	if user == "" {
		user = "x-access-token"
	}
	if strings.ContainsAny(user+r.Token, "\n\r\x00") || strings.Contains(user, ":") {
		return endpoint{}, errors.New("the token or its user name holds a line break or a colon: check the secret")
	}
	basic := base64.StdEncoding.EncodeToString([]byte(user + ":" + r.Token))
	e.secrets = []string{r.Token, basic}
	e.config = append(e.config, [2]string{"http." + u.Scheme + "://" + u.Host + "/.extraHeader", "Authorization: Basic " + basic})
	return e, nil
}

// remote is a network call from the store.
func (s *Store) remote(e endpoint, args ...string) call {
	c := s.command(args...)
	c.network, c.scheme, c.config, c.secrets = true, e.scheme, e.config, e.secrets
	return c
}

// LsRemote lists the refs that match the patterns (git-ls-remote(1); none: all), as the remote has
// them now. Failures are *RemoteError.
func (s *Store) LsRemote(ctx context.Context, remote Remote, patterns ...string) (map[string]ID, error) {
	e, err := remote.endpoint()
	if err != nil {
		return nil, err
	}
	args := append([]string{"ls-remote", "--quiet", "--refs", "--", e.url}, patterns...)
	out, err := s.git.output(ctx, s.remote(e, args...))
	if err != nil {
		return nil, classify("list refs of "+remote.host(), err, e)
	}
	refs := map[string]ID{}
	for line := range strings.Lines(string(out)) {
		id, name, ok := strings.Cut(strings.TrimSpace(line), "\t")
		if !ok {
			continue
		}
		if refs[name], err = s.fmt.objectID(id); err != nil {
			return nil, fmt.Errorf("list refs of %s: %q: %w", remote.host(), name, err)
		}
	}
	return refs, nil
}

// Fetch brings refs with their history, as far as the store lacks it. Each refspec is "source" or
// "source:destination" with full ref names or ids; destinations are refs of the store and are
// overwritten. A source that the remote lacks is fs.ErrNotExist. No tags, no recursion, no FETCH_HEAD.
func (s *Store) Fetch(ctx context.Context, remote Remote, refspecs ...string) error {
	e, err := remote.endpoint()
	if err != nil {
		return err
	}
	args := fetchArgs(e)
	for _, spec := range refspecs {
		if err := s.checkRefspec(spec); err != nil {
			return fmt.Errorf("fetch from %s: %w", remote.host(), err)
		}
		args = append(args, spec)
	}
	if err := s.git.run(ctx, s.remote(e, args...)); err != nil {
		return classify("fetch from "+remote.host(), err, e)
	}
	return nil
}

// fetchBeside brings ref, and beside it others, in one exchange. Those that the remote lacks are passed over: Ref tells. The next look at one
// of the others that would fetch it, and only that, takes what was brought.
func (s *Store) fetchBeside(ctx context.Context, remote Remote, ref string, others []string) error {
	e, err := remote.endpoint()
	if err != nil {
		return err
	}
	args := fetchArgs(e, "--prune") // what somebody deleted since an earlier look is not there
	for _, name := range append([]string{ref}, others...) {
		if err := checkRefName(name); err != nil {
			return fmt.Errorf("fetch from %s: %w", remote.host(), err)
		}
		// A pattern, because git fails where a name is not there. It may match more; nobody reads that.
		args = append(args, name+"*:"+name+"*")
	}
	if err := s.git.run(ctx, s.remote(e, args...)); err != nil {
		return classify("fetch from "+remote.host(), err, e)
	}
	for _, name := range others {
		s.brought.Store(name, true)
	}
	return nil
}

// bring fetches ref, where fetchBeside did not just do so. fs.ErrNotExist: the remote lacks it.
func (s *Store) bring(ctx context.Context, remote Remote, ref string) error {
	if _, ok := s.brought.LoadAndDelete(ref); ok {
		_, err := s.Ref(ref)
		return err
	}
	return s.Fetch(ctx, remote, ref+":"+ref)
}

func fetchArgs(e endpoint, options ...string) []string {
	return append(append([]string{"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance",
		"--no-recurse-submodules", "--force"}, options...), "--", e.url)
}

func (s *Store) checkRefspec(spec string) error {
	source, destination, both := strings.Cut(spec, ":")
	if s.checkID(ID(source)) != nil {
		if err := checkRefName(source); err != nil {
			return err
		}
	}
	if both {
		return checkRefName(destination)
	}
	return nil
}

// Ref is what a ref of the store points at (Fetch put it there). fs.ErrNotExist when there is none.
func (s *Store) Ref(name string) (ID, error) {
	if err := checkRefName(name); err != nil {
		return "", err
	}
	local := checkout{gitDir: s.dir, common: s.dir, fmt: s.fmt}
	id, err := local.resolve(name)
	if err != nil {
		return "", &fs.PathError{Op: "read ref", Path: name, Err: fs.ErrNotExist}
	}
	return id, nil
}

// host names the remote in messages, without anything that may be secret.
func (r Remote) host() string {
	u, err := url.Parse(r.URL)
	if err != nil {
		return "the remote"
	}
	return u.Scheme + "://" + u.Host + u.Path
}
