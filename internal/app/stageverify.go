package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/gate"
	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/loop"
	"github.com/proctor-ci/proctor/internal/trigger"
)

const (
	verifiedFile   = "verified.json"
	verifiedSchema = 1
)

// verified is what the verify job found. The publish job gets it as an output of that job, which no other job can write: an artifact of any name
// the agent's job could have made first. It lies beside the report for people.
type verified struct {
	Schema   int             `json:"schema"`
	CI       string          `json:"ci_run"`
	Run      string          `json:"run"` // in the agent's job
	Base     evidence.Commit `json:"base"`
	Head     evidence.Commit `json:"head,omitzero"`
	Config   string          `json:"config"`
	Terminal string          `json:"terminal"` // done: patch policy and proof held
	Reason   string          `json:"reason"`
	Next     string          `json:"next"`

	Gates []evidence.ClaimedGate `json:"gates"` // of the proof, in the order they ran
}

// meetForge asks the forge for what the verify job needs of it: which repository and which branch rules. It has no business with the issue.
func (s *session) meetForge(ctx context.Context) error {
	repo, err := s.req.forge.Repository(ctx)
	if err != nil {
		return err
	}
	s.trigger.Repo = trigger.Repo{Owner: repo.Owner, Name: repo.Name, ID: repo.ID, DefaultBranch: repo.DefaultBranch, Archived: repo.Archived, Private: repo.Private}
	s.rec.Trigger.Repo = s.trigger.Repo.FullName()
	s.connectGit()
	return s.ruledByMain(ctx)
}

// receive reads the handover and takes the commit's bytes from it, and nothing else.
func (s *session) receive(ctx context.Context) (err error) {
	if s.handed, err = s.readHandover(); errors.Is(err, errNoHandover) {
		return refused("there is no handover in "+s.req.handover+": the agent's job left none, or its artifact was not downloaded there", "download the artifact of this workflow run's agent job, and run this job only where the agent job gave the output commit")
	}
	if err != nil {
		return err
	}
	if s.handed.Head == (evidence.Commit{}) {
		return refused("the agent's job ended as "+s.handed.rec.Terminal+" and handed no proved commit over", "run this job only where the agent job gave the output commit")
	}
	s.rec.Trigger = s.handed.rec.Trigger
	s.rec.Trigger.Verified = false // this job asked no forge for the issue
	s.rec.Staged = &evidence.Staged{Stage: string(stageVerify), Agent: s.handed.Run}
	s.line, err = s.unpack(ctx)
	if err == nil {
		s.rec.Head = &evidence.Commit{ID: s.handed.Head.ID, Tree: s.handed.Head.Tree}
	}
	return err
}

// arrange makes what a proof needs, by the base commit's configuration. No model is asked, so there is no meter and no key.
func (s *session) arrange(ctx context.Context) error {
	for _, step := range []func(context.Context) error{s.confine, s.enterSubmodules, s.holdOut, s.makeGuard} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// recheck holds the commits to the patch policy before any code of theirs runs.
func (s *session) recheck(ctx context.Context) error { return s.patrol(ctx, s.line) }

// reproof runs the whole proof of the commit, and the added tests on the base code where they are required to fail there.
func (s *session) reproof(ctx context.Context) error {
	const n = 1
	s.tick(n).Note = "made in the agent's job and proved again here; no agent was called"
	id := git.ID(s.handed.Head.ID)
	if s.cfg.Prove.TestsFailFirst == "require" {
		seen, err := s.tryFirst(ctx, loop.GateSeen{Status: loop.GatePassed})
		if err != nil {
			return err
		}
		if !passedAll(seen) && ctx.Err() == nil {
			return s.notReproduced("tests-fail-first: "+seen.Detail, "")
		}
	}
	seen, err := s.prove(ctx, id, n)
	switch {
	case err != nil:
		return err
	case seen.Stopped || ctx.Err() != nil:
		return &ended{terminal: evidence.Cancelled, reason: "stopped on request"}
	case seen.Broken:
		return &ended{terminal: evidence.GateBroken, reason: "the " + seen.Gate + " gate could not run on the verify job's machine", next: "bring what its command needs (the toolchain, a service) to the verify job as well as to the agent's, then add the label again"}
	case !seen.Passed:
		return s.notReproduced("the "+seen.Gate+" gate does not pass on a fresh machine", "")
	}
	s.proved = id
	s.rec.Staged.Verified = true
	s.rec.Finish(evidence.Done, "patch policy and proof of commit "+short(string(id))+" hold on a fresh machine", "the publish job pushes exactly this commit")
	return nil
}

func (s *session) notReproduced(reason, next string) error {
	return &ended{terminal: evidence.NotReproduced, reason: reason, next: next}
}

// vouch writes what the verify job found, whatever it was.
func (s *session) vouch() {
	v := verified{
		Schema: verifiedSchema, CI: s.req.runURL, Base: s.rec.Base, Config: s.rec.Config.Digest,
		Terminal: s.rec.Terminal, Reason: s.rec.Reason, Next: s.rec.Next, Gates: []evidence.ClaimedGate{},
	}
	if s.handed != nil {
		v.Run = s.handed.Run
	}
	if s.rec.Terminal == evidence.Done {
		v.Head = *s.rec.Head
	}
	for _, t := range s.rec.Ticks {
		for _, g := range t.Proof {
			v.Gates = append(v.Gates, evidence.ClaimedGate{Class: g.Class, Name: g.Name, Status: g.Status, Exit: g.ExitCode})
		}
	}
	if err := writeJSON(filepath.Join(s.req.reports, verifiedFile), v); err != nil {
		s.say("what was found could not be passed on to the next job: " + err.Error())
	}
}

// readVerified reads the verify job's output.
func readVerified(text string) (verified, error) {
	var v verified
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&v); err != nil || v.Schema != verifiedSchema {
		return v, refused("the input verified is no finding of a verify job of this version", "write `verified: ${{ needs.verify.outputs.verified }}`, and use one version of proctor in all jobs")
	}
	return v, nil
}

// vouched holds the verify job's finding to the handover and to what this job knows itself.
func (s *session) vouched(v verified) error {
	h := s.handed
	switch {
	case v.Terminal != evidence.Done:
		return refused("the verify job ended as "+v.Terminal+": "+v.Reason, "run the publish job only behind a verify job that succeeded")
	case v.CI != s.req.runURL || v.Run != h.Run:
		return refused("the verify job vouches for another run", sameRun)
	case v.Base != s.rec.Base || v.Config != s.rec.Config.Digest:
		return refused("the verify job vouches for work on another base commit or configuration", sameRun)
	case v.Head != h.Head || v.Head == (evidence.Commit{}):
		return refused(fmt.Sprintf("the verify job vouches for commit %s, and commit %s is handed over", short(v.Head.ID), short(h.Head.ID)), "look at the agent job's machine, then ask again")
	}
	// Which gates there are says the base commit, not whoever wrote the list.
	for _, spec := range s.gateSpecs() {
		passed := false
		for _, g := range v.Gates {
			passed = passed || g.Class == string(spec.Class) && g.Name == spec.Name && g.Status == string(gate.Passed)
		}
		if !passed {
			return refused("the verify job does not say that the "+spec.Name+" gate passed", "use one version of proctor in all jobs")
		}
	}
	return nil
}
