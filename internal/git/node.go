package git

import (
	"context"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// stamp is what the kernel says about a file. Equal stamps mean equal content: the change time cannot
// be set by a program, and it is kept here with its nanoseconds.
type stamp struct {
	ino, dev       uint64
	size           int64
	mtime, ctime   int64 // ns
	mode, uid, gid uint32
}

func stampOf(st *unix.Stat_t) stamp {
	return stamp{
		ino: uint64(st.Ino), dev: uint64(st.Dev), size: st.Size, //nolint:unconvert // types differ by system
		mtime: unix.TimespecToNsec(st.Mtim), ctime: unix.TimespecToNsec(st.Ctim),
		mode: uint32(st.Mode), uid: st.Uid, gid: st.Gid, //nolint:unconvert // types differ by system
	}
}

func (s stamp) isRegular() bool { return s.mode&unix.S_IFMT == unix.S_IFREG }
func (s stamp) isSymlink() bool { return s.mode&unix.S_IFMT == unix.S_IFLNK }
func (s stamp) isDir() bool     { return s.mode&unix.S_IFMT == unix.S_IFDIR }

// treeMode is the mode git would record: only the owner's execute bit counts.
func (s stamp) treeMode() Mode {
	switch {
	case s.isSymlink():
		return ModeSymlink
	case s.mode&0o100 != 0:
		return ModeExecutable
	}
	return ModeFile
}

// node is one name of a tracked directory: what the tree wants there, and what the disk was last seen
// to hold there.
type node struct {
	name   string
	want   Entry
	dir    *dir // for a tree, and for a submodule that was entered
	sealed bool // in the tree, and never on the disk
	seen   stamp
	have   Entry // the content behind seen; zero: not known
}

// dir is a tracked directory, its nodes sorted bytewise by name.
type dir struct {
	nodes   []*node
	sealed  int // sealed files below
	shown   int // other files below
	entered int // submodules below whose files are shown
}

func (d *dir) find(name string) *node {
	if d == nil {
		return nil
	}
	i, ok := slices.BinarySearchFunc(d.nodes, name, func(n *node, name string) int { return strings.Compare(n.name, name) })
	if !ok {
		return nil
	}
	return d.nodes[i]
}

// load reads a tree into a dir. What old knows about the disk is taken over, name by name, so that
// moving to another commit costs no second look at files both have.
func (s *Store) load(ctx context.Context, tree ID, prefix string, sealed func(string) bool, old *dir) (*dir, error) {
	entries, err := s.readTree(ctx, tree)
	if err != nil {
		return nil, err
	}
	d := &dir{nodes: make([]*node, 0, len(entries))}
	for _, e := range entries {
		before := old.find(e.name)
		n := &node{name: e.name, want: e.Entry}
		tree, hasTree := s.inside(e.Entry)
		if e.Mode == ModeTree {
			tree, hasTree = e.ID, true
		}
		switch {
		case hasTree && before != nil && before.want == e.Entry && before.dir != nil:
			n.dir = before.dir
		case hasTree:
			var below *dir
			if before != nil {
				below = before.dir
			}
			if n.dir, err = s.load(ctx, tree, prefix+e.name+"/", sealed, below); err != nil {
				return nil, err
			}
		default:
			n.sealed = sealed != nil && sealed(prefix+e.name)
			if before != nil {
				n.seen, n.have = before.seen, before.have
			}
		}
		switch {
		case n.dir != nil:
			d.sealed += n.dir.sealed
			d.shown += n.dir.shown
			d.entered += n.dir.entered
			if e.Mode == ModeGitlink {
				d.entered++
			}
		case n.sealed:
			d.sealed++
		default:
			d.shown++
		}
		d.nodes = append(d.nodes, n)
	}
	slices.SortFunc(d.nodes, func(a, b *node) int { return strings.Compare(a.name, b.name) })
	return d, nil
}

// each visits every file of the directory that is not sealed, in no order that matters.
func (d *dir) each(prefix string, fn func(path string, n *node)) {
	for _, n := range d.nodes {
		switch {
		case n.dir != nil:
			n.dir.each(prefix+n.name+"/", fn)
		case !n.sealed:
			fn(prefix+n.name, n)
		}
	}
}
