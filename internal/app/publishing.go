package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/policy"
	"github.com/proctor-ci/proctor/internal/publish"
)

// branchName fills in publish.branch. A goal without an issue has no number, so its key stands there.
func (s *session) branchName() string {
	pattern := s.cfg.Publish.Branch
	if n := s.trigger.Issue.Number; n != 0 {
		return strings.ReplaceAll(pattern, "{number}", strconv.Itoa(n))
	}
	return strings.ReplaceAll(strings.ReplaceAll(pattern, "issue-{number}", s.key()), "{number}", s.key())
}

func (s *session) baseBranch() string {
	if s.cfg.Publish.Base != "" {
		return s.cfg.Publish.Base
	}
	return s.trigger.Repo.DefaultBranch
}

// rebase follows a default branch that was renamed while the run went on: a pull request for the old name would be refused.
func (s *session) rebase(ctx context.Context) {
	repo, err := s.req.forge.Repository(ctx)
	if err != nil || repo.DefaultBranch == s.trigger.Repo.DefaultBranch || repo.DefaultBranch == "" {
		return // what is wrong with the forge shows at the next step, with its own words
	}
	s.note(fmt.Sprintf("the default branch was renamed from %s to %s while the run went on", s.trigger.Repo.DefaultBranch, repo.DefaultBranch))
	s.trigger.Repo.DefaultBranch = repo.DefaultBranch
	s.remote.DefaultBranch = repo.DefaultBranch
}

// Push makes the branch point at the commit, only over what the run saw there.
func (s *session) Push(ctx context.Context, branch, commit, expect string) error {
	r := s.remote
	r.Branch = branch
	err := s.store.Push(ctx, r, []git.RefUpdate{{Name: "refs/heads/" + branch, New: git.ID(commit), Expect: git.ID(expect)}})
	var refused *git.RemoteError
	if errors.As(err, &refused) {
		return &publish.PushError{Output: refused.Output, Next: refused.Next, Err: err}
	}
	return err
}

// nameHead has the record name the proved commit.
func (s *session) nameHead(ctx context.Context) error {
	if s.proved == "" {
		return errors.New("the loop ended done without a proved commit")
	}
	tree, err := s.store.Tree(ctx, s.proved)
	if err != nil {
		return fmt.Errorf("read the proved commit: %w", err)
	}
	s.rec.Head = &evidence.Commit{ID: string(s.proved), Tree: string(tree)}
	return nil
}

// publish pushes the proved commit and opens the draft.
func (s *session) publish(ctx context.Context) error {
	if s.rec.Terminal != evidence.Done || s.req.dryRun {
		return nil
	}
	if err := s.nameHead(ctx); err != nil {
		return err
	}
	if s.req.forge == nil {
		return s.keepLocally(ctx)
	}
	// A forge that asks for patience may take longer than the lease. It is renewed until the run gives it back; what somebody asks of a proved run
	// no longer stops it.
	_, s.unhold = s.holdLease(ctx)
	s.rebase(ctx)
	if err := s.tellTakenOut(ctx); err != nil {
		return err
	}
	s.settle()
	commits := &signer{store: s.store, as: map[git.ID]git.ID{}}
	p := publish.Publisher{Forge: s.req.forge, Push: s, Commits: commits, Log: s.log, Redact: s.red}
	var out publish.Result
	err := s.stillWanted(ctx)
	if err == nil {
		out, err = p.Publish(ctx, publish.Request{
			Record: s.rec, Target: s.target, Base: s.baseBranch(),
			Reviewers: s.cfg.Publish.Reviewers, Assignees: s.cfg.Publish.Assignees, Labels: s.cfg.Publish.Labels,
			Signing: s.cfg.Publish.Signing, Signed: s.signedBefore(),
			Pushing: func(ctx context.Context, signing evidence.Signing) error {
				return s.rememberSigned(ctx, signing, commits.as)
			},
		})
	}
	for _, n := range out.Notes {
		s.note(n)
	}
	var failed *publish.Failure
	if errors.As(err, &failed) {
		failed.Settle(&s.rec)
		s.keepBundle(ctx)
		return nil
	}
	if err != nil {
		return err
	}
	published := out.Published
	s.rec.Published, s.rec.Signing = &published, out.Signing
	s.emit(evidence.PublishedPR, 0, slog.String(evidence.KeyBranch, published.Branch), slog.String(evidence.KeyCommit, published.Commit), slog.Int(evidence.KeyNumber, published.Number),
		slog.String(evidence.KeyURL, published.URL), slog.Bool(evidence.KeyDraft, published.Draft), slog.Bool(evidence.KeyUpdated, published.Updated))
	s.saved.Published = s.id
	s.saved.settle(s.round)
	// Before the threads, which may take long: what was settled is not worked on again.
	if err := s.save(ctx); err != nil {
		s.note("the checkpoint does not know that the draft is open: " + err.Error())
	}
	s.answerThreads(ctx)
	return nil
}

// bundleFile lies beside the record of a run that could not publish: its forge may be gone, with the run's ref.
const bundleFile = "proctor.bundle"

// keepBundle puts the proved commit where the job's artifacts come from.
func (s *session) keepBundle(ctx context.Context) {
	branch := first(s.rec.Branch, s.branchName())
	if err := s.store.Bundle(ctx, filepath.Join(s.req.reports, bundleFile), branch, s.proved); err != nil {
		s.note("the proved commit could not be put beside the record: " + err.Error())
		return
	}
	s.note(fmt.Sprintf("the proved commit also lies beside the record: in a clone that has the base commit, git fetch %s %s", bundleFile, branch))
}

// outcome is the label event of a terminal.
func outcome(r evidence.Record) policy.Event {
	switch {
	case r.Terminal == evidence.Done && r.Published != nil:
		return policy.EventPublished
	case r.Terminal == evidence.Refused:
		return policy.EventRefused
	case r.ExitCode == 1, r.ExitCode == 5, r.ExitCode == 6, r.ExitCode == 130:
		return policy.EventFailed
	}
	return policy.EventNeedsHuman
}
