package forgetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

const docsURL = "https://docs.github.com/rest"

// maxRequest is far above any body the API takes.
const maxRequest = 8 << 20

// call is one API request under way; the state lock is held.
type call struct {
	g     *GitHub
	r     *http.Request
	w     http.ResponseWriter
	token *Token
	body  []byte
}

// route is a handler with what it asks of the token.
type route struct {
	pattern string // "GET /repos/{owner}/{repo}/issues/{number}"
	scopes  string // permissions any of which is enough, "issues|pull_requests"; "" for none
	level   string // "read" or "write"
	do      func(*call) (int, any, error)
}

// handler routes git, then the API under both prefixes.
func (g *GitHub) handler() http.Handler {
	mux := http.NewServeMux()
	for _, rt := range g.routes() {
		mux.HandleFunc(rt.pattern, func(w http.ResponseWriter, r *http.Request) { g.serveAPI(w, r, rt) })
	}
	g.serveOIDC(mux)
	mux.HandleFunc("GET /_logs/{id}", g.serveLog)
	g.serveManifest(mux)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { writeJSON(w, http.StatusNotFound, notFound().body) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPack))
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if p := r.URL.Path; strings.HasPrefix(p, "/api/v3/") {
			trimPrefix(r, "/api/v3")
		} else if strings.HasPrefix(p, "/api/graphql") {
			trimPrefix(r, "/api")
		}
		log := Request{Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Body: body, Git: isGit(r.URL.Path)}
		if log.Git {
			log.Body = nil
		}
		g.state.Lock()
		if t := g.token(r); t != nil {
			log.Account = t.Login
		}
		g.state.Unlock()
		ended, sw := g.record(log), &statusWriter{ResponseWriter: w}
		defer func() { ended(sw.status) }()
		g.faults.around(sw, r, r.URL.Path, func(w http.ResponseWriter, r *http.Request) {
			if isGit(r.URL.Path) {
				g.serveGit(w, r)
				return
			}
			mux.ServeHTTP(w, r)
		})
	})
}

func trimPrefix(r *http.Request, prefix string) {
	u := *r.URL
	u.Path, u.RawPath = strings.TrimPrefix(u.Path, prefix), strings.TrimPrefix(u.RawPath, prefix)
	r.URL = &u
}

// gitPath splits a request of git's into repository and rest. The ".git" is optional, as on both forges.
func gitPath(p string) (repo, rest string, ok bool) {
	for _, suffix := range []string{"info/refs", "git-upload-pack", "git-receive-pack"} {
		if name, found := strings.CutSuffix(p, "/"+suffix); found {
			return strings.TrimPrefix(strings.TrimSuffix(name, ".git"), "/"), suffix, true
		}
	}
	return "", "", false
}

func isGit(p string) bool {
	_, _, ok := gitPath(p)
	return ok
}

// serveAPI checks the token, the repository and the permission, in GitHub's order, then the route.
func (g *GitHub) serveAPI(w http.ResponseWriter, r *http.Request, rt route) {
	answer(w, r, "Server Error", func(body []byte) (int, any, error) { return g.perform(w, r, rt, body) })
}

func (g *GitHub) perform(w http.ResponseWriter, r *http.Request, rt route, body []byte) (int, any, error) {
	g.state.Lock()
	defer g.state.Unlock()
	c := &call{g: g, r: r, w: w, body: body}
	if strings.HasPrefix(r.URL.Path, "/app") {
		return rt.do(c) // an App's JWT, checked there
	}
	if c.token = g.token(r); c.token == nil {
		if r.Header.Get("Authorization") == "" {
			return 0, nil, refuse(http.StatusUnauthorized, "Requires authentication")
		}
		return 0, nil, refuse(http.StatusUnauthorized, "Bad credentials")
	}
	if owner := r.PathValue("owner"); owner != "" {
		this, old := g.isThis(owner, r.PathValue("repo"))
		if old {
			return g.redirect(c)
		}
		if !this || g.opt.Private && g.roleOf(g.user(c.token.Login)) == "" && !c.token.Installation && !c.token.Job {
			return 0, nil, notFound()
		}
	}
	if err := c.allowed(rt); err != nil {
		return 0, nil, err
	}
	return rt.do(c)
}

