package app

import (
	"context"
	"fmt"
	"strings"

	"github.com/proctor-ci/proctor/internal/config"
	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/publish"
)

// signedWork is what the forge signed for this issue last. It lies in the checkpoint from before it is pushed.
type signedWork struct {
	Signing evidence.Signing  `json:"signing"`
	As      map[git.ID]git.ID `json:"as"` // the signed commit of each proved one
}

// signer is the run's commits, for publish to have them signed.
type signer struct {
	store *git.Store
	as    map[git.ID]git.ID
}

// Unsigned lists them. The checkpoint was pushed with the proved commit below it, so that the forge has what they are made of.
func (s *signer) Unsigned(ctx context.Context, head string) ([]publish.Unsigned, error) {
	all, err := s.store.Unsigned(ctx, git.ID(head))
	if err != nil {
		return nil, err
	}
	var out []publish.Unsigned
	for _, c := range all {
		u := publish.Unsigned{ID: string(c.ID), NewCommit: forge.NewCommit{Tree: string(c.Tree), Message: c.Message}}
		for _, p := range c.Parents {
			u.Parents = append(u.Parents, string(p))
		}
		out = append(out, u)
	}
	return out, nil
}

// Keep puts a signed commit into the store, built there from what was signed.
func (s *signer) Keep(ctx context.Context, c publish.Unsigned, parents []string, made forge.MadeCommit) error {
	ours, err := s.store.ReadCommit(ctx, git.ID(c.ID))
	if err != nil {
		return err
	}
	var on []git.ID
	for _, p := range parents {
		on = append(on, git.ID(p))
	}
	if err := s.store.KeepSigned(ours, on, git.Signed{ID: git.ID(made.ID), Payload: made.Payload, Signature: made.Signature}); err != nil {
		return err
	}
	s.as[ours.ID] = git.ID(made.ID)
	return nil
}

// rememberSigned puts what is about to be pushed into the checkpoint: if this machine is lost behind the push, the next run knows the branch for ours.
func (s *session) rememberSigned(ctx context.Context, signing evidence.Signing, as map[git.ID]git.ID) error {
	if old := s.saved.Signed; old == nil || old.Signing.Pushed == nil || *old.Signing.Pushed != *signing.Pushed {
		s.saved.Signed = &signedWork{Signing: signing, As: as}
		s.saved.Pushed = append(s.saved.Pushed, signing.Pushed.ID)
	}
	return s.save(ctx)
}

// signedBefore is what an earlier run had signed, nil where none did.
func (s *session) signedBefore() *evidence.Signing {
	if s.saved.Signed == nil {
		return nil
	}
	return &s.saved.Signed.Signing
}

// onForge is a proved commit under the id that it has on the branch.
func (s *session) onForge(id git.ID) git.ID {
	if g := s.rec.Signing; g == nil || !g.Signed || s.saved.Signed == nil {
		return id
	}
	if as, ok := s.saved.Signed.As[id]; ok {
		return as
	}
	return id
}

// signable refuses a required signature where it is known before anything is asked that there will be none.
func (s *session) signable(ctx context.Context) error {
	if s.cfg.Publish.Signing != "required" {
		return nil
	}
	why := "a run without a forge has nobody to sign for it"
	if f := s.req.forge; f != nil {
		why = publish.CannotSign(f)
		if maker, ok := f.(forge.CommitMaker); ok {
			why = maker.Unsigned()
		}
	}
	if why == "" {
		return nil
	}
	return s.unsignable(ctx, why)
}

func (s *session) unsignable(ctx context.Context, why string) error {
	return usage(fmt.Errorf("%s: publish.signing: a signature is required, and there can be none: %s. Next: run with a job's own token or an App's on GitHub, or set it to auto, which publishes all the same and says why nothing is signed", s.placeOf(ctx, "publish.signing"), why))
}

// placeOf is where the configuration sets a key: file and line.
func (s *session) placeOf(ctx context.Context, key string) string {
	data, err := s.store.ReadFile(ctx, s.store.Base(), s.cfgPath, config.MaxBytes)
	if err != nil {
		return s.configName()
	}
	_, origins, err := config.Origins(s.cfgPath, data)
	if err != nil {
		return s.configName()
	}
	for _, o := range origins {
		if at, ok := strings.CutPrefix(o.From, "file "); ok && o.Key == key {
			return at
		}
	}
	return s.configName()
}

// trySigning has the forge make a commit of the base's own tree, which nothing points at, where a signature is required: whether it signs is known
// then before anything is spent.
func (s *session) trySigning(ctx context.Context) error {
	maker, ok := s.req.forge.(forge.CommitMaker)
	if s.cfg.Publish.Signing != "required" || !ok || !s.writes() {
		return nil
	}
	made, err := maker.MakeCommit(ctx, forge.NewCommit{Tree: s.rec.Base.Tree, Parents: []string{s.rec.Base.ID}, Message: "Try whether commits are signed\n"})
	if err != nil {
		return fmt.Errorf("%s: publish.signing: a signature is required, and the forge was asked whether it signs: %w", s.placeOf(ctx, "publish.signing"), err)
	}
	if !made.Verified {
		return s.unsignable(ctx, fmt.Sprintf("the forge did not sign the commit that it made to try it, and says %q", made.Reason))
	}
	return nil
}
