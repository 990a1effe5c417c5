package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Owner is the account that files of a worktree are given to. The harness must be root, or that account.
type Owner struct{ UID, GID int }

// writer puts files of the store into a directory. It follows no symlink: every step is relative to an
// open directory, and what stands in the way of a tracked path is removed, never written through.
type writer struct {
	store *Store
	owner *Owner
	root  int
	open  []openDir // the directories down to the file written last
}

type openDir struct {
	name string
	fd   int
}

const directoryFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

func (w *writer) close() {
	for _, d := range w.open {
		unix.Close(d.fd)
	}
	w.open = nil
}

// write makes every path what its node wants. files are sorted by path.
func (w *writer) write(ctx context.Context, files []found) error {
	defer w.close()
	var blobs []found
	ids := make([]ID, 0, len(files))
	for _, f := range files {
		if f.node.want.Mode == ModeGitlink {
			if err := w.gitlink(f); err != nil {
				return fmt.Errorf("write %q: %w", f.path, err)
			}
			continue
		}
		blobs = append(blobs, f)
		ids = append(ids, f.node.want.ID)
	}
	return w.store.readMany(ctx, ids, func(i int, size int64, body io.Reader) error {
		if err := w.file(blobs[i], size, body); err != nil {
			return fmt.Errorf("write %q: %w", blobs[i].path, err)
		}
		return nil
	})
}

// gitlink leaves an empty directory, as a checkout without submodules does.
func (w *writer) gitlink(f found) error {
	fd, name, err := w.parent(f.path)
	if err != nil {
		return err
	}
	if err := w.clear(fd, name); err != nil {
		return err
	}
	return w.mkdir(fd, name)
}

func (w *writer) file(f found, size int64, body io.Reader) error {
	fd, name, err := w.parent(f.path)
	if err != nil {
		return err
	}
	if f.node.want.Mode == ModeSymlink {
		err = w.symlink(fd, name, body)
	} else {
		err = w.regular(fd, name, f.node.want.Mode, size, body)
	}
	if err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	f.node.seen, f.node.have = stampOf(&st), f.node.want
	return nil
}

func (w *writer) symlink(fd int, name string, body io.Reader) error {
	target, err := io.ReadAll(io.LimitReader(body, maxPath+1))
	if err != nil {
		return err
	}
	err = unix.Symlinkat(string(target), fd, name)
	if errors.Is(err, unix.EEXIST) || errors.Is(err, unix.EACCES) {
		if err = w.clear(fd, name); err == nil {
			err = unix.Symlinkat(string(target), fd, name)
		}
	}
	if err == nil && w.owner != nil {
		err = unix.Fchownat(fd, name, w.owner.UID, w.owner.GID, unix.AT_SYMLINK_NOFOLLOW)
	}
	return err
}

func (w *writer) regular(fd int, name string, mode Mode, size int64, body io.Reader) error {
	perm := uint32(0o644)
	if mode == ModeExecutable {
		perm = 0o755
	}
	const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
	// A new inode always: the old one may have a second name elsewhere.
	out, err := unix.Openat(fd, name, flags, perm)
	if errors.Is(err, unix.EEXIST) || errors.Is(err, unix.EACCES) {
		if err = w.clear(fd, name); err == nil {
			out, err = unix.Openat(fd, name, flags, perm)
		}
	}
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(out), name)
	defer file.Close()
	if n, err := io.Copy(file, body); err != nil {
		return err
	} else if n != size {
		return io.ErrUnexpectedEOF
	}
	var st unix.Stat_t
	if err := unix.Fstat(out, &st); err != nil {
		return err
	}
	if uint32(st.Mode)&0o7777 != perm { //nolint:unconvert // differs by system; the umask took bits away
		if err := unix.Fchmod(out, perm); err != nil {
			return err
		}
	}
	if w.owner != nil {
		if err := unix.Fchown(out, w.owner.UID, w.owner.GID); err != nil {
			return err
		}
	}
	return file.Close()
}

// clear makes room for a name, also in a directory that was made read-only.
func (w *writer) clear(fd int, name string) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err == nil && st.Mode&0o300 != 0o300 {
		_ = unix.Fchmod(fd, 0o755)
	}
	return removeAt(fd, name)
}

func (w *writer) mkdir(fd int, name string) error {
	if err := unix.Mkdirat(fd, name, 0o755); err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	if w.owner != nil {
		return unix.Fchownat(fd, name, w.owner.UID, w.owner.GID, unix.AT_SYMLINK_NOFOLLOW)
	}
	return nil
}

// parent opens the directory of a path, making it and replacing whatever else stands there.
func (w *writer) parent(path string) (fd int, name string, err error) {
	parts := strings.Split(path, "/")
	dirs, name := parts[:len(parts)-1], parts[len(parts)-1]
	same := 0
	for same < len(dirs) && same < len(w.open) && w.open[same].name == dirs[same] {
		same++
	}
	for _, d := range w.open[same:] {
		unix.Close(d.fd)
	}
	w.open = w.open[:same]
	fd = w.root
	if same > 0 {
		fd = w.open[same-1].fd
	}
	for _, dir := range dirs[same:] {
		sub, err := w.enter(fd, dir)
		if err != nil {
			return 0, "", err
		}
		w.open = append(w.open, openDir{dir, sub})
		fd = sub
	}
	return fd, name, nil
}

func (w *writer) enter(fd int, name string) (int, error) {
	sub, err := unix.Openat(fd, name, directoryFlags, 0)
	if err == nil {
		return sub, nil
	}
	if errors.Is(err, unix.EACCES) {
		_ = unix.Fchmodat(fd, name, 0o755, 0)
		if sub, err = unix.Openat(fd, name, directoryFlags, 0); err == nil {
			return sub, nil
		}
	}
	if !errors.Is(err, unix.ENOENT) {
		if err := w.clear(fd, name); err != nil {
			return 0, err
		}
	}
	if err := w.mkdir(fd, name); err != nil {
		return 0, err
	}
	return unix.Openat(fd, name, directoryFlags, 0)
}

// removePath removes a path below an open root, following no symlink. A parent that is gone is no error.
func removePath(root int, path string) error {
	fd := root
	parts := strings.Split(path, "/")
	for _, part := range parts[:len(parts)-1] {
		sub, err := unix.Openat(fd, part, directoryFlags, 0)
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("remove %q: %w", path, err)
		}
		defer unix.Close(sub)
		fd = sub
	}
	if err := removeAt(fd, parts[len(parts)-1]); err != nil {
		return fmt.Errorf("remove %q: %w", path, err)
	}
	return nil
}
