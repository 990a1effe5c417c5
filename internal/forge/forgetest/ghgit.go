package forgetest

import (
	"net/http"
	"path"
	"strings"
)

// serveGit checks Basic auth with the same tokens, then hands over to git.
func (g *GitHub) serveGit(w http.ResponseWriter, r *http.Request) {
	g.state.Lock()
	t := g.token(r)
	name, rest, _ := gitPath(r.URL.Path)
	this, old := g.isThis(path.Dir(name), path.Base(name))
	visible := !g.opt.Private || t != nil
	status, text := 0, ""
	_, _, basic := r.BasicAuth()
	switch {
	case t == nil && basic:
		status, text = http.StatusUnauthorized, "Invalid username or token. Password authentication is not supported for Git operations."
	case t == nil && (wantsWrite(r) || g.opt.Private):
		status, text = http.StatusUnauthorized, "Authentication required"
	case !this && !old || !visible || t != nil && !t.may("contents", "read"):
		status, text = http.StatusNotFound, "Repository not found."
	case wantsWrite(r) && g.archived:
		status, text = http.StatusForbidden, "This repository was archived so it is read-only."
	case wantsWrite(r) && (!t.may("contents", "write") || !t.Job && !t.Installation && !atLeast(g.roleOf(g.user(t.Login)), "write")):
		status, text = http.StatusForbidden, "Permission to "+g.fullName()+".git denied to "+t.Login+"."
	}
	p := pushPolicy{protected: g.protected, maxBlob: g.maxBlob, because: "protected branch hook declined",
		say: "error: GH006: Protected branch update failed for REF.\nerror: Changes must be made through a pull request."}
	login := ""
	if t != nil {
		login = t.Login
		p.workflows, p.who, p.scope = t.may("workflows", "write") && !t.Job, "a GitHub App", "workflows` permission"
		if !t.Job && !t.Installation {
			p.who, p.scope = "a Personal Access Token", "workflow` scope"
		}
	}
	owner, stored := g.opt.Owner, path.Base(strings.TrimSuffix(g.repo.dir, ".git"))
	g.state.Unlock()
	if status != 0 {
		gitRefuse(w, status, text)
		return
	}
	r = r.Clone(r.Context())
	r.URL.Path = "/" + owner + "/" + stored + ".git/" + rest
	g.git.serve(w, r, login, p)
}
