package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/prompt"
)

// subject is what a proof is repeated for, and where its objects come from.
type subject struct {
	what    string // for people
	claim   evidence.Claim
	claimed bool // false: only the commits are known, and every gate has to pass
	forge   forge.Forge
	refs    []string // of the forge
	trunk   []string // the branches of which one must hold the base commit
}

// pullNumber is 12, #12 or !12.
var pullNumber = regexp.MustCompile(`^[#!]?([1-9][0-9]{0,8})$`)

// find works out what target means.
func (v *verification) find(ctx context.Context, target string) (subject, error) {
	if file, ok := recordAt(v.inDir(target)); ok {
		return v.fromRecord(ctx, file)
	}
	if strings.HasPrefix(target, "https://") || strings.HasPrefix(target, "http://") {
		a, err := parsePullURL(target)
		if err != nil {
			return subject{}, usage(err)
		}
		return v.fromPull(ctx, a)
	}
	if m := pullNumber.FindStringSubmatch(target); m != nil {
		a, err := v.repository()
		if err != nil {
			return subject{}, usage(err)
		}
		if a.number, err = strconv.Atoi(m[1]); err != nil {
			return subject{}, usage(err)
		}
		return v.fromPull(ctx, a)
	}
	return v.fromCommit(ctx, target)
}

func (v *verification) inDir(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(v.env.Dir, path)
}

// recordAt is the record file at a path, which may be the directory of a run.
func recordAt(path string) (string, bool) {
	for _, p := range []string{path, filepath.Join(path, evidence.RecordFile)} {
		if info, err := os.Stat(p); err == nil && info.Mode().IsRegular() {
			return p, true
		}
	}
	return "", false
}

// repository is where a bare number belongs.
func (v *verification) repository() (address, error) {
	if v.opts.repo != "" {
		return address{host: serverOf(v.env, "github"), project: v.opts.repo}, nil
	}
	if v.req.checkout == "" {
		return address{}, errors.New("this is no checkout, so a number says too little. Next: give the address of the pull request, or --repo owner/name")
	}
	raw, err := originURL(v.req.checkout)
	if err != nil {
		return address{}, err
	}
	return parseOrigin(raw)
}

// fromPull takes the claim from the body of a pull request.
func (v *verification) fromPull(ctx context.Context, a address) (subject, error) {
	f, err := forgeAt(v.env, a)
	if err != nil {
		return subject{}, usage(err)
	}
	s := subject{what: fmt.Sprintf("pull request %d of %s", a.number, a.project), claimed: true, forge: f}
	reader, ok := f.(forge.PullReader)
	if !ok {
		return s, fmt.Errorf("%s: pull requests cannot be read by their number", f.Name())
	}
	p, err := reader.PullRequest(ctx, a.number)
	if err != nil {
		return s, err
	}
	if s.claim, ok = evidence.PullRequestClaim(p.Body); !ok {
		return s, usage(fmt.Errorf("the text of %s holds no claim of a proof: this program did not write it, or somebody changed its first lines. Next: give the run record (proctor-run.json from the job's artifacts) instead", s.what))
	}
	repo, err := f.Repository(ctx)
	if err != nil {
		return s, err
	}
	s.aim(repo.DefaultBranch, p.Base, p.Head)
	s.refs = append(s.refs, pullRef(f, a.number))
	v.compareHead(s.claim, p)
	return s, nil
}

// compareHead tells whether the pull request is at the commit that was proved.
func (v *verification) compareHead(c evidence.Claim, p forge.PullRequest) {
	v.out.Checks = append(v.out.Checks, check{Name: "head of the branch", Claimed: c.OnBranch(), Now: p.HeadSHA, Same: c.Proves(p.HeadSHA)})
}

// aim adds the branches that hold the proved commit and its base.
func (s *subject) aim(trunk, base string, heads ...string) {
	for _, b := range []string{trunk, base} {
		if b != "" && !contains(s.trunk, "refs/heads/"+b) {
			s.trunk = append(s.trunk, "refs/heads/"+b)
		}
	}
	s.refs = append(s.refs, s.trunk...)
	for _, h := range heads {
		if h != "" && !strings.HasPrefix(h, "refs/") {
			h = "refs/heads/" + h
		}
		if h != "" && !contains(s.refs, h) {
			s.refs = append(s.refs, h)
		}
	}
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// fromRecord takes the claim from a record, and holds the record to itself and to its statement.
func (v *verification) fromRecord(ctx context.Context, file string) (subject, error) {
	s := subject{what: "record " + filepath.Base(file), claimed: true}
	rec, err := evidence.Read(file)
	if err != nil && !errors.Is(err, evidence.ErrInvalid) {
		return s, usage(err)
	}
	s.what = "run " + prompt.Inline(rec.Run, 100)
	if err != nil {
		v.compare("the record itself", "in agreement with itself", prompt.Inline(err.Error(), 1000))
	}
	var ok bool
	if s.claim, ok = rec.Claim(); !ok {
		return s, usage(fmt.Errorf("%s ended as %s: %w", s.what, rec.Terminal, errNoProof))
	}
	if err := s.claim.Check(); err != nil {
		return s, usage(fmt.Errorf("%s: %w", s.what, err))
	}
	v.compareStatement(file, rec)
	if rec.Trigger.Repo == "" || rec.Trigger.Forge == "local" {
		return s, nil
	}
	a := address{host: serverOf(v.env, rec.Trigger.Forge), project: rec.Trigger.Repo}
	if s.forge, err = forgeAt(v.env, a); err != nil {
		return s, usage(err)
	}
	if s.claim.HeldOut == nil && v.has(ctx, s.claim) {
		s.forge = nil // all is here, and nobody has to be asked
		return s, nil
	}
	repo, err := s.forge.Repository(ctx)
	if err != nil {
		return s, err
	}
	published := ""
	if rec.Published != nil {
		published = rec.Published.Branch
	}
	s.aim(repo.DefaultBranch, "", published, rec.Branch, rec.Kept)
	return s, nil
}

func (v *verification) compareStatement(file string, rec evidence.Record) {
	st, err := evidence.ReadStatement(filepath.Dir(file))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		v.note("there is no in-toto statement beside the record, so the record's own digest was not checked")
		return
	case err == nil:
		err = st.Binds(file, rec)
	}
	now := "binds the record to its commit"
	if err != nil {
		now = prompt.Inline(strings.ReplaceAll(err.Error(), "\n", "; "), 1000)
	}
	v.compare("in-toto statement", "binds the record to its commit", now)
}

