package guard

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/proctor-ci/proctor/internal/git"
)

// errLink explains why a symlink's target is refused.
type errLink string

func (e errLink) Error() string { return string(e) }

// checkEntry looks at what kind of thing a path became.
func (r Rules) checkEntry(ctx context.Context, c Change, blobs Blobs) ([]Finding, error) {
	switch {
	case !present(c.New):
		return nil, nil
	case c.New.Mode == git.ModeGitlink:
		return []Finding{{Rule: Gitlink, Level: Halt, Path: c.Path, Detail: describe(c) + " a submodule or an embedded repository", Next: "remove it; copy the files if they are needed"}}, nil
	case c.New.Mode == git.ModeSymlink:
		return r.checkLink(ctx, c, blobs)
	case c.New.Mode == git.ModeFile, c.New.Mode == git.ModeExecutable:
		return nil, nil
	default:
		return []Finding{{Rule: BadName, Level: Halt, Path: c.Path, Detail: fmt.Sprintf("mode %q is none that git accepts", c.New.Mode), Next: "make it an ordinary file"}}, nil
	}
}

func (r Rules) checkLink(ctx context.Context, c Change, blobs Blobs) ([]Finding, error) {
	finding := func(level Level, detail string) []Finding {
		return []Finding{{Rule: Symlink, Level: level, Path: c.Path, Detail: detail, Next: "point it at a file inside the repository, or use a copy"}}
	}
	size, err := blobs.Size(ctx, c.New.ID)
	if err != nil {
		return nil, fmt.Errorf("read symlink %q: %w", c.Path, err)
	}
	if size > maxPath {
		return finding(Halt, fmt.Sprintf("its target is %d bytes long, the limit is %d", size, maxPath)), nil
	}
	target, err := blobs.ReadBlob(ctx, c.New.ID, maxPath)
	if err != nil {
		return nil, fmt.Errorf("read symlink %q: %w", c.Path, err)
	}
	resolved, err := resolveLink(c.Path, string(target))
	var bad errLink
	if errors.As(err, &bad) {
		return finding(Halt, fmt.Sprintf("its target %q %s", target, bad)), nil
	}
	for _, g := range []Globs{r.Always, r.Protected, r.Sealed} {
		// A link to a directory stands for everything below it: try the name and a name inside.
		for _, path := range []string{resolved, resolved + "/x"} {
			if p, ok := match(g, path); ok {
				return finding(Flag, fmt.Sprintf("its target %q is a protected path (%s)", target, p)), nil
			}
		}
	}
	return nil, nil
}

// resolveLink gives the path, from the root of the tree, that a link at path leads to. A target may climb first
// and descend then, nothing else: once it has descended it may stand in another link's directory, and
// what `..` means there cannot be told from the words.
func resolveLink(path, target string) (string, error) {
	switch {
	case target == "":
		return "", errLink("is empty")
	case strings.ContainsRune(target, 0):
		return "", errLink("holds a NUL byte")
	case target[0] == '/', target[0] == '\\', len(target) > 1 && target[1] == ':':
		return "", errLink("is absolute")
	}
	at := dir(path)
	descended := false
	for part := range strings.SplitSeq(target, "/") {
		switch {
		case part == "" || part == ".":
		case part == ".." && descended:
			return "", errLink("climbs after it has descended")
		case part == ".." && at == "":
			return "", errLink("leaves the repository")
		case part == "..":
			at = dir(at)
		case isGitLike(part):
			return "", errLink("leads into a git directory")
		default:
			descended = true
			at = strings.TrimPrefix(at+"/"+part, "/")
		}
	}
	return at, nil
}
