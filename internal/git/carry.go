package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Carry brings ignored paths (node_modules, .venv) along from a directory, the job's checkout, into the
// worktree. Each must be a relative path that the base commit ignores and that holds nothing sealed;
// one that the source lacks is skipped. Files share their blocks where the file system can do that,
// else they are copied: never hard links, through which a gate could change the source. Symlinks are
// kept as they are, odd files are left out. It returns the paths that were there.
func (w *Worktree) Carry(ctx context.Context, from string, paths []string) (carried []string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	src, err := unix.Open(from, directoryFlags, 0)
	if err != nil {
		return nil, fmt.Errorf("carry from %s: %w", from, err)
	}
	defer unix.Close(src)
	err = w.withRoot(func(root int) error {
		for _, path := range paths {
			if err := w.mayCarry(ctx, path); err != nil {
				return err
			}
			found, err := w.carry(ctx, src, root, path)
			if err != nil {
				return fmt.Errorf("carry %q: %w", path, err)
			}
			if found {
				carried = append(carried, path)
			}
		}
		return nil
	})
	return carried, err
}

func (w *Worktree) mayCarry(ctx context.Context, path string) error {
	bad := func(why string) error {
		return fmt.Errorf("carry %q: %s. Next: name a directory that .gitignore lists, such as node_modules", path, why)
	}
	if !filepath.IsLocal(path) || filepath.Clean(path) != path || path == "." {
		return bad("it is no plain path below the repository")
	}
	for part := range strings.SplitSeq(path, "/") {
		if refusedName(part, false) != "" {
			return bad("git's own directory is never carried")
		}
	}
	entry, err := w.store.lookup(ctx, w.store.tree, path)
	switch {
	case err != nil:
		return fmt.Errorf("carry %q: %w", path, err)
	case entry.Mode != 0:
		return bad("it holds tracked files")
	case w.sealed != nil && w.sealed(path):
		return bad("it is held out")
	}
	ignored, err := w.store.ignoredByBase(ctx, path)
	if err != nil {
		return fmt.Errorf("carry %q: %w", path, err)
	}
	if !ignored {
		return bad("the base commit does not ignore it, so it would become part of the change")
	}
	return nil
}

// ignoredByBase applies the base commit's .gitignore files to a directory's path.
func (s *Store) ignoredByBase(ctx context.Context, path string) (bool, error) {
	var rules *ignoreFile
	prefix := ""
	for part := range strings.SplitSeq(path, "/") {
		entry, err := s.lookup(ctx, s.tree, prefix+".gitignore")
		if err != nil {
			return false, err
		}
		if entry.Mode.IsFile() {
			content, err := s.ReadBlob(ctx, entry.ID, maxIgnoreFile)
			if err != nil {
				return false, err
			}
			rules = &ignoreFile{up: rules, base: prefix, rules: parseIgnore(string(content))}
		}
		if rules.ignores(prefix+part, true) {
			return true, nil
		}
		prefix += part + "/"
	}
	return false, nil
}

// carry copies one path. The directories above it are made like those of tracked files.
func (w *Worktree) carry(ctx context.Context, src, root int, path string) (bool, error) {
	parts := strings.Split(path, "/")
	for _, part := range parts[:len(parts)-1] {
		sub, err := unix.Openat(src, part, directoryFlags, 0)
		if errors.Is(err, unix.ENOENT) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		defer unix.Close(sub)
		src = sub
	}
	out := w.writer(root)
	defer out.close()
	dst, name, err := out.parent(path)
	if err != nil {
		return false, err
	}
	var st unix.Stat_t
	if err := unix.Fstatat(src, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		if errors.Is(err, unix.ENOENT) {
			return false, nil
		}
		return false, err
	}
	if err := removeAt(dst, name); err != nil {
		return false, err
	}
	return true, out.copy(ctx, src, dst, name, stampOf(&st))
}

// copy copies a name with everything below it.
func (w *writer) copy(ctx context.Context, src, dst int, name string, from stamp) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	switch {
	case from.isDir():
		return w.copyDir(ctx, src, dst, name)
	case from.isSymlink():
		buf := make([]byte, maxPath+1)
		n, err := unix.Readlinkat(src, name, buf)
		if err != nil {
			return err
		}
		return w.symlink(dst, name, strings.NewReader(string(buf[:n])))
	case from.isRegular():
		return w.copyFile(src, dst, name, from)
	}
	return nil
}

func (w *writer) copyDir(ctx context.Context, src, dst int, name string) error {
	in, err := unix.Openat(src, name, directoryFlags, 0)
	if err != nil {
		return err
	}
	defer unix.Close(in)
	if err := w.mkdir(dst, name); err != nil {
		return err
	}
	out, err := unix.Openat(dst, name, directoryFlags, 0)
	if err != nil {
		return err
	}
	defer unix.Close(out)
	names, err := readNames(in, make([]byte, 16<<10))
	if err != nil {
		return err
	}
	for _, below := range names {
		var st unix.Stat_t
		if err := unix.Fstatat(in, below, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return fmt.Errorf("%q: %w", below, err)
		}
		if err := w.copy(ctx, in, out, below, stampOf(&st)); err != nil {
			return fmt.Errorf("%s/%w", name, err)
		}
	}
	return nil
}

func (w *writer) copyFile(src, dst int, name string, from stamp) error {
	in, err := openRegular(src, name)
	if err != nil {
		return err
	}
	defer in.Close()
	perm := from.mode&0o777 | 0o600
	fd, err := unix.Openat(dst, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, perm)
	if err != nil {
		return err
	}
	out := os.NewFile(uintptr(fd), name)
	defer out.Close()
	if !cloneFile(out, in) {
		if _, err := io.Copy(out, in); err != nil {
			return err
		}
	}
	if err := unix.Fchmod(fd, perm); err != nil {
		return err
	}
	if w.owner != nil {
		if err := unix.Fchown(fd, w.owner.UID, w.owner.GID); err != nil {
			return err
		}
	}
	return out.Close()
}
