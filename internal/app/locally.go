package app

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/git"
)

// sameName is how many branches of one name a checkout may have before a person has to tidy up.
const sameName = 1000

// keepLocally makes the proved commit a branch of the checkout, where there is no forge to push to.
func (s *session) keepLocally(ctx context.Context) error {
	branch, err := s.exportFree(ctx, s.branchName(), s.proved)
	if err != nil {
		return &ended{terminal: evidence.PublishFailed, reason: "the proved commit could not be kept as a branch: " + err.Error(), err: err}
	}
	s.rec.Branch = branch
	s.note("the proved commit is the local branch " + branch)
	return nil
}

// exportFree makes a branch of that name, or of the first with a number behind it that is free: the same goal may be
// worked on twice, and a branch that is there is somebody's.
func (s *session) exportFree(ctx context.Context, name string, commit git.ID) (string, error) {
	branch := name
	for n := 2; ; n++ {
		err := s.store.Export(ctx, s.req.checkout, branch, commit)
		if !errors.Is(err, git.ErrBranchExists) || n > sameName {
			return branch, err
		}
		branch = fmt.Sprintf("%s-%d", name, n)
	}
}

// unproved marks a branch with work that was stopped before it was proved.
const unproved = "-unproved"

// keepUnproved keeps what a run without a forge had come to as a branch of the checkout: the run's directory goes, and
// with it the only copy. The guard has passed what is kept.
func (s *session) keepUnproved(ctx context.Context) {
	if s.req.forge != nil || s.store == nil || s.rec.Terminal == evidence.Done || s.rec.Terminal == evidence.PublishFailed {
		return
	}
	s.rec.Next = localWords.Replace(s.rec.Next)
	good := s.saved.State.Good
	if good.ID == "" || good.ID == s.rec.Base.ID {
		return
	}
	s.rec.Head = &evidence.Commit{ID: good.ID, Tree: good.Tree}
	branch, err := s.exportFree(ctx, s.branchName()+unproved, git.ID(good.ID))
	if err != nil {
		s.note("the work could not be kept as a branch: " + err.Error())
		return
	}
	s.rec.Kept = "refs/heads/" + branch
	s.note(fmt.Sprintf("the work is not proved; it is the local branch %s. Look at it with git diff %s %s; to go on from it, git switch %s and run the same command again", branch, short(s.rec.Base.ID), branch, branch))
}

// localWords says a next step to a person at their own machine: there is no label to add, and no comment to write.
var localWords = strings.NewReplacer(
	" or add to it with /proctor budget", "",
	"label the issue again, or /proctor resume, to go on", "run the same command again",
	"label again to resume", "run the same command again",
	"label again", "run the same command again",
	"Add the label again to resume", "Run the same command again",
	"add the label again to resume", "run the same command again",
	"add the label again", "run the same command again",
)
