package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/trigger"
)

// inspections are the commands that look at the open pull request of an issue and are no run: each ends the job.
func (s *session) inspections() map[string]func(context.Context) error {
	return map[string]func(context.Context) error{"verify": s.verifyHead, "review": s.reviewHead}
}

// look is the station of such a command; for every other request it is none.
func (s *session) look(ctx context.Context) error {
	if s.trigger.Command == nil {
		return nil
	}
	engine, ok := s.inspections()[s.trigger.Command.Name]
	if !ok {
		return nil
	}
	if err := s.findPull(ctx); err != nil {
		return err
	}
	return engine(ctx)
}

// findPull finds what a command on an issue is about: the open pull request that a run opened for it, the newest where there are more.
func (s *session) findPull(ctx context.Context) error {
	if s.change != nil {
		return nil // the command stands on it
	}
	n := s.trigger.Issue.Number
	heads, err := s.headsOf(ctx, n)
	if err != nil {
		return err
	}
	for _, head := range heads {
		pr, err := s.req.forge.FindPullRequest(ctx, head)
		if errors.Is(err, forge.ErrNotFound) {
			continue
		}
		if err != nil {
			return fmt.Errorf("find the pull request of branch %s: %w", head, err)
		}
		issue, err := s.issueOf(ctx, pr)
		if err != nil {
			return err
		}
		if issue == n && (s.change == nil || pr.Number > s.change.Number) {
			s.change = &pr
		}
	}
	if s.change == nil {
		return refused(fmt.Sprintf("no pull request that a run opened for issue %d is open", n), "write "+s.prefix()+" run for one, or the command on a pull request of Proctor's")
	}
	return nil
}

// headsOf are the branches from which pull requests for an issue are open, by their names.
func (s *session) headsOf(ctx context.Context, issue int) ([]string, error) {
	prefix, _, _ := strings.Cut(s.cfg.Publish.Branch, "{")
	counter, ok := s.req.forge.(forge.PullCounter)
	if !ok || prefix == "" {
		return []string{s.branchName()}, nil
	}
	heads, err := counter.OpenPulls(ctx, prefix)
	if err != nil {
		return nil, fmt.Errorf("look for the open pull requests: %w", err)
	}
	return slices.DeleteFunc(heads, func(h string) bool {
		n, named := trigger.IssueOfBranch(h, s.cfg.Publish.Branch)
		return !named || n != issue
	}), nil
}

// beginInspection says where it stands that the work on a command has begun: from here on the answer is the record's.
func (s *session) beginInspection(ctx context.Context, v evidence.Inspection) {
	v.Number, v.URL, v.Branch = s.change.Number, s.change.URL, s.change.Head
	s.rec.Inspection = &v
	s.acknowledge(ctx, forge.ReactionAccepted)
}
