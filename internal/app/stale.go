package app

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"syscall"

	"github.com/proctor-ci/proctor/internal/git"
)

// lockName is a file in each run's directory that the run keeps locked. The kernel lets go of the lock however the
// process ends, kill -9 included, and knows nothing of process ids, which containers that share a directory have twice.
const lockName = "run.lock"

// runDir is how os.MkdirTemp names a run's directory.
var runDir = regexp.MustCompile(`^proctor-[0-9]+$`)

// lockDir marks dir as that of a living run until the file is closed.
func lockDir(dir string) (*os.File, error) {
	// Under its own name it is locked from the first moment: nobody can take a run that begins for one that was lost.
	fresh := filepath.Join(dir, lockName+".new")
	f, err := os.OpenFile(fresh, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", fresh, err)
	}
	if err := os.Rename(fresh, filepath.Join(dir, lockName)); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// clearStale removes the directories that runs of this user left in scratch when they were killed, and says how many.
// What has another name or owner, holds no lock file of ours or belongs to a run that lives is left alone.
func clearStale(scratch string) (removed int, err error) {
	d, err := os.Open(scratch)
	if err != nil {
		return 0, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	for _, name := range names {
		if !runDir.MatchString(name) {
			continue
		}
		gone, e := clearDir(filepath.Join(scratch, name))
		if err = errors.Join(err, e); gone {
			removed++
		}
	}
	return removed, err
}

// clearDir removes one directory if it is a dead run's.
func clearDir(dir string) (gone bool, err error) {
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() || !mine(info) {
		return false, nil
	}
	lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false, nil // it is none of ours, or its run removes it right now
	}
	defer lock.Close()
	if info, err := lock.Stat(); err != nil || !info.Mode().IsRegular() || !mine(info) {
		return false, nil
	}
	if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return false, nil
	}
	if err := git.RemoveAll(dir); err != nil {
		return false, err
	}
	return true, nil
}

func mine(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
