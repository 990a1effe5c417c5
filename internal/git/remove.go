package git

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// removeTree removes path and everything below, whatever was done to it: read-only directories, files
// of others as far as the kernel permits, nests deeper than there are file descriptors. It follows no
// symlink. A path that does not exist is no error.
func removeTree(path string) error {
	parent, err := unix.Open(filepath.Dir(path), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	defer unix.Close(parent)
	if err := removeAt(parent, filepath.Base(path)); err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return nil
}

// removeAt removes a name of an open directory.
func removeAt(fd int, name string) error {
	r := remover{top: fd}
	err := r.remove(fd, name, 0)
	for err == nil && len(r.moved) > 0 {
		last := len(r.moved) - 1
		name, r.moved = r.moved[last], r.moved[:last]
		err = r.remove(fd, name, 0)
	}
	return err
}

// remover moves directories that lie too deep up to the top, instead of holding one descriptor per level.
type remover struct {
	top   int
	moved []string
	tries int
}

const removeDepth = 64

func (r *remover) lift(fd int, name string) error {
	for {
		r.tries++
		spare := ".proctor-remove-" + strconv.Itoa(r.tries)
		err := unix.Renameat(fd, name, r.top, spare)
		if err == nil {
			r.moved = append(r.moved, spare)
			return nil
		}
		// Something of that name is there: planted, or being removed right now.
		taken := errors.Is(err, unix.EEXIST) || errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EINVAL)
		if !taken || r.tries > 100_000 {
			return fmt.Errorf("%q: %w", name, err)
		}
	}
}

func (r *remover) remove(fd int, name string, depth int) error {
	err := unix.Unlinkat(fd, name, 0)
	switch {
	case err == nil, errors.Is(err, unix.ENOENT):
		return nil
	case errors.Is(err, unix.EACCES):
		// The directory that holds it may be read-only.
		_ = unix.Fchmod(fd, 0o700)
		if err = unix.Unlinkat(fd, name, 0); err == nil {
			return nil
		}
	}
	var st unix.Stat_t
	if unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return fmt.Errorf("%q: %w", name, err)
	}
	if depth >= removeDepth {
		return r.lift(fd, name)
	}
	if err := r.empty(fd, name, depth); err != nil {
		return err
	}
	if err := unix.Unlinkat(fd, name, unix.AT_REMOVEDIR); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("%q: %w", name, err)
	}
	return nil
}

func (r *remover) empty(fd int, name string, depth int) error {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	sub, err := unix.Openat(fd, name, flags, 0)
	if errors.Is(err, unix.EACCES) {
		if err = unix.Fchmodat(fd, name, 0o700, 0); err == nil {
			sub, err = unix.Openat(fd, name, flags, 0)
		}
	}
	if err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	defer unix.Close(sub)
	names, err := readNames(sub, make([]byte, 4096))
	if err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	for _, below := range names {
		if err := r.remove(sub, below, depth+1); err != nil {
			return err
		}
	}
	return nil
}
