package guard

import (
	"fmt"
	"strings"

	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/policy"
)

// Limits of names on the file systems that checkouts live on.
const (
	maxComponent = 255
	maxPath      = 4096
)

// checkName looks at a path that exists in the candidate. Odd names (blanks, newlines, bytes that are no
// UTF-8) are fine: only what git, a forge or a file system refuses or mistakes for something else is not.
func checkName(c Change) []Finding {
	if !present(c.New) {
		return nil
	}
	bad := func(rule Rule, format string, args ...any) []Finding {
		return []Finding{{Rule: rule, Level: Halt, Path: c.Path, Detail: fmt.Sprintf(format, args...), Next: "use another name"}}
	}
	if len(c.Path) > maxPath {
		return bad(BadName, "the path is %d bytes long, the limit is %d", len(c.Path), maxPath)
	}
	for part := range strings.SplitSeq(c.Path, "/") {
		switch {
		case part == "", part == ".", part == "..":
			return bad(BadName, "%q is no name that git accepts", part)
		case strings.ContainsRune(part, 0):
			return bad(BadName, "a name cannot hold a NUL byte")
		case len(part) > maxComponent:
			return bad(BadName, "a component is %d bytes long, the limit is %d", len(part), maxComponent)
		case strings.EqualFold(part, ".git"):
			return bad(NestedRepo, "%q inside the tree is a repository of its own", part)
		case isGitLike(part):
			return bad(BadName, "%q is taken for .git by some file systems", part)
		}
	}
	if c.New.Mode == git.ModeSymlink && isGitFile(base(c.Path)) {
		return bad(BadName, "%q must not be a symlink: git refuses it", base(c.Path))
	}
	return nil
}

// isGitLike compares a whole component, never a prefix: .github and .gitignore are ordinary names.
// A backslash separates on Windows, so every part counts.
func isGitLike(component string) bool {
	for part := range strings.SplitSeq(component, `\`) {
		if f := policy.Fold(part); f == ".git" || isShortName(f) {
			return true
		}
	}
	return false
}

// isShortName knows the 8.3 names that NTFS gives to .git.
func isShortName(folded string) bool {
	digit, ok := strings.CutPrefix(folded, "git~")
	return ok && len(digit) == 1 && digit >= "1" && digit <= "9"
}

func isGitFile(name string) bool {
	switch policy.Fold(name) {
	case ".gitmodules", ".gitattributes", ".gitignore", ".mailmap":
		return true
	}
	return false
}

func base(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

func dir(path string) string {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i]
	}
	return ""
}

// checkBareRepos finds directories that git would take for a bare repository: their config can name
// programs, and git run inside them starts those.
func checkBareRepos(changes []Change) []Finding {
	const head, objects, refs = 1, 2, 4
	seen := map[string]int{}
	for _, c := range changes {
		if !present(c.New) {
			continue
		}
		folded := policy.Fold(c.Path)
		if base(folded) == "head" {
			seen[dir(folded)] |= head
		}
		for part, bit := range map[string]int{"/objects/": objects, "/refs/": refs} {
			if i := strings.LastIndex("/"+folded, part); i >= 0 {
				seen[strings.TrimPrefix(("/" + folded)[:i], "/")] |= bit
			}
		}
	}
	var out []Finding
	for _, c := range changes {
		d := dir(policy.Fold(c.Path))
		if present(c.New) && base(policy.Fold(c.Path)) == "head" && seen[d]&head != 0 && seen[d]&(objects|refs) != 0 {
			out = append(out, Finding{Rule: NestedRepo, Level: Block, Path: c.Path, Detail: "the directory has the shape of a bare git repository", Next: "remove it, or build it in a temporary directory when a test needs one"})
		}
	}
	return out
}

// checkCollisions reports new names that fold onto another file or directory of the candidate. What
// already collided on the base is not the agent's doing.
func checkCollisions(in Input) []Finding {
	fresh := map[string]string{}
	for _, c := range in.Changes {
		if present(c.New) && !present(c.Old) {
			fresh[policy.Fold(c.Path)] = c.Path
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	freshDirs := map[string]string{} // a parent directory of a new file, folded → as written
	for _, path := range fresh {
		for d := dir(path); d != ""; d = dir(d) {
			freshDirs[policy.Fold(d)] = d
		}
	}
	clash := map[string]string{}
	look := func(path string) {
		f := policy.Fold(path)
		if mine, ok := fresh[f]; ok && mine != path {
			clash[mine] = path
		}
		if mine, ok := freshDirs[f]; ok {
			clash[mine] = path
		}
		for d := dir(f); d != ""; d = dir(d) {
			if mine, ok := fresh[d]; ok {
				clash[mine] = path
			}
		}
	}
	for _, c := range in.Changes {
		if present(c.New) {
			look(c.Path)
		}
	}
	for _, p := range in.Paths {
		look(p)
	}
	var out []Finding
	for mine, other := range clash {
		out = append(out, Finding{
			Rule: BadName, Level: Halt, Path: mine,
			Detail: fmt.Sprintf("the same file as %q where case or Unicode form does not count", other), Next: "use another name",
		})
	}
	return out
}
