package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/sandbox"
)

// noHeldOut is a run that cannot have its held-out files. It ends before the first paid call.
func noHeldOut(reason, next string, err error) error {
	return &ended{terminal: evidence.GateBroken, reason: reason, next: next, err: err}
}

// fetchHeldOut brings the held-out files that are not the repository's own into the store, where nobody else reads,
// and says where they came from. commit, when given, is the source's commit that an earlier run recorded.
func (s *session) fetchHeldOut(ctx context.Context, commit string) error {
	a := s.cfg.Gates.Acceptance
	var err error
	switch {
	case a.Dir != "":
		err = s.importHeldOut(ctx)
	case s.heldFromSource():
		err = s.fetchSource(ctx, commit)
	default:
		return nil
	}
	if err != nil {
		return err
	}
	s.rec.HeldOut.Files = len(s.heldFiles)
	return s.checkHeldOut(ctx)
}

// holdOut is fetchHeldOut as a step of prepare.
func (s *session) holdOut(ctx context.Context) error { return s.fetchHeldOut(ctx, "") }

// heldPlace is the directory that the job provides, as far as it is known; "" for none.
func (s *session) heldPlace() string {
	if dir := s.cfg.Gates.Acceptance.Dir; dir != "input" {
		return dir
	}
	return s.req.heldDir
}

// heldFromSource tells whether held-out files come from a commit that is not the run's.
func (s *session) heldFromSource() bool {
	src := s.cfg.Gates.Acceptance.Source
	return src.Repo != "" || src.Ref != "" || src.Path != ""
}

// laysOver tells whether there are held-out files beside the repository's own.
func (s *session) laysOver() bool { return s.heldFromSource() || s.cfg.Gates.Acceptance.Dir != "" }

func (s *session) fetchSource(ctx context.Context, known string) error {
	src := s.cfg.Gates.Acceptance.Source
	name, ref := src.Repo, src.Ref
	if name == "" {
		name = first(s.trigger.Repo.FullName(), s.rec.Trigger.Repo, "this repository")
	}
	what := fmt.Sprintf("the held-out files of %s at %s", name, first(ref, "its default branch"))
	id, err := s.sourceCommit(ctx, src.Repo, first(known, ref))
	if err != nil {
		return noHeldOut(what+" cannot be fetched: "+err.Error(), s.sourceAdvice(name, err), err)
	}
	tree, err := s.store.Tree(ctx, id)
	if err != nil {
		return noHeldOut(what+" cannot be read: "+err.Error(), "check gates.acceptance.source", err)
	}
	if s.heldFiles, err = s.store.Files(ctx, tree, src.Path); err != nil {
		next := "check gates.acceptance.source"
		if errors.Is(err, fs.ErrNotExist) {
			next = fmt.Sprintf("check gates.acceptance.source.path: commit %s has no folder %s", short(string(id)), src.Path)
		}
		return noHeldOut(what+" cannot be read: "+err.Error(), next, err)
	}
	if len(s.heldFiles) == 0 {
		return noHeldOut(what+" are none: the folder is empty", "add the held-out tests there, or take gates.acceptance.source out", nil)
	}
	s.rec.HeldOut = &evidence.HeldOut{Form: "source", Repo: name, Ref: ref, Commit: string(id), Tree: string(tree)}
	return nil
}

// sourceCommit finds the source's commit and brings its files into the store.
func (s *session) sourceCommit(ctx context.Context, repo, ref string) (git.ID, error) {
	if s.remote.URL != "" {
		remote, err := s.sourceRemote(repo)
		if err != nil {
			return "", err
		}
		return s.store.FetchCommit(ctx, remote, ref)
	}
	if repo != "" {
		return "", errors.New("a run without a forge fetches from nowhere")
	}
	id, err := s.store.Resolve(ctx, s.req.checkout, first(ref, "HEAD"))
	if errors.Is(err, fs.ErrNotExist) {
		return s.store.Resolve(ctx, s.req.checkout, "origin/"+ref)
	}
	return id, err
}

