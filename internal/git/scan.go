package git

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// scanner compares a directory with the tree it should hold, in one walk. It never follows a symlink,
// never opens what is no regular file, and never leaves the directory: every step is relative to an
// open directory. It needs no git process.
type scanner struct {
	ctx     context.Context
	store   *Store
	began   time.Time
	keep    bool                 // store the content of what differs (snapshot); else only compare
	tracked bool                 // what differs will be repaired: ignore rules come from the tree, not from the disk
	ownGit  bool                 // a .git at the root belongs there (agent)
	max     int64                // of a file's bytes; 0: none
	extra   map[string]extraFile // untracked files known from the scan before
	slots   chan struct{}
	bufs    sync.Pool // of *[16 << 10]byte
	wait    sync.WaitGroup

	mu  sync.Mutex
	out scanned
	err error
}

// scanned is what differs.
type scanned struct {
	changed  []found  // paths of the tree
	extra    []found  // paths that are neither in the tree nor ignored
	dirs     []string // untracked directories that are not ignored
	problems []Problem
}

// found is a path and what the disk has there. A zero now is an absent file; in extra, when nothing
// was to be read, only the mode is set.
type found struct {
	path string
	now  Entry
	node *node // of a changed path
	seen stamp
}

// extraFile remembers an untracked file, so that the next scan need not read it again.
type extraFile struct {
	seen stamp
	have Entry
}

// maxPath is the longest path that git and the kernel agree on.
const maxPath = 4096

// scan walks the directory behind root.
func (w *Worktree) scan(ctx context.Context, root int, want *dir, keep bool, max int64) (scanned, error) {
	sc := &scanner{
		ctx: ctx, store: w.store, keep: keep, tracked: !keep, ownGit: !w.gate, max: max, extra: w.extra,
		// The kernel's own clock, whatever clock the run was given: it is compared with file times.
		began: time.Now(),
		slots: make(chan struct{}, runtime.GOMAXPROCS(0)),
		bufs:  sync.Pool{New: func() any { return new([16 << 10]byte) }},
	}
	sc.dir(root, "", want, nil, false)
	sc.wait.Wait()
	if sc.err == nil {
		sc.err = context.Cause(ctx)
	}
	if sc.err != nil {
		return scanned{}, fmt.Errorf("scan %s: %w", w.dir, sc.err)
	}
	slices.SortFunc(sc.out.changed, func(a, b found) int { return strings.Compare(a.path, b.path) })
	slices.SortFunc(sc.out.extra, func(a, b found) int { return strings.Compare(a.path, b.path) })
	slices.SortFunc(sc.out.problems, func(a, b Problem) int { return strings.Compare(a.Path+a.Kind, b.Path+b.Kind) })
	slices.Sort(sc.out.dirs)
	return sc.out, nil
}

func (sc *scanner) fail(err error) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if sc.err == nil {
		sc.err = err
	}
}

func (sc *scanner) failed() bool {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return sc.err != nil || sc.ctx.Err() != nil
}

func (sc *scanner) problem(path, kind, detail string) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.out.problems = append(sc.out.problems, Problem{path, kind, detail})
}

func (sc *scanner) addChanged(f found) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.out.changed = append(sc.out.changed, f)
}

func (sc *scanner) addExtra(f found) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.out.extra = append(sc.out.extra, f)
}

// dir compares one directory. want is nil for an untracked one; ignored tells that no untracked file
// below counts, which is so below an ignored directory whatever the rules in it say.
func (sc *scanner) dir(fd int, prefix string, want *dir, rules *ignoreFile, ignored bool) {
	if sc.failed() {
		return
	}
	buf := sc.bufs.Get().(*[16 << 10]byte)
	names, err := readNames(fd, buf[:])
	sc.bufs.Put(buf)
	if err != nil {
		sc.problem(strings.TrimSuffix(prefix, "/"), Unreadable, err.Error())
		return
	}
	if _, nested := slices.BinarySearch(names, ".git"); nested && !ignored && (prefix != "" || !sc.ownGit) {
		if sc.nested(fd, prefix, want) {
			return
		}
	}
	if !ignored {
		rules = sc.rules(fd, prefix, want, rules, names)
	}
	if want == nil && prefix != "" && !ignored {
		sc.mu.Lock()
		sc.out.dirs = append(sc.out.dirs, strings.TrimSuffix(prefix, "/"))
		sc.mu.Unlock()
	}
	i := 0
	for _, name := range names {
		for want != nil && i < len(want.nodes) && want.nodes[i].name < name {
			sc.gone(prefix, want.nodes[i])
			i++
		}
		var n *node
		if want != nil && i < len(want.nodes) && want.nodes[i].name == name {
			n = want.nodes[i]
			i++
		}
		if name == ".git" && n == nil {
			continue // the root's own, or one that nested has told
		}
		sc.name(fd, prefix, name, n, rules, ignored)
	}
	for ; want != nil && i < len(want.nodes); i++ {
		sc.gone(prefix, want.nodes[i])
	}
}

