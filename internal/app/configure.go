package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/proctor-ci/proctor/internal/config"
	"github.com/proctor-ci/proctor/internal/detect"
	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/gate"
)

// configure reads the configuration of the base commit and narrows it by what the door asked.
func (s *session) configure(ctx context.Context) error {
	path, data, err := config.Find(func(p string) ([]byte, error) {
		return s.store.ReadFile(ctx, s.store.Base(), p, config.MaxBytes)
	})
	switch {
	case err != nil:
		return usage(err)
	case path == "":
		if err := s.propose(ctx); err != nil {
			return err
		}
	default:
		if s.cfg, err = config.Load(path, data); err != nil {
			return usage(err)
		}
		s.cfgPath = path
	}
	// The digest is of what the base commit says, so that anybody can work it out again; what the door
	// narrowed is among the notes.
	s.rec.Config = evidence.ConfigRef{Path: s.cfgPath, Digest: config.Digest(s.cfg)}
	cfg, changed, err := config.Narrow(s.cfg, s.req.override)
	if err != nil {
		return usage(err)
	}
	s.cfg = cfg
	if s.cfg.Review.Model == "" {
		s.cfg.Review.Model = defaultReviewModel
	}
	for _, c := range changed {
		s.note(c)
	}
	s.rec.Ceilings = evidence.Ceilings{Ticks: s.cfg.Stops.MaxTicks, CostUSD: s.cfg.Stops.MaxCost, Millis: s.cfg.Stops.MaxDuration.Milliseconds()}
	return s.acceptable()
}

// defaultReviewModel judges where review.model is not set.
const defaultReviewModel = "claude-sonnet-4-5"

// propose stands in for a file: what detect sees in the base commit, said aloud.
func (s *session) propose(ctx context.Context) error {
	tree, err := newTreeFS(ctx, s.store, s.store.BaseTree())
	if err != nil {
		return err
	}
	cfg, assumed := detect.Detect(tree).Config()
	s.cfg = cfg
	s.note("there is no configuration file: the run goes by what the repository looks like")
	for _, p := range config.Paths() {
		if _, err := os.Stat(filepath.Join(s.req.checkout, filepath.FromSlash(p))); err == nil {
			s.note(p + " exists and is not committed: only what the base commit holds counts")
		}
	}
	for _, a := range assumed {
		s.note("assumed: " + a)
	}
	return nil
}

// acceptable refuses what cannot be kept: gates that prove nothing, and keys whose engine does not exist yet.
func (s *session) acceptable() error {
	if !slices.ContainsFunc(s.gateSpecs(), func(g gate.Spec) bool { return g.Class == gate.Iteration }) {
		return usage(errors.New("no gate is known, so nothing could be proved. Next: add gates.iteration to .github/proctor.yml with the command that tests this repository"))
	}
	if err := s.checkTrivial(); err != nil {
		return err
	}
	if missing := notYet(s.cfg); len(missing) > 0 {
		return usage(fmt.Errorf("%s asks for what this version cannot do: %s. Next: take the key out", s.configName(), oneOf(missing)))
	}
	return nil
}

func (s *session) configName() string {
	if s.cfgPath == "" {
		return "the proposed configuration"
	}
	return s.cfgPath
}

// notYet lists the keys that are set and whose engine this version does not have: to go on would break a promise.
func notYet(c config.Config) (missing []string) {
	for _, k := range []struct {
		key string
		set bool
	}{
		{"workspace.lfs (large files stay pointers: where gates need their content, let an earlier step of the job fetch it into an ignored folder and name that under workspace.carry)", c.Workspace.LFS},
	} {
		if k.set {
			missing = append(missing, k.key)
		}
	}
	return missing
}
