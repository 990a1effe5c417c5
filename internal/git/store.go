package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// StoreOptions say what a Store is opened on.
type StoreOptions struct {
	Checkout string // the job's checkout: a work tree with .git (directory or file), or a bare repository
	Dir      string // where the store is made; must not exist or be empty; out of the agent's reach
	Base     string // full commit id or full ref name; empty: the checkout's HEAD
}

// Store is the harness's own bare repository. Its objects directory borrows from the checkout's, its
// configuration, refs and attributes are ours alone. It is safe for concurrent use. Close it.
type Store struct {
	git    *Git
	dir    string
	fmt    format
	loose  *loose
	batch  *batch
	sizes  *batch
	base   ID
	tree   ID
	advice string // what to do about a missing object
	trees  treeCache

	brought sync.Map // refs (string) that lie here as the remote had them, for the next look
	entered sync.Map // commits of submodules (ID) to the trees (ID) that worktrees show for them
}

// OpenStore makes the store without running git in the checkout. It refuses sparse checkouts, and
// partial or shallow ones that lack an object of the base commit, each with what to change.
func (g *Git) OpenStore(ctx context.Context, opts StoreOptions) (*Store, error) {
	from, err := g.readCheckout(ctx, opts.Checkout)
	if err != nil {
		return nil, fmt.Errorf("open checkout %s: %w", opts.Checkout, err)
	}
	dir, err := filepath.Abs(opts.Dir)
	if err != nil {
		return nil, err
	}
	if err := writeStore(dir, from); err != nil {
		return nil, fmt.Errorf("make store %s: %w", dir, err)
	}
	s := g.newStore(dir, from)
	if err := s.setBase(ctx, from, opts.Base); err != nil {
		s.Close()
		return nil, fmt.Errorf("open checkout %s: %w", opts.Checkout, err)
	}
	return s, nil
}

func (g *Git) newStore(dir string, from *checkout) *Store {
	s := &Store{git: g, dir: dir, fmt: from.fmt, advice: from.advice()}
	s.loose = newLoose(filepath.Join(dir, "objects"), from.fmt)
	s.batch = &batch{g: g, call: s.command("cat-file", "--batch")}
	s.sizes = &batch{g: g, call: s.command("cat-file", "--batch-check")}
	return s
}

func (s *Store) setBase(ctx context.Context, from *checkout, base string) (err error) {
	switch {
	case base == "":
		s.base, err = from.head()
	case strings.HasPrefix(base, "refs/") && checkRefName(base) == nil:
		s.base, err = from.resolve(base)
	default:
		s.base, err = s.fmt.objectID(base)
	}
	if err != nil {
		return fmt.Errorf("find the base commit: %w", err)
	}
	if s.tree, err = s.Tree(ctx, s.base); err != nil {
		return fmt.Errorf("read the base commit: %w", err)
	}
	if from.partial {
		return s.complete(ctx)
	}
	return nil
}

// complete checks that a partial clone holds the whole base tree, before anything is paid for.
func (s *Store) complete(ctx context.Context) error {
	return s.Walk(ctx, s.tree, func(path string, e Entry) error {
		if e.Mode == ModeGitlink {
			return nil
		}
		if _, err := s.Size(ctx, e.ID); err != nil {
			return fmt.Errorf("%q of the base commit: %w", path, err)
		}
		return nil
	})
}

// Base is the commit that the run started from.
func (s *Store) Base() ID { return s.base }

// BaseTree is its tree.
func (s *Store) BaseTree() ID { return s.tree }

// Dir is the store's directory. No other process may be given access to it.
func (s *Store) Dir() string { return s.dir }

// Close ends the long-lived processes. The directory stays.
func (s *Store) Close() {
	s.batch.close()
	s.sizes.close()
}

func (s *Store) command(args ...string) call {
	return call{args: args, dir: s.dir, gitDir: s.dir}
}

func (s *Store) checkID(id ID) error {
	_, err := s.fmt.objectID(string(id))
	return err
}

func (s *Store) explain(err error) error {
	var missing *MissingObjectError
	if errors.As(err, &missing) && missing.Next == "" {
		return &MissingObjectError{ID: missing.ID, Next: s.advice}
	}
	return err
}

// storeConfig turns off everything that could run a program, convert bytes or move files behind our back.
const storeConfig = `[core]
	repositoryformatversion = %d
	bare = true
	filemode = true
	symlinks = true
	ignorecase = false
	precomposeunicode = false
	protectNTFS = true
	protectHFS = true
	trustctime = true
	autocrlf = false
	safecrlf = false
	untrackedCache = false
	fsmonitor = false
	hooksPath = /dev/null
	attributesFile = /dev/null
	excludesFile = /dev/null
	logAllRefUpdates = false
[gc]
	auto = 0
[maintenance]
	auto = false
[fetch]
	fsckObjects = false
	unpackLimit = 1000000
	writeCommitGraph = false
[push]
	default = nothing
	followTags = false
	gpgSign = false
	recurseSubmodules = no
[submodule]
	recurse = false
[diff]
	renames = false
[http]
	followRedirects = false
[credential]
	helper =
`

// storeAttributes outrank every .gitattributes of the tree: no conversion, no driver, for any file.
// "!" leaves an attribute unspecified; "-diff" would make every file binary and "-working-tree-encoding"
// would name an encoding called "false".
const storeAttributes = "* -text !eol -ident -filter !working-tree-encoding !crlf !diff !merge !whitespace !export-subst !export-ignore\n"

// storeConfig is the configuration of a repository of ours for this object format.
func (f format) storeConfig() string {
	if f.name == "sha1" {
		return fmt.Sprintf(storeConfig, 0)
	}
	return fmt.Sprintf(storeConfig, 1) + "[extensions]\n\tobjectFormat = " + f.name + "\n"
}

func writeStore(dir string, from *checkout) error {
	if old, err := os.ReadDir(dir); err == nil && len(old) > 0 {
		return errors.New("the directory is not empty: give a new one to every run")
	}
	for _, sub := range []string{"", "info", "objects", "objects/info", "objects/pack", "refs", "refs/heads"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return err
		}
	}
	files := map[string]string{
		"HEAD":            "ref: refs/heads/none\n",
		"config":          from.fmt.storeConfig(),
		"info/attributes": storeAttributes,
		"info/exclude":    "",
	}
	if from.objects != "" {
		files["objects/info/alternates"] = from.objects + "\n"
	}
	if from.shallow != "" {
		files["shallow"] = from.shallow
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// treeCache keeps parsed trees. It forgets everything when full: a run reads the same few again.
type treeCache struct {
	mu      sync.Mutex
	entries int
	byID    map[ID][]treeEntry
}

const treeCacheEntries = 200_000

func (c *treeCache) get(id ID) ([]treeEntry, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entries, ok := c.byID[id]
	return entries, ok
}

func (c *treeCache) put(id ID, entries []treeEntry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byID == nil || c.entries+len(entries) > treeCacheEntries {
		c.byID, c.entries = map[ID][]treeEntry{}, 0
	}
	c.byID[id] = entries
	c.entries += len(entries)
}