// sourceRemote is another repository beside the run's own: same host, same token, which goes nowhere else.
func (s *session) sourceRemote(repo string) (git.Remote, error) {
	r := git.Remote{URL: s.remote.URL, Username: s.remote.Username, Token: s.remote.Token}
	if repo == "" {
		return r, nil
	}
	own := s.trigger.Repo.FullName() + ".git"
	cut := len(r.URL) - len(own)
	if own == ".git" || cut <= 0 || !strings.EqualFold(r.URL[cut:], own) {
		return r, fmt.Errorf("the address of the run's own repository does not end in %s, so that of %s cannot be told", own, repo)
	}
	r.URL = r.URL[:cut] + repo + ".git"
	return r, nil
}

func (s *session) sourceAdvice(name string, err error) string {
	var remote *git.RemoteError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "check gates.acceptance.source.ref: a branch, a tag or a commit id of " + name
	case errors.As(err, &remote) && (remote.Kind == git.NotFound || remote.Kind == git.Auth || remote.Kind == git.Forbidden):
		return "give the run a token that may read " + name + " (a workflow's own token reads its own repository only): an App's or a fine-grained one with contents: read there"
	case s.remote.URL == "":
		return "name a ref of this repository, or run it for an issue with --issue"
	}
	return "check gates.acceptance.source, then ask again; nothing was spent"
}

// importHeldOut copies the directory that the job provides.
func (s *session) importHeldOut(ctx context.Context) error {
	dir, err := s.givenDir()
	if err != nil {
		return err
	}
	tree, err := s.store.ImportDir(ctx, dir)
	if err != nil {
		return noHeldOut("the held-out directory cannot be read: "+err.Error(), "let an earlier step of the job make it, outside the checkout; nothing was spent", err)
	}
	if s.heldFiles, err = s.store.Files(ctx, tree, ""); err != nil {
		return fmt.Errorf("read the held-out directory: %w", err)
	}
	s.rec.HeldOut = &evidence.HeldOut{Form: "dir", Tree: string(tree)}
	return nil
}

// givenDir is where the job put the held-out files: nowhere that the agent or a visible gate could read.
func (s *session) givenDir() (string, error) {
	const give = "give the input acceptance-dir (GitLab: the variable PROCTOR_ACCEPTANCE_DIR; command line: --acceptance-dir) an absolute path outside the checkout"
	dir := s.cfg.Gates.Acceptance.Dir
	if dir == "input" {
		if dir = s.req.heldDir; dir == "" {
			return "", noHeldOut("the job has not said where the held-out directory is", give, nil)
		}
	}
	if !filepath.IsAbs(dir) {
		return "", noHeldOut(fmt.Sprintf("the held-out directory %q is no absolute path", dir), give, nil)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", noHeldOut("the held-out directory does not exist here: "+err.Error(), "let an earlier step of the job make it, and mount it where the action runs in a container", err)
	}
	for _, open := range []struct{ dir, what string }{{s.req.checkout, "the checkout"}, {s.dir, "the run's own directory"}, {s.req.reports, "the directory of the report"}} {
		at, err := filepath.EvalSymlinks(open.dir)
		if err == nil && (within(real, at) || within(at, real)) {
			return "", noHeldOut("the held-out directory and "+open.what+" lie in one another", give, nil)
		}
	}
	readable := sandbox.IsSystem(real)
	for _, d := range s.toolDirs {
		readable = readable || within(real, d)
	}
	if readable {
		return "", noHeldOut("the held-out directory lies where every confined process may read: "+real, "move it, for instance below the runner's temporary directory", nil)
	}
	return real, nil
}

