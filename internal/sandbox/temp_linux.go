package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// sharedPlaces are the directories that every process of a machine may write.
func sharedPlaces() []string { return []string{"/tmp", "/dev/shm"} }

// kept is a path of the policy that lies in a shared place, and stays where it is.
type kept struct {
	path     string
	writable bool
	tree     int // a detached copy of its mount
}

// privateTemp covers the shared places with memory and puts the paths of the policy back. Landlock
// gives all of a place to the tree, what is put back below it included, so what is to be read only is
// mounted read only, and what is not in the policy is not put back.
func privateTemp(s spec) (private, error) {
	p := private{bytes: tempBytes(s.Limits.DiskBytes)}
	for _, dir := range sharedPlaces() {
		real, err := realDir(dir)
		if err != nil || real == "/" || within(real, s.ReadWrite) || within(real, s.ReadOnly) {
			continue // there is none, or the policy opens it whole
		}
		p.places = append(p.places, real)
	}
	if len(p.places) == 0 {
		return p, errors.New("/tmp and /dev/shm do not exist or are open by policy")
	}
	keep, err := copies(s, p.places)
	defer func() {
		for _, k := range keep {
			_ = unix.Close(k.tree)
		}
	}()
	if err != nil {
		return p, err
	}
	for _, dir := range p.places {
		options := fmt.Sprintf("mode=1777,size=%d,nr_inodes=%d", p.bytes, max(p.bytes>>14, 4096))
		if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
			return p, fmt.Errorf("mount memory on %s: %w", dir, err)
		}
	}
	for _, k := range keep {
		if err := putBack(k); err != nil {
			return p, err
		}
	}
	return p, errors.Join(leaveNames(s, p.places), placeholder(s.Dir, p.places))
}

// tempBytes caps a place by the disk limit and by a quarter of the machine's memory.
func tempBytes(disk int64) int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return min(disk, 256<<20)
	}
	return min(disk, int64(info.Totalram)*int64(info.Unit)/4)
}

// copies takes what is to stay, outermost first; what an outer path shows anyway is left out.
func copies(s spec, places []string) ([]kept, error) {
	var all []kept
	for _, path := range s.ReadWrite {
		all = append(all, kept{path: path, writable: true, tree: -1})
	}
	for _, path := range s.ReadOnly {
		all = append(all, kept{path: path, tree: -1})
	}
	all = slices.DeleteFunc(all, func(k kept) bool { return !within(k.path, places) || slices.Contains(places, k.path) })
	slices.SortFunc(all, func(a, b kept) int {
		if c := cmp.Compare(a.path, b.path); c != 0 || a.writable == b.writable {
			return c
		}
		if a.writable {
			return -1
		}
		return 1
	})
	var out []kept
	for _, k := range all {
		shown := false
		for _, o := range out {
			if inside(k.path, o.path) {
				shown = o.writable || !k.writable
			}
		}
		if shown {
			continue
		}
		var err error
		if k.tree, err = detached(k); errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return out, err
		}
		out = append(out, k)
	}
	return out, nil
}

// detached copies the mount of a path before it is covered.
func detached(k kept) (int, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, k.path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_SYMLINK_NOFOLLOW)
	if err != nil {
		return -1, fmt.Errorf("keep %s: %w", k.path, err)
	}
	attr := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if !k.writable {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, attr); err != nil {
		_ = unix.Close(fd)
		return -1, fmt.Errorf("keep %s: %w", k.path, err)
	}
	return fd, nil
}

func putBack(k kept) error {
	var st unix.Stat_t
	if err := unix.Fstat(k.tree, &st); err != nil {
		return fmt.Errorf("put %s back: %w", k.path, err)
	}
	if err := mountPoint(k.path, st.Mode&unix.S_IFMT == unix.S_IFDIR); err != nil {
		return fmt.Errorf("put %s back: %w", k.path, err)
	}
	if err := unix.MoveMount(k.tree, "", unix.AT_FDCWD, k.path, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("put %s back: %w", k.path, err)
	}
	return nil
}

// mountPoint makes a name to mount on, where there is none yet.
func mountPoint(path string, dir bool) error {
	if dir {
		return os.MkdirAll(path, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil
	} else if err != nil {
		return err
	}
	return f.Close()
}

// leaveNames keeps the names by which the caller called its paths, where they were links.
func leaveNames(s spec, places []string) error {
	for name, real := range s.Names {
		if _, err := os.Lstat(name); err == nil || !within(filepath.Dir(name), places) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return fmt.Errorf("keep the name %s: %w", name, err)
		}
		if err := os.Symlink(real, name); err != nil {
			return fmt.Errorf("keep the name %s: %w", name, err)
		}
	}
	return nil
}

// placeholder stands for a working directory that the policy does not open: empty, as the tree may not
// read the real one.
func placeholder(dir string, places []string) error {
	if _, err := os.Stat(dir); err == nil || !within(dir, places) {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the working directory: %w", err)
	}
	return nil
}