// fromCommit looks for what a run left in this checkout: a commit says by itself which run made it and on
// which base, and the record of a local run lies below the user's state directory.
func (v *verification) fromCommit(ctx context.Context, name string) (subject, error) {
	s := subject{what: "commit " + name}
	if v.req.checkout == "" {
		return s, usage(fmt.Errorf("%q is neither a record nor a pull request, and this is no checkout. Next: give the address of a pull request, or cd into the repository", name))
	}
	store, err := v.git.OpenStore(ctx, git.StoreOptions{Checkout: v.req.checkout, Dir: v.place("look")})
	if err != nil {
		return s, usage(err)
	}
	defer store.Close()
	id, err := store.Resolve(ctx, v.req.checkout, name)
	if err != nil {
		return s, usage(fmt.Errorf("%w. Next: give the number of a pull request, a run record, or a branch or commit that a run made", err))
	}
	c, err := store.ReadCommit(ctx, id)
	if err != nil {
		return s, err
	}
	base, run := c.Trailer(git.TrailerBase), c.Trailer(git.TrailerRun)
	if base == "" || run == "" {
		return s, usage(fmt.Errorf("commit %s says nothing of a run: it has no %s and %s. Next: name the last commit of a proctor/… branch", short(string(id)), git.TrailerRun, git.TrailerBase))
	}
	s.what = "commit " + short(string(id))
	s.claim = evidence.Claim{Run: run, Base: evidence.Commit{ID: base}, Head: evidence.Commit{ID: string(c.ID), Tree: string(c.Tree)}}
	if rec, ok := v.recordOf(run, string(id)); ok {
		if claim, ok := rec.Claim(); ok && (claim.OnBranch() == string(id) || claim.Head.ID == string(id)) && claim.Base.ID == base {
			if claim.Head.ID == string(id) {
				claim.Pushed = "" // asked for is the proof itself
			}
			s.claim, s.claimed = claim, true
			return s, nil
		}
		v.note(fmt.Sprintf("run %s ended as %s and came to no proof of this commit: what is tried is whether every gate passes", run, rec.Terminal))
		return s, nil
	}
	v.note("there is no record of run " + run + " here: the claim is that every gate passes")
	return s, nil
}

// recordOf finds the record of a local run.
func (v *verification) recordOf(run, head string) (evidence.Record, bool) {
	files, _ := filepath.Glob(filepath.Join(stateDir(v.env), "runs", "*", evidence.RecordFile))
	for _, f := range files {
		rec, err := evidence.Read(f)
		if err != nil || rec.Run != run || rec.Head == nil {
			continue
		}
		if claim, ok := rec.Claim(); rec.Head.ID == head || ok && claim.OnBranch() == head {
			return rec, true
		}
	}
	return evidence.Record{}, false
}

// has says whether this checkout holds both commits whole.
func (v *verification) has(ctx context.Context, c evidence.Claim) bool {
	if v.req.checkout == "" {
		return false
	}
	store, err := v.git.OpenStore(ctx, git.StoreOptions{Checkout: v.req.checkout, Dir: v.place("look"), Base: c.Base.ID})
	if err != nil {
		return false
	}
	defer store.Close()
	tree, err := store.Tree(ctx, git.ID(c.OnBranch()))
	if err != nil {
		return false
	}
	_, err = store.Diff(ctx, store.BaseTree(), tree)
	return err == nil
}

// openSubject makes the store: from the forge where the claim is about one, else from this checkout.
func (v *verification) openSubject(ctx context.Context) error {
	c := v.of.claim
	if v.of.forge == nil {
		if v.req.checkout == "" {
			return usage(errors.New("the run had no forge, and this is no checkout. Next: cd into the repository that the run worked on"))
		}
		store, err := v.git.OpenStore(ctx, git.StoreOptions{Checkout: v.req.checkout, Dir: v.place("store"), Base: c.Base.ID})
		if err != nil {
			return err
		}
		return v.adopt(ctx, store)
	}
	r := v.of.forge.Remote()
	store, err := v.git.OpenRemote(ctx, git.RemoteOptions{
		Remote: git.Remote{URL: r.URL, Username: r.Username, Token: r.Token}, Refs: v.of.refs, Base: c.Base.ID,
		Checkout: v.req.checkout, Dir: v.place("store"),
	})
	if err != nil {
		return fmt.Errorf("fetch %s: %w", v.of.what, err)
	}
	return v.adopt(ctx, store)
}
