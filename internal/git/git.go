// Package git owns every git process, object store and workspace of a run: hardened calls, snapshots,
// sealing, proof checkouts, pushes. It must never run git inside a directory that an agent or a gate
// can write, nor let anything a repository contains execute or steer the harness.
package git

import (
	"fmt"
	"strings"
)

// ID is an object id in lower-case hex: 40 digits with SHA-1, 64 with SHA-256. Empty: none.
type ID string

// Mode is a tree entry's mode as git stores it.
type Mode uint32

// The only modes that a tree of ours may hold.
const (
	ModeFile       Mode = 0o100644
	ModeExecutable Mode = 0o100755
	ModeSymlink    Mode = 0o120000
	ModeGitlink    Mode = 0o160000
	ModeTree       Mode = 0o040000
)

// String is the mode in six octal digits, as git prints it; "000000" stands for an absent side.
func (m Mode) String() string { return fmt.Sprintf("%06o", uint32(m)) }

// IsFile reports whether the entry's id names a blob that is a regular file.
func (m Mode) IsFile() bool { return m == ModeFile || m == ModeExecutable }

// Entry is what a path holds in a tree. A zero Mode means that the path is absent.
type Entry struct {
	Mode Mode
	ID   ID
}

// Change is one path that differs between two trees. A side with a zero Mode does not have the path.
// A rename is two changes: nothing here detects renames, so that no rule can be led past by one.
type Change struct {
	Path     string // bytes as git has them, "/" between components
	Old, New Entry
}

// Status is git's letter for the change: A, D, M, or T when the kind of entry changed.
func (c Change) Status() string {
	switch {
	case c.Old.Mode == 0:
		return "A"
	case c.New.Mode == 0:
		return "D"
	case c.Old.Mode.IsFile() != c.New.Mode.IsFile() || !c.Old.Mode.IsFile() && c.Old.Mode != c.New.Mode:
		return "T"
	default:
		return "M"
	}
}

// Kinds of Problem.
const (
	// NestedRepository: a directory below the root holds a .git of its own.
	NestedRepository = "nested-repository"
	// SubmoduleContent: a submodule's directory holds files although submodules are not entered.
	SubmoduleContent = "submodule-content"
	// SubmoduleEdited: files of a submodule that was entered differ from its commit. They are left out.
	SubmoduleEdited = "submodule-edited"
	// OddFile: a fifo, socket or device, which git cannot store. It is left out of the tree.
	OddFile = "odd-file"
	// Unreadable: the harness may not read it, so that the tree does not show what is there.
	Unreadable = "unreadable"
	// BadName: a name that git or a forge refuses (.GIT, git~1, a symlink called .gitmodules). Left out.
	BadName = "bad-name"
	// SealedTouched: something lies at a sealed path or in the place of its parent. Left out.
	SealedTouched = "sealed-path"
	// TooLarge: over SnapshotOptions.MaxFileBytes. Left out.
	TooLarge = "too-large"
	// TooDeep: a path longer than 4,096 bytes. Left out.
	TooDeep = "too-deep"
	// BadIgnore: a .gitignore that is no regular file or over 1 MiB; it has no effect.
	BadIgnore = "bad-ignore"
)

// Problem is something in a working tree that a commit cannot say, or must not.
type Problem struct {
	Path   string
	Kind   string
	Detail string // one line
}

// Lossy reports whether the snapshot's tree is not the whole truth about the directory because of p:
// what is pushed would differ from what the agent made. An odd file (a socket, a fifo) is not counted,
// since no commit could hold it.
func (p Problem) Lossy() bool { return p.Kind != OddFile && p.Kind != BadIgnore }

// objectID checks hex and length for the format; hostile or mistyped ids never reach a command line.
func (f format) objectID(s string) (ID, error) {
	if len(s) != f.size*2 || strings.Trim(s, "0123456789abcdef") != "" {
		return "", fmt.Errorf("%q is no %s object id: give all %d lower-case hex digits", s, f.name, f.size*2)
	}
	return ID(s), nil
}
