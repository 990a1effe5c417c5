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

// glCall is one API request under way; the state lock is held.
type glCall struct {
	g     *GitLab
	r     *http.Request
	w     http.ResponseWriter
	token *GitLabToken
	body  []byte
}

type glRoute struct {
	pattern string // below /api/v4, "{project}" is the full path
	write   bool
	role    string // least role of a writer
	job     bool   // CI_JOB_TOKEN may call it
	do      func(*glCall) (int, any, error)
}

func (g *GitLab) handler() http.Handler {
	mux := http.NewServeMux()
	for _, rt := range g.routes() {
		method, path, _ := strings.Cut(rt.pattern, " ")
		mux.HandleFunc(method+" /api/v4"+path, func(w http.ResponseWriter, r *http.Request) { g.serveAPI(w, r, rt) })
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, http.StatusNotFound, obj{"error": "404 Not Found"})
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPack))
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		path := strings.TrimPrefix(strings.ReplaceAll(r.URL.EscapedPath(), url.PathEscape(g.opt.Project), "*"), "/api/v4")
		log := Request{Method: r.Method, Path: path, Query: r.URL.RawQuery, Body: body, Git: isGit(r.URL.Path)}
		g.state.Lock()
		if t := g.token(r); t != nil {
			log.Account = t.Login
		}
		g.state.Unlock()
		ended, sw := g.record(log), &statusWriter{ResponseWriter: w}
		defer func() { ended(sw.status) }()
		g.faults.around(sw, r, path, func(w http.ResponseWriter, r *http.Request) {
			if isGit(r.URL.Path) {
				g.serveGit(w, r)
				return
			}
			mux.ServeHTTP(w, r)
		})
	})
}

func (g *GitLab) token(r *http.Request) *GitLabToken {
	value := or(r.Header.Get("PRIVATE-TOKEN"), r.Header.Get("JOB-TOKEN"))
	if _, pass, ok := r.BasicAuth(); ok {
		value = pass
	} else if v, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		value = v
	}
	t := g.tokens[value]
	if t == nil || t.revoked || !t.Expires.IsZero() && !g.now().Before(t.Expires) {
		return nil
	}
	return t
}

func (g *GitLab) serveAPI(w http.ResponseWriter, r *http.Request, rt glRoute) {
	answer(w, r, "500 Internal Server Error", func(body []byte) (int, any, error) { return g.perform(w, r, rt, body) })
}

func (g *GitLab) perform(w http.ResponseWriter, r *http.Request, rt glRoute, body []byte) (int, any, error) {
	g.state.Lock()
	defer g.state.Unlock()
	c := &glCall{g: g, r: r, w: w, body: body, token: g.token(r)}
	if strings.HasSuffix(rt.pattern, "/trigger/pipeline") {
		return rt.do(c) // checked by its own token
	}
	if c.token == nil || c.token.Job && !rt.job || c.token.Job != (r.Header.Get("JOB-TOKEN") != "") {
		return 0, nil, glRefuse(http.StatusUnauthorized, "401 Unauthorized")
	}
	a := g.user(c.token.Login)
	if p := r.PathValue("project"); p != "" && (!strings.EqualFold(p, g.opt.Project) || !g.opt.Public && accessLevel(a.role) == 0) {
		return 0, nil, glRefuse(http.StatusNotFound, "404 Project Not Found")
	}
	if !c.token.Job && !c.token.has("api") && (rt.write || !c.token.has("read_api")) {
		return 0, nil, &apiError{http.StatusForbidden, obj{"error": "insufficient_scope", "scope": "api",
			"error_description": "The request requires higher privileges than provided by the access token."}}
	}
	if rt.write && (accessLevel(a.role) < accessLevel(rt.role) || g.archived) {
		return 0, nil, glRefuse(http.StatusForbidden, "403 Forbidden")
	}
	return rt.do(c)
}

func glRefuse(status int, message any) *apiError { return &apiError{status, obj{"message": message}} }

func (c *glCall) decode(v any) error {
	if len(c.body) == 0 {
		return nil
	}
	if err := json.Unmarshal(c.body, v); err != nil {
		return &apiError{http.StatusBadRequest, obj{"error": "The request body is not valid JSON"}}
	}
	return nil
}

func (c *glCall) number(name string) int {
	n, _ := strconv.Atoi(c.r.PathValue(name))
	return n
}