// redirect of a renamed repository: GitHub points at the repository's id, with 301 for reads and 307 for the rest.
func (g *GitHub) redirect(c *call) (int, any, error) {
	p := strings.SplitN(strings.TrimPrefix(c.r.URL.EscapedPath(), "/"), "/", 4)
	to := g.APIURL() + "/repos/" + g.fullName()
	if len(p) == 4 {
		to += "/" + p[3]
	}
	if c.r.URL.RawQuery != "" {
		to += "?" + c.r.URL.RawQuery
	}
	status := http.StatusMovedPermanently
	if c.r.Method != http.MethodGet {
		status = http.StatusTemporaryRedirect
	}
	c.w.Header().Set("Location", to)
	return status, obj{"message": "Moved Permanently", "url": to, "documentation_url": docsURL}, nil
}

// allowed checks permissions, then what the account's role may do, then whether the repository is writable.
func (c *call) allowed(rt route) error {
	if rt.scopes == "" {
		return nil
	}
	ok := false
	for _, s := range strings.Split(rt.scopes, "|") {
		ok = ok || c.token.may(s, rt.level)
	}
	if !ok {
		kind := "personal access token"
		if c.token.Job || c.token.Installation {
			kind = "integration"
		}
		return refuse(http.StatusForbidden, "Resource not accessible by "+kind)
	}
	if rt.level != "write" {
		return nil
	}
	if c.g.archived {
		return refuse(http.StatusForbidden, "Repository was archived so is read-only.")
	}
	return nil
}

// mayWrite refuses accounts below a role; App and job tokens are bound by permissions alone.
func (c *call) mayWrite(role string) error {
	if c.token.Job || c.token.Installation || atLeast(c.g.roleOf(c.g.user(c.token.Login)), role) {
		return nil
	}
	return notFound()
}

func refuse(status int, message string) *apiError {
	return &apiError{status, obj{"message": message, "documentation_url": docsURL, "status": strconv.Itoa(status)}}
}

func notFound() *apiError { return refuse(http.StatusNotFound, "Not Found") }

// invalid is GitHub's 422: code "custom" carries a message, the others speak for themselves.
func invalid(resource, field, code, message string) *apiError {
	e := obj{"resource": resource, "code": code}
	if field != "" {
		e["field"] = field
	}
	if message != "" {
		e["message"] = message
	}
	a := refuse(http.StatusUnprocessableEntity, "Validation Failed")
	a.body["errors"] = []obj{e}
	return a
}

// decode reads the request's JSON; what is missing stays zero.
func (c *call) decode(v any) error {
	if err := json.Unmarshal(c.body, v); err != nil {
		return refuse(http.StatusBadRequest, "Problems parsing JSON")
	}
	return nil
}

// number of the path.
func (c *call) number() int {
	n, _ := strconv.Atoi(c.r.PathValue("number"))
	return n
}

// page cuts a list and sets the Link header, as GitHub does.
func page[T any](c *call, all []T) []T {
	q := c.r.URL.Query()
	per, _ := strconv.Atoi(q.Get("per_page"))
	if per <= 0 {
		per = 30
	}
	per = min(per, 100)
	n, _ := strconv.Atoi(q.Get("page"))
	n = max(n, 1)
	last := max((len(all)+per-1)/per, 1)
	var links []string
	link := func(to int, rel string) {
		q := cloneQuery(q)
		q.Set("page", strconv.Itoa(to))
		links = append(links, fmt.Sprintf(`<%s%s?%s>; rel="%s"`, c.g.APIURL(), c.r.URL.EscapedPath(), q.Encode(), rel))
	}
	if n > 1 {
		link(n-1, "prev")
	}
	if n < last {
		link(n+1, "next")
		link(last, "last")
	}
	if n > 1 {
		link(1, "first")
	}
	if len(links) > 0 {
		c.w.Header().Set("Link", strings.Join(links, ", "))
	}
	from := min((n-1)*per, len(all))
	return all[from:min(from+per, len(all))]
}

func cloneQuery(q url.Values) url.Values {
	out := url.Values{}
	for k, v := range q {
		out[k] = v
	}
	return out
}