// gone records that a name of the tree is not on the disk.
func (sc *scanner) gone(prefix string, n *node) {
	path := prefix + n.name
	switch {
	case n.dir != nil:
		n.dir.each(path+"/", func(path string, n *node) { sc.addChanged(found{path: path, node: n}) })
	case !n.sealed:
		sc.addChanged(found{path: path, node: n})
	}
}

// name compares one name of a directory.
func (sc *scanner) name(fd int, prefix, name string, n *node, rules *ignoreFile, ignored bool) {
	path := prefix + name
	if len(path) > maxPath {
		sc.problem(path[:200]+"…", TooDeep, "the path is longer than git can store")
		return
	}
	var st unix.Stat_t
	if err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		if errors.Is(err, unix.ENOENT) { // removed since the names were read
			if n != nil {
				sc.gone(prefix, n)
			}
			return
		}
		sc.problem(path, Unreadable, err.Error())
		return
	}
	now := stampOf(&st)
	if n != nil && n.sealed {
		sc.sealedTouched(path, "something lies where a held-out file belongs; the held-out file stays")
		return
	}
	if n != nil && n.dir == nil && n.want.Mode == ModeGitlink && now.isDir() {
		sc.submodule(fd, path, name, n)
		return
	}
	if n != nil && n.dir == nil && (now.isRegular() || now.isSymlink()) {
		sc.file(fd, path, name, n, now)
		return
	}
	if now.isDir() {
		if n != nil && n.dir == nil {
			sc.gone(prefix, n)
			n = nil
		}
		sc.enter(fd, path, name, n, rules, ignored)
		return
	}
	if n != nil {
		sc.gone(prefix, n)
		if n.dir != nil && n.dir.sealed > 0 {
			sc.sealedTouched(path, "it stands in the place of a directory of held-out files")
			return
		}
	}
	if ignored || rules.ignores(path, false) {
		return
	}
	sc.untracked(fd, path, name, now)
}

func (sc *scanner) sealedTouched(path, detail string) {
	sc.problem(path, SealedTouched, detail)
	if sc.tracked {
		sc.addExtra(found{path: path, now: Entry{Mode: ModeTree}})
	}
}

// enter walks a directory below, on another goroutine when one is free.
func (sc *scanner) enter(fd int, path, name string, n *node, rules *ignoreFile, ignored bool) {
	var want *dir
	if n != nil {
		want = n.dir
	}
	ignored = ignored || rules.ignores(path, true)
	if want == nil {
		if ignored {
			return
		}
		if why := refusedName(name, false); why != "" {
			sc.problem(path, BadName, why)
			if sc.tracked {
				sc.addExtra(found{path: path, now: Entry{Mode: ModeTree}})
			}
			return
		}
	}
	sub, err := unix.Openat(fd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		sc.problem(path, Unreadable, err.Error())
		return
	}
	select {
	case sc.slots <- struct{}{}:
		sc.wait.Go(func() {
			defer func() { <-sc.slots }()
			defer unix.Close(sub)
			sc.dir(sub, path+"/", want, rules, ignored)
		})
	default:
		defer unix.Close(sub)
		sc.dir(sub, path+"/", want, rules, ignored)
	}
}

// file compares a file or symlink of the tree. An unchanged stamp is an unchanged file.
func (sc *scanner) file(fd int, path, name string, n *node, now stamp) {
	if n.have.Mode == 0 || n.seen != now {
		have, err := sc.content(fd, name, now)
		if err != nil {
			sc.unreadable(path, err)
			return
		}
		n.have = have
		n.seen = sc.settled(now)
	}
	if n.have != n.want {
		sc.addChanged(found{path: path, now: n.have, node: n, seen: now})
	}
}
