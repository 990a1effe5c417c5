package forgetest

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

// serveGit checks Basic auth with the same tokens, then hands over to git.
func (g *GitHub) serveGit(w http.ResponseWriter, r *http.Request) {
	g.state.Lock()
	t := g.token(r)
	name, rest, _ := gitPath(r.URL.Path)
	if private, beside := g.beside[strings.ToLower(name)]; beside {
		g.state.Unlock()
		g.serveBeside(w, r, t, private)
		return
	}
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

// AddRepository makes another repository of the same owner with one commit of files, which can be fetched and nothing
// else. A private one is not found by a job's token, which reads its own repository only.
func (g *GitHub) AddRepository(name string, files fs.FS, private bool) error {
	if _, err := newBareRepo(context.Background(), g.git.root, g.opt.Owner, name, g.opt.DefaultBranch, files); err != nil {
		return fmt.Errorf("add repository %s: %w", name, err)
	}
	g.state.Lock()
	defer g.state.Unlock()
	if g.beside == nil {
		g.beside = map[string]bool{}
	}
	g.beside[strings.ToLower(g.opt.Owner+"/"+name)] = private
	return nil
}

func (g *GitHub) serveBeside(w http.ResponseWriter, r *http.Request, t *Token, private bool) {
	_, _, basic := r.BasicAuth()
	switch {
	case t == nil && basic:
		gitRefuse(w, http.StatusUnauthorized, "Invalid username or token. Password authentication is not supported for Git operations.")
	case t == nil && private:
		gitRefuse(w, http.StatusUnauthorized, "Authentication required")
	case private && (t.Job || !t.may("contents", "read")):
		gitRefuse(w, http.StatusNotFound, "Repository not found.")
	case wantsWrite(r):
		gitRefuse(w, http.StatusForbidden, "Write access to repository not granted.")
	default:
		name, rest, _ := gitPath(r.URL.Path)
		r = r.Clone(r.Context())
		r.URL.Path = "/" + name + ".git/" + rest
		g.git.serve(w, r, "reader", pushPolicy{})
	}
}
