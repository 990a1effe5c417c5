package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Own gives directories, and everything below them, to the user that untrusted processes run as, and
// makes the way to them passable. Where that is the harness's own user it does nothing. It never
// follows a symbolic link and never touches a file that has another name elsewhere, because the other
// name may be in the harness's own store. Run does this for a ReadWrite directory whose top does not
// belong to the user yet; call Own again for what the harness adds later. Nothing untrusted may be
// running in the directories meanwhile.
func (b *Box) Own(dirs ...string) error {
	if user := b.userFor(b.mode); user != nil {
		return own(*user, dirs...)
	}
	return nil
}

func own(user Identity, dirs ...string) error {
	for _, dir := range dirs {
		real, err := realDir(dir)
		if err != nil {
			return fmt.Errorf("sandbox: give a directory away: %w", err)
		}
		if real == "/" || within(real, systemDirs()) {
			return fmt.Errorf("sandbox: %s is the system's and cannot be given away", real)
		}
		if err := makePassable(real, user); err != nil {
			return err
		}
		if err := chownTree(real, user); err != nil {
			return fmt.Errorf("sandbox: give %s to user %d: %w", real, user.UID, err)
		}
	}
	return nil
}

// prepare readies the directories of one run.
func (b *Box) prepare(s spec) error {
	if s.User == nil {
		return nil
	}
	for _, dir := range s.ReadWrite {
		var st unix.Stat_t
		if err := unix.Stat(dir, &st); err != nil {
			return fmt.Errorf("sandbox: writable directory %s: %w", dir, err)
		}
		if int(st.Uid) != s.User.UID {
			if err := own(*s.User, dir); err != nil {
				return err
			}
			continue
		}
		if err := makePassable(dir, *s.User); err != nil {
			return err
		}
	}
	return makePassable(s.Dir, *s.User)
}

// makePassable lets the user enter the directories above path. Only a private directory of ours, as
// os.MkdirTemp makes them, is changed: its group may then enter it, without listing it, and where a
// second user must pass too, everybody may.
func makePassable(path string, user Identity) error {
	for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
		var st unix.Stat_t
		if err := unix.Stat(dir, &st); err != nil {
			return fmt.Errorf("sandbox: %s: %w", dir, err)
		}
		if permits(st, user, 0o1) {
			continue
		}
		if !ours(dir, st) {
			return fmt.Errorf("sandbox: user %d, who runs agents and gates, cannot enter %s on the way to %s: put the work directory elsewhere, or chmod o+x %s", user.UID, dir, path, dir)
		}
		mode := os.FileMode(st.Mode&0o700 | 0o011)
		if !openedByUs(st) {
			mode = os.FileMode(st.Mode&0o700 | 0o010)
			if err := os.Chown(dir, -1, user.GID); err != nil {
				return fmt.Errorf("sandbox: make %s passable: %w", dir, err)
			}
		}
		if err := os.Chmod(dir, mode); err != nil {
			return fmt.Errorf("sandbox: make %s passable: %w", dir, err)
		}
	}
	return nil
}

// CanReach says whether untrusted processes could execute a program, or enter a directory, as far as
// file permissions go: nil, or an error that names the directory that keeps them out, which is most
// often a home directory of mode 0700, and what to do. It starts nothing and changes nothing.
func (b *Box) CanReach(path string) error {
	if user := b.userFor(b.mode); user != nil {
		return closedTo(path, *user, true)
	}
	return nil
}

// closedTo looks at a path as it is called and as it is. willOpen: what Run makes passable is.
func closedTo(path string, user Identity, willOpen bool) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil //nolint:nilerr // whoever asked finds out what is not there
	}
	var st unix.Stat_t
	for _, way := range []string{path, real} {
		for dir := filepath.Dir(way); ; dir = filepath.Dir(dir) {
			if unix.Stat(dir, &st) == nil && !permits(st, user, 0o1) && !(willOpen && ours(dir, st)) {
				return fmt.Errorf("user %d, who runs agents and gates, cannot enter %s (mode %04o) on the way to %s: install it where every user can get at it, as in /usr/local or /opt, or chmod o+x %s",
					user.UID, dir, st.Mode&0o7777, path, dir)
			}
			if dir == "/" || dir == "." {
				break
			}
		}
	}
	if unix.Stat(real, &st) == nil && !permits(st, user, 0o1) && !(willOpen && ours(real, st)) {
		return fmt.Errorf("user %d, who runs agents and gates, may not execute %s (mode %04o): chmod o+rx it", user.UID, real, st.Mode&0o7777)
	}
	return nil
}

// ours says whether a directory is a private one that makePassable opens.
func ours(dir string, st unix.Stat_t) bool {
	private := int(st.Uid) == os.Geteuid() && (st.Mode&0o077 == 0 || openedByUs(st))
	return st.Mode&unix.S_IFMT == unix.S_IFDIR && private && dir != "/root" && strings.Count(dir, "/") > 1 && filepath.Dir(dir) != "/home"
}

// openedByUs: for another user.
func openedByUs(st unix.Stat_t) bool { return st.Mode&0o077 == 0o010 }

// chownTree works by directory descriptors, so that a name that changes meanwhile cannot lead it out.
func chownTree(dir string, user Identity) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if err := chownBelow(fd, dir, user); err != nil {
		return err
	}
	// Last, because Run takes it as the mark that all below is done.
	return unix.Fchown(fd, user.UID, user.GID)
}

func chownBelow(fd int, path string, user Identity) error {
	copied, err := unix.Dup(fd) // ReadDir closes what it reads
	if err != nil {
		return err
	}
	unix.CloseOnExec(copied)
	f := os.NewFile(uintptr(copied), path)
	names, err := f.Readdirnames(-1)
	_ = f.Close()
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := chownEntry(fd, path, name, user); err != nil {
			return err
		}
	}
	return nil
}

func chownEntry(fd int, path, name string, user Identity) error {
	var st unix.Stat_t
	if err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		if errors.Is(err, unix.ENOENT) {
			return nil
		}
		return err
	}
	full := filepath.Join(path, name)
	kind := st.Mode & unix.S_IFMT
	if kind == unix.S_IFDIR {
		sub, err := unix.Openat(fd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open %s: %w", full, err)
		}
		defer func() { _ = unix.Close(sub) }()
		if err := chownBelow(sub, full, user); err != nil {
			return err
		}
		if int(st.Uid) == user.UID && int(st.Gid) == user.GID {
			return nil
		}
		return unix.Fchown(sub, user.UID, user.GID)
	}
	if int(st.Uid) == user.UID && int(st.Gid) == user.GID {
		return nil
	}
	if kind == unix.S_IFREG && st.Nlink > 1 {
		return fmt.Errorf("%s has %d names (hard links): giving it away would give away the others: copy it instead of linking it", full, st.Nlink)
	}
	if err := unix.Fchownat(fd, name, user.UID, user.GID, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return fmt.Errorf("chown %s: %w", full, err)
	}
	return nil
}