// glPage cuts a list and sets GitLab's paging headers.
func glPage[T any](c *glCall, all []T) []T {
	q := c.r.URL.Query()
	per, _ := strconv.Atoi(q.Get("per_page"))
	if per <= 0 {
		per = 20
	}
	per = min(per, 100)
	n, _ := strconv.Atoi(q.Get("page"))
	n = max(n, 1)
	last := max((len(all)+per-1)/per, 1)
	h := c.w.Header()
	for k, v := range map[string]int{"X-Page": n, "X-Per-Page": per, "X-Total": len(all), "X-Total-Pages": last} {
		h.Set(k, strconv.Itoa(v))
	}
	h.Set("X-Next-Page", "")
	if n < last {
		h.Set("X-Next-Page", strconv.Itoa(n+1))
	}
	from := min((n-1)*per, len(all))
	return all[from:min(from+per, len(all))]
}

// serveGit checks Basic auth ("oauth2" or any name with the token; "gitlab-ci-token" with a job's).
func (g *GitLab) serveGit(w http.ResponseWriter, r *http.Request) {
	g.state.Lock()
	t := g.token(r)
	name, rest, _ := gitPath(r.URL.Path)
	a := &account{}
	if t != nil {
		a = g.user(t.Login)
	}
	_, _, basic := r.BasicAuth()
	status, text := 0, ""
	switch {
	case t == nil && (basic || wantsWrite(r) || !g.opt.Public):
		status, text = http.StatusUnauthorized, "HTTP Basic: Access denied. If a password was provided for Git authentication, the password was incorrect or you're required to use a token instead of a password."
	case !strings.EqualFold(name, g.opt.Project) || !g.opt.Public && accessLevel(a.role) == 0:
		status, text = http.StatusNotFound, "The project you were looking for could not be found or you don't have permission to view it."
	case wantsWrite(r) && g.archived:
		status, text = http.StatusForbidden, "You can't push code to a read-only GitLab instance: the project is archived."
	case wantsWrite(r) && (t.Job || !t.has("write_repository") && !t.has("api") || accessLevel(a.role) < accessLevel("developer")):
		status, text = http.StatusForbidden, "You are not allowed to push code to this project."
	}
	p := pushPolicy{protected: g.protected, workflows: true, maxBlob: defaultMaxBlob, because: "pre-receive hook declined",
		say: "GitLab: You are not allowed to push code to protected branches on this project."}
	g.state.Unlock()
	if status != 0 {
		gitRefuse(w, status, text)
		return
	}
	r = r.Clone(r.Context())
	r.URL.Path = "/" + g.opt.Project + ".git/" + rest
	g.git.serve(w, r, a.login, p)
}

func (g *GitLab) routes() []glRoute {
	const p = "/projects/{project}"
	return []glRoute{
		{"GET " + p, false, "", true, glProject},
		{"GET " + p + "/protected_branches", false, "", false, glProtected},
		{"GET " + p + "/push_rule", false, "", false, glPushRule},
		{"GET " + p + "/variables", false, "", false, glProjectVariables},
		{"DELETE " + p + "/repository/branches/{branch}", true, "developer", false, glDeleteBranch},
		{"GET " + p + "/members/all", false, "", false, glMembers},
		{"GET " + p + "/repository/branches/{branch}", false, "", false, glBranch},
		{"GET " + p + "/issues/{iid}", false, "", false, glGetIssue},
		{"PUT " + p + "/issues/{iid}", true, "reporter", false, glEditIssue},
		{"GET " + p + "/issues/{iid}/resource_label_events", false, "", false, glLabelEvents},
		{"GET " + p + "/issues/{iid}/notes", false, "", false, glNotes},
		{"POST " + p + "/issues/{iid}/notes", true, "guest", false, glAddNote},
		{"PUT " + p + "/issues/{iid}/notes/{note}", true, "guest", false, glEditNote},
		{"POST " + p + "/issues/{iid}/award_emoji", true, "guest", false, glAward},
		{"POST " + p + "/issues/{iid}/notes/{note}/award_emoji", true, "guest", false, glAward},
		{"GET " + p + "/issues/{iid}/notes/{note}", false, "", false, glGetNote},
		{"GET " + p + "/merge_requests/{iid}/notes", false, "", false, glNotes},
		{"POST " + p + "/merge_requests/{iid}/notes", true, "guest", false, glAddNote},
		{"GET " + p + "/merge_requests/{iid}/notes/{note}", false, "", false, glGetNote},
		{"POST " + p + "/merge_requests/{iid}/notes/{note}/award_emoji", true, "guest", false, glAward},
		{"GET " + p + "/merge_requests", false, "", false, glMerges},
		{"POST " + p + "/merge_requests", true, "developer", false, glAddMerge},
		{"GET " + p + "/merge_requests/{iid}", false, "", false, glGetMerge},
		{"PUT " + p + "/merge_requests/{iid}", true, "developer", false, glEditMerge},
		{"GET " + p + "/merge_requests/{iid}/reviewers", false, "", false, glReviewers},
		{"GET " + p + "/merge_requests/{iid}/discussions", false, "", false, glDiscussions},
		{"GET " + p + "/merge_requests/{iid}/discussions/{discussion}", false, "", false, glGetDiscussion},
		{"POST " + p + "/merge_requests/{iid}/discussions/{discussion}/notes", true, "guest", false, glReply},
		{"GET " + p + "/pipelines", false, "", false, glPipelines},
		{"GET " + p + "/pipelines/{id}", false, "", false, glPipeline},
		{"GET " + p + "/pipelines/{id}/jobs", false, "", false, glJobs},
		{"GET " + p + "/jobs/{id}/trace", false, "", false, glTrace},
		{"GET " + p + "/pipelines/{id}/variables", false, "", false, glVariables},
		{"POST " + p + "/statuses/{sha}", true, "developer", false, glSetStatus},
		{"POST " + p + "/pipeline", true, "developer", false, glCreatePipeline},
		{"POST " + p + "/trigger/pipeline", true, "", false, glTrigger},
		{"POST " + p + "/access_tokens", true, "maintainer", false, glLend},
		{"DELETE /personal_access_tokens/self", false, "", false, glRevokeSelf},
		{"GET /user", false, "", false, glUser},
		{"GET /job", false, "", true, glJob},
	}
}

