package guard

import "github.com/proctor-ci/proctor/internal/git"

// fromProblem gives a finding to everything that the snapshot could not say in a tree, so that nothing is
// left out in silence. A fifo or socket is no part of any commit and only shown.
func fromProblem(p Problem) Finding {
	f := Finding{Rule: BadName, Level: Halt, Path: p.Path, Detail: printable(p.Detail), Next: "remove it"}
	if f.Detail == "" {
		f.Detail = printable(p.Kind)
	}
	switch p.Kind {
	case git.NestedRepository:
		f.Rule = NestedRepo
	case git.SubmoduleContent:
		f.Rule = Gitlink
	case git.SubmoduleEdited:
		f.Rule, f.Level, f.Next = Gitlink, Block, "put the submodule back as it was: a change of it is made in its own repository"
	case git.SealedTouched:
		f.Rule, f.Next = Sealed, "leave held-out files alone"
	case git.TooLarge:
		f.Rule, f.Level, f.Next = FileSize, Block, "remove the file or make it smaller"
	case git.Unreadable:
		f.Rule, f.Level, f.Next = Unreadable, Block, "make it readable again or remove it"
	case git.OddFile, git.BadIgnore:
		f.Rule, f.Level, f.Next = Odd, Flag, ""
	}
	return f
}