// checkHeldOut holds the exam against the base commit. A file of the repository may only give way where that is the
// point, and files that the agent can read are not held out.
func (s *session) checkHeldOut(ctx context.Context) error {
	sealed, err := s.sealed()
	if err != nil {
		return usage(err)
	}
	visible, dirs, blobs := map[string]bool{}, map[string]bool{}, map[git.ID]bool{}
	err = s.store.Walk(ctx, s.store.BaseTree(), func(p string, e git.Entry) error {
		if sealed != nil && sealed(p) {
			return nil
		}
		visible[p], blobs[e.ID] = true, true
		for d := path.Dir(p); d != "." && !dirs[d]; d = path.Dir(d) {
			dirs[d] = true
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("compare the held-out files with the base commit: %w", err)
	}
	var over []string
	known := 0
	for p, e := range s.heldFiles {
		if blobs[e.ID] {
			known++
		}
		taken := visible[p] || dirs[p]
		for d := path.Dir(p); d != "."; d = path.Dir(d) {
			taken = taken || visible[d]
		}
		if taken {
			over = append(over, p)
		}
	}
	slices.Sort(over)
	switch {
	case known == len(s.heldFiles):
		return noHeldOut(fmt.Sprintf("all %d held-out files also stand in the base commit, where the agent reads them", known), "hold out files that the repository does not have, or seal those it has with gates.acceptance.sealed", nil)
	case len(over) > 0 && !s.cfg.Gates.Acceptance.Overwrite:
		return noHeldOut(fmt.Sprintf("%d held-out files would replace files of the base commit: %s", len(over), files(over)), "give them paths of their own, seal those paths, or write gates.acceptance.overwrite: true where replacing them is the point", nil)
	case known > 0:
		s.note(fmt.Sprintf("%d of %d held-out files also stand in the base commit, where the agent can read them", known, len(s.heldFiles)))
	}
	return nil
}

// layHeldOut puts the held-out files into a checkout right before a held-out gate. again: a gate ran there before.
func (s *session) layHeldOut(ctx context.Context, p *git.Proof, w proofWalk, again bool) error {
	if again {
		if _, err := p.Reset(ctx); err != nil { // not told by name: it may be the exam's own files
			return fmt.Errorf("put the proof back before its next gate: %w", err)
		}
	}
	if again || len(s.cfg.Setup) > 0 {
		sealed, err := s.sealed()
		if err != nil {
			return usage(err)
		}
		if err := p.Settle(ctx, sealed); err != nil {
			return fmt.Errorf("put the held-out files in place: %w", err)
		}
	}
	if len(s.heldFiles) == 0 {
		return nil
	}
	if err := s.tellDisplaced(ctx, w); err != nil {
		return err
	}
	if err := p.LayOver(ctx, s.heldFiles); err != nil {
		return fmt.Errorf("lay the held-out files over the proof: %w", err)
	}
	return nil
}

// tellDisplaced counts what only the candidate has at the paths of held-out files. It gives way, said aloud; no
// path is named, since the agent's next reader may be another run.
func (s *session) tellDisplaced(ctx context.Context, w proofWalk) error {
	n := 0
	for p, e := range s.heldFiles {
		now, err := s.store.Entry(ctx, w.commit, p)
		if err != nil {
			return fmt.Errorf("compare the candidate with the held-out files: %w", err)
		}
		was, err := s.store.Entry(ctx, s.store.Base(), p)
		if err != nil {
			return fmt.Errorf("compare the candidate with the held-out files: %w", err)
		}
		if now.Mode != 0 && now != e && now != was {
			n++
		}
	}
	if n > 0 {
		s.note(fmt.Sprintf("tick %d: the candidate has files of its own at %d paths of held-out files; the held-out ones were used in the proof", w.tick, n))
	}
	return nil
}

// sealedOrNone is what a worktree must not show. With an exam from elsewhere nothing of the repository may be hidden,
// and yet its history must not be handed over: the exam may be a branch of it.
func (s *session) sealedOrNone() (func(string) bool, error) {
	sealed, err := s.sealed()
	if err == nil && sealed == nil && s.laysOver() {
		sealed = func(string) bool { return false }
	}
	return sealed, err
}