func (g *GitLab) userJSON(a *account) obj {
	return obj{"id": a.id, "username": a.login, "name": a.login, "state": "active", "locked": false, "avatar_url": nil, "web_url": g.url + "/" + a.login}
}

func glProject(c *glCall) (int, any, error) {
	g := c.g
	i := strings.LastIndexByte(g.opt.Project, '/')
	visibility := "private"
	if g.opt.Public {
		visibility = "public"
	}
	o := obj{
		"id": 4200, "name": g.opt.Project[i+1:], "path": g.opt.Project[i+1:], "path_with_namespace": g.opt.Project, "default_branch": g.opt.DefaultBranch,
		"visibility": visibility, "archived": g.archived, "web_url": g.webURL(), "http_url_to_repo": g.webURL() + ".git",
		"namespace": obj{"id": 41, "full_path": g.opt.Project[:i], "kind": "group"}, "issues_access_level": onOff(g.set.IssuesOff),
		"merge_requests_access_level": onOff(g.mergesOff), "builds_access_level": onOff(g.set.CIOff), "ci_config_path": g.set.ConfigPath,
	}
	if c.mayMaintain() == nil {
		o["ci_pipeline_variables_minimum_override_role"] = or(g.set.VariablesRole, "developer")
	}
	return http.StatusOK, o, nil
}

func glMembers(c *glCall) (int, any, error) {
	query := strings.ToLower(c.r.URL.Query().Get("query"))
	out := []obj{}
	for key, a := range c.g.users {
		if a.role != "" && strings.Contains(key, query) {
			m := c.g.userJSON(a)
			m["access_level"], m["expires_at"] = accessLevel(a.role), nil
			out = append(out, m)
		}
	}
	return http.StatusOK, glPage(c, out), nil
}

func glBranch(c *glCall) (int, any, error) {
	name := c.r.PathValue("branch")
	id, err := c.g.repo.branch(name)
	if err != nil {
		return 0, nil, glRefuse(http.StatusNotFound, "404 Branch Not Found")
	}
	return http.StatusOK, obj{"name": name, "commit": obj{"id": id, "short_id": id[:8]}, "protected": false, "default": name == c.g.opt.DefaultBranch,
		"web_url": fmt.Sprintf("%s/-/tree/%s", c.g.webURL(), name)}, nil
}

func glUser(c *glCall) (int, any, error) {
	u := c.g.userJSON(c.g.user(c.token.Login))
	u["bot"] = strings.Contains(c.token.Login, "_bot")
	return http.StatusOK, u, nil
}

func glJob(c *glCall) (int, any, error) {
	return http.StatusOK, obj{"id": 1, "status": "running", "user": c.g.userJSON(c.g.user(c.token.Login))}, nil
}
