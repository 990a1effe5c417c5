package app

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/proctor-ci/proctor/internal/git"
)

// treeFS shows a tree of the store as a file system, for readers that know nothing of git. Symbolic links
// and submodules are listed and cannot be opened: what they point at is no part of the tree.
type treeFS struct {
	ctx   context.Context
	store *git.Store
	files map[string]git.Entry
	dirs  map[string][]fs.DirEntry
}

// maxRead bounds one file of a tree that a reader opens.
const maxRead = 4 << 20

func newTreeFS(ctx context.Context, store *git.Store, tree git.ID) (*treeFS, error) {
	t := &treeFS{ctx: ctx, store: store, files: map[string]git.Entry{}, dirs: map[string][]fs.DirEntry{".": nil}}
	err := store.Walk(ctx, tree, func(p string, e git.Entry) error {
		if !fs.ValidPath(p) {
			return nil
		}
		t.files[p] = e
		t.add(p, e.Mode)
		return nil
	})
	for _, entries := range t.dirs {
		slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	}
	return t, err
}

func (t *treeFS) add(p string, mode git.Mode) {
	dir := path.Dir(p)
	if _, known := t.dirs[dir]; !known {
		t.dirs[dir] = nil
		t.add(dir, git.ModeTree)
	}
	t.dirs[dir] = append(t.dirs[dir], treeInfo{name: path.Base(p), mode: mode})
}

func (t *treeFS) Open(name string) (fs.File, error) {
	if entries, ok := t.dirs[name]; ok {
		return &treeFile{info: treeInfo{name: path.Base(name), mode: git.ModeTree}, entries: entries}, nil
	}
	e, ok := t.files[name]
	if !ok || !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	if !e.Mode.IsFile() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	b, err := t.store.ReadBlob(t.ctx, e.ID, maxRead)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return &treeFile{info: treeInfo{name: path.Base(name), mode: e.Mode, size: int64(len(b))}, data: bytes.NewReader(b)}, nil
}

type treeFile struct {
	info    treeInfo
	data    *bytes.Reader
	entries []fs.DirEntry
}

func (f *treeFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *treeFile) Close() error               { return nil }

func (f *treeFile) Read(p []byte) (int, error) {
	if f.data == nil {
		return 0, &fs.PathError{Op: "read", Path: f.info.name, Err: fs.ErrInvalid}
	}
	return f.data.Read(p)
}

func (f *treeFile) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		out := f.entries
		f.entries = nil
		return out, nil
	}
	if len(f.entries) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(f.entries))
	out := f.entries[:n]
	f.entries = f.entries[n:]
	return out, nil
}

// treeInfo is both an entry of a directory and its information.
type treeInfo struct {
	name string
	mode git.Mode
	size int64
}

func (i treeInfo) Name() string               { return i.name }
func (i treeInfo) Size() int64                { return i.size }
func (i treeInfo) ModTime() time.Time         { return time.Time{} }
func (i treeInfo) IsDir() bool                { return i.mode == git.ModeTree }
func (i treeInfo) Sys() any                   { return nil }
func (i treeInfo) Type() fs.FileMode          { return i.Mode().Type() }
func (i treeInfo) Info() (fs.FileInfo, error) { return i, nil }

func (i treeInfo) Mode() fs.FileMode {
	switch i.mode {
	case git.ModeTree, git.ModeGitlink:
		return fs.ModeDir | 0o755
	case git.ModeSymlink:
		return fs.ModeSymlink | 0o777
	case git.ModeExecutable:
		return 0o755
	}
	return 0o644
}
