package git

import (
	"errors"
	"io"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// nested tells of a .git below the root. An untracked directory that is a repository with a commit is
// one gitlink, as git itself would record it, and nothing in it is looked at; nested is then true. A
// .git that is no repository, or that was planted into a tracked directory, hides nothing: the files
// beside it are taken as they are.
func (sc *scanner) nested(fd int, prefix string, want *dir) bool {
	path := strings.TrimSuffix(prefix, "/")
	if path == "" {
		path = "."
	}
	sc.problem(path, NestedRepository, "it holds a .git of its own: nested repositories are not pushed")
	if want != nil {
		if sc.tracked {
			sc.addExtra(found{path: prefix + ".git", now: Entry{Mode: ModeTree}})
		}
		return false
	}
	if sc.tracked {
		sc.addExtra(found{path: path, now: Entry{Mode: ModeTree}})
		return true
	}
	id, err := sc.store.nestedHead(fd)
	if err != nil {
		return false
	}
	sc.addExtra(found{path: path, now: Entry{Mode: ModeGitlink, ID: id}})
	return true
}

// submodule looks at the directory of a gitlink. Submodules are not entered: an empty one is as it
// should be, a checked-out one counts by its HEAD.
func (sc *scanner) submodule(fd int, path, name string, n *node) {
	sub, err := unix.Openat(fd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		sc.problem(path, Unreadable, err.Error())
		return
	}
	defer unix.Close(sub)
	names, err := readNames(sub, make([]byte, 4096))
	switch {
	case err != nil:
		sc.problem(path, Unreadable, err.Error())
	case len(names) == 0:
	case sc.tracked:
		sc.addExtra(found{path: path, now: Entry{Mode: ModeTree}})
		sc.addChanged(found{path: path, node: n})
	default:
		id, err := sc.store.nestedHead(sub)
		if err != nil {
			sc.problem(path, SubmoduleContent, "files in a submodule's directory are not pushed")
			return
		}
		if id != n.want.ID {
			sc.addChanged(found{path: path, now: Entry{Mode: ModeGitlink, ID: id}, node: n})
		}
	}
}

var errNoHead = errors.New("no commit at HEAD")

// nestedHead reads the commit at HEAD of the repository in an open directory, as data: a ".git"
// directory only, symbolic refs one level deep, no symlinks.
func (s *Store) nestedHead(fd int) (ID, error) {
	dot, err := unix.Openat(fd, ".git", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(dot)
	head, err := readAt(dot, "HEAD")
	if err != nil {
		return "", err
	}
	ref, symbolic := strings.CutPrefix(head, "ref: ")
	if !symbolic {
		return s.fmt.objectID(strings.TrimSpace(head))
	}
	ref = strings.TrimSpace(ref)
	if checkRefName(ref) != nil {
		return "", errNoHead
	}
	if value, err := readAt(dot, ref); err == nil {
		return s.fmt.objectID(strings.TrimSpace(value))
	}
	packed, err := readAt(dot, "packed-refs")
	if err != nil {
		return "", errNoHead
	}
	for line := range strings.Lines(packed) {
		if id, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name == ref {
			return s.fmt.objectID(id)
		}
	}
	return "", errNoHead
}

// readAt reads a regular file of at most 1 MiB below an open directory, following no symlink on the way.
func readAt(fd int, path string) (string, error) {
	parts := strings.Split(path, "/")
	for _, part := range parts[:len(parts)-1] {
		sub, err := unix.Openat(fd, part, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return "", err
		}
		defer unix.Close(sub)
		fd = sub
	}
	file, err := openRegular(fd, parts[len(parts)-1])
	if err != nil {
		return "", err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxIgnoreFile+1))
	if err == nil && len(content) > maxIgnoreFile {
		return "", &TooLargeError{What: path, Size: int64(len(content)), Max: maxIgnoreFile}
	}
	return string(content), err
}

// rules adds the directory's own .gitignore to the chain. A gate's directory is judged by the
// commit's rules, so that no gate can hide what it leaves by editing them.
func (sc *scanner) rules(fd int, prefix string, want *dir, up *ignoreFile, names []string) *ignoreFile {
	const name = ".gitignore"
	content := ""
	n := want.find(name)
	switch {
	case sc.tracked && n != nil && !n.sealed && n.want.Mode.IsFile():
		blob, err := sc.store.ReadBlob(sc.ctx, n.want.ID, maxIgnoreFile)
		if err != nil {
			sc.problem(prefix+name, BadIgnore, err.Error())
			return up
		}
		content = string(blob)
	default:
		if _, there := slices.BinarySearch(names, name); !there {
			return up
		}
		text, err := readAt(fd, name)
		if err != nil {
			sc.problem(prefix+name, BadIgnore, "it has no effect: "+err.Error())
			return up
		}
		content = text
	}
	if parsed := parseIgnore(content); len(parsed) > 0 {
		return &ignoreFile{up: up, base: prefix, rules: parsed}
	}
	return up
}
