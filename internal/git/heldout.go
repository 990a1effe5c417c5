package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// FetchCommit brings the commit at ref of a remote, with its tree and without its history, and returns
// its id. ref is a full ref name, a commit id, a branch or tag name, or empty for the remote's HEAD.
// The objects lie in the store afterwards; no ref and no shallow mark of the store knows of them, so
// that nothing is ever pushed or negotiated from them. A missing ref is fs.ErrNotExist; failures of
// the exchange are *RemoteError.
func (s *Store) FetchCommit(ctx context.Context, remote Remote, ref string) (ID, error) {
	e, err := remote.endpoint()
	if err != nil {
		return "", err
	}
	names := []string{ref}
	switch {
	case ref == "":
		names = []string{"HEAD"}
	case s.checkID(ID(ref)) != nil && !strings.HasPrefix(ref, "refs/"):
		names = []string{"refs/heads/" + ref, "refs/tags/" + ref}
	}
	for _, name := range names {
		if name != "HEAD" && s.checkID(ID(name)) != nil {
			if err := checkRefName(name); err != nil {
				return "", err
			}
		}
		var id ID
		if id, err = s.fetchOne(ctx, remote, e, name); err == nil {
			return s.peel(ctx, string(id))
		}
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return "", err
}

// asideRef is where a repository beside the store keeps what it fetched.
const asideRef = "refs/aside/fetched"

// fetchOne fetches into a repository beside the store whose objects are the store's.
func (s *Store) fetchOne(ctx context.Context, remote Remote, e endpoint, name string) (ID, error) {
	dir, err := os.MkdirTemp(s.dir, "aside-")
	if err != nil {
		return "", fmt.Errorf("fetch from %s: %w", remote.host(), err)
	}
	defer func() { _ = removeTree(dir) }()
	if err := writeAside(dir, s.fmt); err != nil {
		return "", fmt.Errorf("fetch from %s: %w", remote.host(), err)
	}
	c := s.remote(e, "fetch", "--quiet", "--depth=1", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance",
		"--no-recurse-submodules", "--", e.url, name+":"+asideRef)
	c.dir, c.gitDir, c.objects = dir, dir, filepath.Join(s.dir, "objects")
	if err := s.git.run(ctx, c); err != nil {
		return "", classify("fetch "+name+" from "+remote.host(), err, e)
	}
	aside := checkout{gitDir: dir, common: dir, fmt: s.fmt}
	id, err := aside.resolve(asideRef)
	if err != nil {
		return "", fmt.Errorf("fetch %s from %s: %w", name, remote.host(), err)
	}
	return id, nil
}

func writeAside(dir string, f format) error {
	for _, sub := range []string{"info", "refs", "objects"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return err
		}
	}
	files := map[string]string{"HEAD": "ref: refs/heads/none\n", "config": f.storeConfig(), "info/attributes": storeAttributes}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Limits of a directory that is imported.
const (
	importFiles = 50_000
	importBytes = 1 << 30
)

// ImportDir stores what a directory of the job holds and returns its tree. A .git at its top is left
// out. Symlinks are kept where they stay inside; one that leads out, and anything that is neither file,
// directory nor symlink, is an error, since the copy would not be what the directory shows.
func (s *Store) ImportDir(ctx context.Context, dir string) (ID, error) {
	found := overlay{}
	var total int64
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || file == dir {
			return err
		}
		path, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		if path == ".git" {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.IsDir() {
			return nil
		}
		entry, size, err := s.importFile(dir, path, d)
		if err != nil {
			return fmt.Errorf("%q: %w", path, err)
		}
		found[path] = entry
		if total += size; total > importBytes || len(found) > importFiles {
			return fmt.Errorf("more than %d files or %d bytes: name the directory of the tests only", importFiles, importBytes)
		}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("read directory %s: %w", dir, err)
	}
	if len(found) == 0 {
		return "", fmt.Errorf("read directory %s: it holds no file", dir)
	}
	return s.buildTree(ctx, "", found)
}

func (s *Store) importFile(dir, path string, d fs.DirEntry) (Entry, int64, error) {
	if refused := refusedPath(path); refused != "" {
		return Entry{}, 0, errors.New(refused)
	}
	file := filepath.Join(dir, path)
	switch {
	case d.Type()&fs.ModeSymlink != 0:
		target, err := os.Readlink(file)
		if err != nil {
			return Entry{}, 0, err
		}
		if filepath.IsAbs(target) || !filepath.IsLocal(filepath.Join(filepath.Dir(path), target)) {
			return Entry{}, 0, fmt.Errorf("a symlink that leads out of the directory, to %q: replace it by what it points at", target)
		}
		id, err := s.loose.write("blob", []byte(target))
		return Entry{ModeSymlink, id}, int64(len(target)), err
	case !d.Type().IsRegular():
		return Entry{}, 0, errors.New("neither file nor symlink: remove it")
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return Entry{}, 0, err
	}
	info, err := d.Info()
	if err != nil {
		return Entry{}, 0, err
	}
	mode := ModeFile
	if info.Mode()&0o100 != 0 {
		mode = ModeExecutable
	}
	id, err := s.loose.write("blob", content)
	return Entry{mode, id}, int64(len(content)), err
}

func refusedPath(path string) string {
	for part := range strings.SplitSeq(path, "/") {
		if why := refusedName(part, false); why != "" {
			return why
		}
	}
	return ""
}

// Files lists the files and symlinks of a tree below dir ("" for all), named from dir. A dir that the
// tree lacks is fs.ErrNotExist; a submodule is an error, because what it holds would be missing.
func (s *Store) Files(ctx context.Context, tree ID, dir string) (map[string]Entry, error) {
	if dir != "" {
		entry, err := s.lookup(ctx, tree, dir)
		if err != nil {
			return nil, err
		}
		if entry.Mode != ModeTree {
			return nil, &fs.PathError{Op: "list", Path: dir, Err: fs.ErrNotExist}
		}
		tree = entry.ID
	}
	files := map[string]Entry{}
	err := s.Walk(ctx, tree, func(path string, e Entry) error {
		if e.Mode == ModeGitlink {
			return fmt.Errorf("%q is a submodule, which is not fetched: add its files themselves", path)
		}
		files[path] = e
		return nil
	})
	return files, err
}

// LayOver writes files over the proof. Whatever the candidate has at their paths, or in the place of
// their directories, is removed first: no symlink of it is ever written through.
func (p *Proof) LayOver(ctx context.Context, files map[string]Entry) error {
	list := make([]found, 0, len(files))
	for path, e := range files {
		list = append(list, found{path: path, node: &node{name: path, want: e}})
	}
	slices.SortFunc(list, func(a, b found) int { return strings.Compare(a.path, b.path) })
	return p.tree.withRoot(func(root int) error { return p.tree.writer(root).write(ctx, list) })
}

// Reset puts every tracked file of the proof back, removes what is neither tracked nor ignored, and reports both.
func (p *Proof) Reset(ctx context.Context) (Drift, error) {
	p.tree.mu.Lock()
	defer p.tree.mu.Unlock()
	diff, err := p.tree.move(ctx, p.tree.commit)
	return diff.drift(), err
}

// Without leaves paths out of a worktree or proof.
func Without(sealed func(path string) bool) WorktreeOption {
	return func(w *Worktree) { w.sealed = sealed }
}

// Variant writes a commit with base as its parent and some of its paths replaced; a zero Mode deletes.
// It is for throw-away worktrees and carries no trailer of a run: it is never ours to push.
func (s *Store) Variant(ctx context.Context, base ID, changes map[string]Entry) (ID, error) {
	tree, err := s.Tree(ctx, base)
	if err != nil {
		return "", err
	}
	if tree, err = s.buildTree(ctx, tree, changes); err != nil {
		return "", err
	}
	return s.writeCommit(tree, []ID{base}, "A variant for one gate run\n")
}

// WriteBlob stores a file's content.
func (s *Store) WriteBlob(content []byte) (ID, error) { return s.loose.write("blob", content) }
