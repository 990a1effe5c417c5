package git

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// settled is the stamp to remember. A file written at the very moment it is looked at could be written
// again without a new time, so its stamp is not trusted next time.
func (sc *scanner) settled(now stamp) stamp {
	const grain = int64(20 * time.Millisecond) // the kernel's clock ticks in 1 to 10 ms
	if now.ctime > sc.began.UnixNano()-grain {
		return stamp{}
	}
	return now
}

func (sc *scanner) unreadable(path string, err error) {
	var large *TooLargeError
	switch {
	case errors.As(err, &large):
		sc.problem(path, TooLarge, fmt.Sprintf("%d bytes, more than the %d that may be pushed", large.Size, large.Max))
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM), errors.Is(err, unix.ENOENT), errors.Is(err, unix.ELOOP),
		errors.Is(err, unix.ENXIO), errors.Is(err, unix.EINVAL), errors.Is(err, errSizeChanged): // EINVAL: no symlink any more
		sc.problem(path, Unreadable, err.Error())
	default:
		sc.fail(fmt.Errorf("%q: %w", path, err))
	}
}

// untracked records a file that the tree does not have and no rule ignores.
func (sc *scanner) untracked(fd int, path, name string, now stamp) {
	if !now.isRegular() && !now.isSymlink() {
		sc.problem(path, OddFile, "neither a file, a symlink nor a directory; git cannot store it")
		if sc.tracked {
			sc.addExtra(found{path: path, now: Entry{Mode: ModeFile}})
		}
		return
	}
	if why := refusedName(name, now.isSymlink()); why != "" {
		sc.problem(path, BadName, why)
		if !sc.tracked {
			return
		}
	}
	if !sc.keep {
		sc.addExtra(found{path: path, now: Entry{Mode: now.treeMode()}})
		return
	}
	if known, ok := sc.extra[path]; ok && known.seen == now {
		sc.addExtra(found{path: path, now: known.have, seen: now})
		return
	}
	have, err := sc.content(fd, name, now)
	if err != nil {
		sc.unreadable(path, err)
		return
	}
	sc.addExtra(found{path: path, now: have, seen: sc.settled(now)})
}

// content hashes a file or symlink, and stores it when the scan keeps what it finds.
func (sc *scanner) content(fd int, name string, now stamp) (Entry, error) {
	entry := Entry{Mode: now.treeMode()}
	var err error
	if now.isSymlink() {
		buf := make([]byte, maxPath+1)
		n, err := unix.Readlinkat(fd, name, buf)
		if err != nil {
			return Entry{}, err
		}
		entry.ID, err = sc.blob(buf[:n])
		return entry, err
	}
	if sc.max > 0 && now.size > sc.max {
		return Entry{}, &TooLargeError{What: name, Size: now.size, Max: sc.max}
	}
	file, err := openRegular(fd, name)
	if err != nil {
		return Entry{}, err
	}
	defer file.Close()
	const inMemory = 1 << 20
	if now.size > inMemory {
		if sc.keep {
			entry.ID, err = sc.store.loose.stream("blob", now.size, file)
			return entry, err
		}
		h := sc.store.fmt.new()
		h.Write(header("blob", now.size))
		n, err := io.Copy(h, file)
		if err == nil && n != now.size {
			err = errSizeChanged
		}
		entry.ID = ID(fmt.Sprintf("%x", h.Sum(nil)))
		return entry, err
	}
	content := make([]byte, now.size+1)
	n, err := io.ReadFull(file, content)
	switch {
	case err == nil || int64(n) != now.size:
		return Entry{}, errSizeChanged
	case err != io.ErrUnexpectedEOF && err != io.EOF:
		return Entry{}, err
	}
	entry.ID, err = sc.blob(content[:n])
	return entry, err
}

func (sc *scanner) blob(content []byte) (ID, error) {
	if sc.keep {
		return sc.store.loose.write("blob", content)
	}
	return sc.store.fmt.hash("blob", content), nil
}

// openRegular opens without following a symlink and without waiting for a fifo's other end.
func openRegular(fd int, name string) (*os.File, error) {
	sub, err := unix.Openat(fd, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(sub, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		unix.Close(sub)
		return nil, errors.Join(err, unix.ENXIO)
	}
	return os.NewFile(uintptr(sub), name), nil
}

// readNames lists a directory, sorted. The descriptor stays the caller's.
func readNames(fd int, buf []byte) ([]string, error) {
	var names []string
	for {
		n, err := unix.ReadDirent(fd, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list the directory: %w", err)
		}
		if n == 0 {
			break
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
	slices.Sort(names)
	return names, nil
}
