package app

import (
	"bytes"
	endian "encoding/binary"
	"errors"
	"fmt"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// examWatch hears what stamps cannot show: a directory of the exam that is moved away, replaced, and put back. Its files
// keep their stamps through that. The kernel queues the names, so nobody has to listen meanwhile.
type examWatch struct {
	queue int                       // not blocking
	names map[int32]map[string]bool // of each watched directory, the entries on the way to the exam
}

// watchExam watches every directory on the way to the exam's files, which are named from dir on.
func watchExam(dir string, files []string) (*examWatch, error) {
	on := map[string]map[string]bool{}
	for _, f := range files {
		for at := f; at != "."; at = path.Dir(at) {
			parent := path.Dir(at)
			if on[parent] == nil {
				on[parent] = map[string]bool{}
			}
			on[parent][path.Base(at)] = true
		}
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("watch the held-out files: %w. Next: raise fs.inotify.max_user_instances on this machine", err)
	}
	w := &examWatch{queue: fd, names: map[int32]map[string]bool{}}
	for parent, names := range on {
		wd, err := unix.InotifyAddWatch(fd, filepath.Join(dir, parent), unix.IN_MOVED_FROM|unix.IN_DELETE|unix.IN_ONLYDIR|unix.IN_DONT_FOLLOW)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("watch the held-out files: %w. Next: raise fs.inotify.max_user_watches on this machine", err), unix.Close(fd))
		}
		w.names[int32(wd)] = names
	}
	return w, nil
}

// moved says whether anything on the way to the exam was moved or deleted. A queue that ran over could hide it.
func (w *examWatch) moved() (bool, error) {
	buf := make([]byte, 64<<10)
	for {
		n, err := unix.Read(w.queue, buf)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return false, nil
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return false, fmt.Errorf("look at what happened to the held-out files: %w", err)
		}
		for b := buf[:n]; len(b) >= unix.SizeofInotifyEvent; {
			wd, mask := int32(endian.NativeEndian.Uint32(b)), endian.NativeEndian.Uint32(b[4:])
			end := unix.SizeofInotifyEvent + int(endian.NativeEndian.Uint32(b[12:]))
			name, _, _ := bytes.Cut(b[unix.SizeofInotifyEvent:end], []byte{0})
			if mask&unix.IN_Q_OVERFLOW != 0 || w.names[wd][string(name)] {
				return true, nil
			}
			b = b[end:]
		}
	}
}

func (w *examWatch) close() { _ = unix.Close(w.queue) }
