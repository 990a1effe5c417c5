package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// watcher looks at a tree now and then: how many processes it has and how much disk it has filled.
type watcher struct {
	spec     spec
	root     int
	since    time.Time        // files changed before are not the tree's
	used     map[uint64]int64 // bytes in use per file system when it started
	memory   map[uint64]bool  // file systems that are the tree's alone
	lastCost time.Duration
	nextWalk time.Time
}

const (
	firstLook   = 100 * time.Millisecond
	fullWalks   = 5 * time.Second // between walks that nothing calls for
	walkShare   = 50              // a walk may take one part in so many of the time
	blockOfStat = 512
)

func newWatcher(s spec) *watcher {
	w := &watcher{spec: s, root: os.Getpid(), used: map[uint64]int64{}, memory: map[uint64]bool{}}
	// Time stamps of files are as coarse as a timer tick.
	w.since = time.Now().Add(-20 * time.Millisecond)
	w.nextWalk = w.since.Add(fullWalks)
	for _, dir := range s.ReadWrite {
		if dev, used, ok := usage(dir); ok {
			w.used[dev] = used
		}
	}
	for _, dir := range s.private.places {
		if dev, _, ok := usage(dir); ok {
			w.memory[dev] = true
		}
	}
	return w
}

// interval keeps the cost of looking under two per cent of one core.
func (w *watcher) interval() time.Duration {
	return max(firstLook, walkShare*w.lastCost)
}

// look names the limit that is broken, or nothing.
func (w *watcher) look() string {
	begin := time.Now()
	defer func() { w.lastCost = time.Since(begin) }()
	tree := descendants(w.root)
	if len(tree) > w.spec.Limits.Processes {
		return "processes"
	}
	if w.diskMayBeOver() && w.written(tree) > w.spec.Limits.DiskBytes {
		return "disk"
	}
	return ""
}

// diskMayBeOver asks the file systems first, which costs nothing. They also hold what others write and
// delete, so a walk decides, and one is made from time to time whatever they say.
func (w *watcher) diskMayBeOver() bool {
	now := time.Now()
	if now.After(w.nextWalk) || w.inMemory() > w.spec.Limits.DiskBytes {
		return true
	}
	for _, dir := range w.spec.ReadWrite {
		if dev, used, ok := usage(dir); ok && used-w.used[dev] > w.spec.Limits.DiskBytes {
			return true
		}
	}
	return false
}

// inMemory is what the private places hold, deleted files among them. They began empty and nobody else
// writes there.
func (w *watcher) inMemory() (sum int64) {
	for _, dir := range w.spec.private.places {
		if _, used, ok := usage(dir); ok {
			sum += used
		}
	}
	return sum
}

func usage(dir string) (dev uint64, used int64, ok bool) {
	var st unix.Stat_t
	var vfs unix.Statfs_t
	if unix.Stat(dir, &st) != nil || unix.Statfs(dir, &vfs) != nil {
		return 0, 0, false
	}
	return uint64(st.Dev), int64(vfs.Blocks-vfs.Bfree) * int64(vfs.Bsize), true
}

// written sums the disk space of the files that changed since the tree started, deleted ones that it
// still holds open among them. A change time cannot be set back by who is not root.
func (w *watcher) written(tree []proc) int64 {
	begin := time.Now()
	sum := w.inMemory()
	count := func(st *syscall.Stat_t) {
		if time.Unix(st.Ctim.Unix()).After(w.since) {
			sum += st.Blocks * blockOfStat
		}
	}
	for _, dir := range w.spec.ReadWrite {
		_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
			if err != nil || sum > w.spec.Limits.DiskBytes {
				return nil //nolint:nilerr // what vanishes while we walk does not count
			}
			if info, err := d.Info(); err == nil {
				if st, ok := info.Sys().(*syscall.Stat_t); ok {
					count(st)
				}
			}
			return nil
		})
	}
	if sum <= w.spec.Limits.DiskBytes {
		sum += deletedOpen(tree, w.memory)
	}
	w.nextWalk = time.Now().Add(max(fullWalks, walkShare*time.Since(begin)))
	return sum
}

// deletedOpen sums files without a name that processes of the tree hold open, but for those on file
// systems that are counted whole.
func deletedOpen(tree []proc, counted map[uint64]bool) int64 {
	type file struct{ dev, ino uint64 }
	seen := map[file]bool{}
	var sum int64
	for _, p := range tree {
		dir := "/proc/" + strconv.Itoa(p.pid) + "/fd"
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			var st unix.Stat_t
			if unix.Stat(dir+"/"+e.Name(), &st) != nil || st.Nlink != 0 || st.Mode&unix.S_IFMT != unix.S_IFREG {
				continue
			}
			if id := (file{uint64(st.Dev), st.Ino}); !seen[id] && !counted[id.dev] {
				seen[id] = true
				sum += st.Blocks * blockOfStat
			}
		}
	}
	return sum
}
