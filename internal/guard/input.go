package guard

import (
	"context"

	"github.com/proctor-ci/proctor/internal/git"
)

// What a tree diff and a snapshot say, in the words of the package that makes them.
type (
	Change  = git.Change
	Entry   = git.Entry
	Problem = git.Problem
)

func present(e Entry) bool { return e.Mode != 0 }

// isBlob says whether the entry has content that can be read: a file or a symlink.
func isBlob(e Entry) bool { return e.Mode.IsFile() || e.Mode == git.ModeSymlink }

// Blobs reads objects; [git.Store] is one. ReadBlob fails on a blob longer than max bytes rather than cut it.
type Blobs interface {
	Size(ctx context.Context, id git.ID) (int64, error)
	ReadBlob(ctx context.Context, id git.ID, max int64) ([]byte, error)
}

// Input is one candidate. Changes go from the base tree to the candidate tree, without rename detection, and
// are what the policy judges. Tick holds parent → candidate for every commit that would be pushed with this
// one, in any order: its new blobs are scanned for secrets and size even when the candidate no longer has them.
type Input struct {
	Changes  []Change
	Problems []Problem // what the snapshot met that no tree can hold
	Tick     []Change
	// Share goes from where a round on an open change began to the candidate; nil outside one. Tests that only the branch had are not in
	// the base, and can be lost there all the same.
	Share []Change
	// Theirs tells the paths of the branch that people have changed: there a sign in Share blocks as one in Changes does. What
	// only this program wrote it may take back, which is shown. nil: none.
	Theirs func(path string) bool
	// Conflicts are files in which the round had two versions to join: there a test may have to change, and none has to go.
	Conflicts []string
	// Paths are all paths of the candidate tree. They let a new name be compared with the unchanged
	// ones for a fold collision; nil compares the changed names only.
	Paths []string
	Blobs Blobs
}
