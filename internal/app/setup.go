package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/proctor-ci/proctor/internal/detect"
	"github.com/proctor-ci/proctor/internal/gate"
	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/loop"
)

// unreadyError: a checkout could not be made ready for its gates, so nothing can be tested there.
type unreadyError struct {
	command string
	status  gate.Status // of the command that did not pass
	exit    int
}

func (e *unreadyError) Error() string {
	return fmt.Sprintf("setup %q %s with exit code %d. Next: run it on a clean checkout; it has no network but what sandbox.egress lists", e.command, strings.ReplaceAll(string(e.status), "_", " "), e.exit)
}

// seen is what it means on the base commit.
func (e *unreadyError) seen() loop.GateSeen {
	if e.status == gate.Stopped {
		return loop.GateSeen{Status: loop.GateStopped}
	}
	return loop.GateSeen{Status: loop.GateWasted, Detail: e.Error()}
}

// setup runs the configured preparation in a fresh place; a command of it that does not pass is an *unreadyError.
func (s *session) setup(ctx context.Context, at place, tick int) error {
	r, err := s.prepareAt(ctx, at, tick)
	if err != nil {
		return err
	}
	if r != nil {
		return &unreadyError{command: commandLine(r.Argv), status: r.Status, exit: r.ExitCode}
	}
	return nil
}

// prepareAt runs the setup commands and gives the first that did not pass, nil when all did.
func (s *session) prepareAt(ctx context.Context, at place, tick int) (*gate.Result, error) {
	for i, c := range s.cfg.Setup {
		spec := gate.Spec{Class: gate.Setup, Name: fmt.Sprintf("setup %d", i+1), Argv: c.Argv, Timeout: s.cfg.Gates.Timeout}
		r, err := s.runGate(ctx, spec, at, tick)
		if err != nil {
			return nil, err
		}
		if r.Status != gate.Passed {
			return &r, nil
		}
	}
	return nil, nil
}

// refresh repeats the setup in the gates' directory when the candidate's dependencies differ from those it was
// last made ready for. What fails then is the candidate's: the same commands passed on the base commit.
func (s *session) refresh(ctx context.Context, commit git.ID, tick int) (loop.GateSeen, error) {
	passed := loop.GateSeen{Status: loop.GatePassed}
	if len(s.cfg.Setup) == 0 {
		return passed, nil
	}
	want, err := s.dependencies(ctx, commit)
	if err != nil || want == s.readyFor {
		return passed, err
	}
	s.readyFor = "" // until all of it has passed
	r, err := s.prepareAt(ctx, s.gatePlace("gate"), tick)
	if err != nil {
		return passed, err
	}
	if r == nil {
		s.readyFor = want
		return passed, nil
	}
	seen := s.seen(*r)
	seen.From, seen.Command = "setup", commandLine(r.Argv)
	if seen.Status == loop.GateWasted {
		seen.Status = loop.GateFailed
		seen.Feedback = gate.Feedback(*r, feedbackBytes)
	}
	return seen, nil
}

// dependencies names what a commit depends on: the content of all manifests and lock files.
func (s *session) dependencies(ctx context.Context, commit git.ID) (string, error) {
	tree, err := s.store.Tree(ctx, commit)
	if err != nil {
		return "", fmt.Errorf("read the candidate's dependencies: %w", err)
	}
	var found []string
	err = s.store.Walk(ctx, tree, func(path string, e git.Entry) error {
		if detect.Dependencies(path) {
			found = append(found, path+"\x00"+string(e.ID))
		}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("read the candidate's dependencies: %w", err)
	}
	slices.Sort(found)
	sum := sha256.Sum256([]byte(strings.Join(found, "\n")))
	return hex.EncodeToString(sum[:]), nil
}

// agentPlace is the agent's directory, where only the setup runs as a gate does.
const agentPlace = "agent"

// setupAgent makes the agent's directory ready before its first call, so that it can run the tests as well. What
// the setup leaves that is neither tracked nor ignored goes again: it would be taken for the agent's change.
func (s *session) setupAgent(ctx context.Context, tick int) error {
	if s.agentReady || len(s.cfg.Setup) == 0 {
		return nil
	}
	s.agentReady = true
	at := place{where: agentPlace, Place: gate.Place{
		Dir: s.agentTree.Dir(), Home: s.agentHome, Tmp: s.agentTmp, ReadOnly: s.toolDirs, Env: s.gateEnv(s.agentHome, s.agentTmp), KeepOutput: true,
	}}
	r, err := s.prepareAt(ctx, at, tick)
	if err != nil {
		return err
	}
	if r != nil {
		s.note(fmt.Sprintf("the agent works in a directory that is not set up: %q %s there, and passed in the gates' own", commandLine(r.Argv), strings.ReplaceAll(string(r.Status), "_", " ")))
	}
	if err := s.Restore(ctx, s.begun0().Good); err != nil {
		return fmt.Errorf("after the setup of the agent's directory: %w", err)
	}
	return nil
}
