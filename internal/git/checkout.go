package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// checkout is what the job's own repository looks like, read without giving it a say: its files are
// data here, no git process has its directory as GIT_DIR.
type checkout struct {
	gitDir  string // HEAD lives here
	common  string // objects, refs and config live here; differs from gitDir in a linked worktree
	objects string
	fmt     format
	shallow string // content of the file "shallow"
	partial bool
	refless bool // refs are not files (reftable)
}

func (g *Git) readCheckout(ctx context.Context, dir string) (*checkout, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	c := &checkout{fmt: sha1Format()}
	if c.gitDir, err = findGitDir(dir); err != nil {
		return nil, err
	}
	c.common = c.gitDir
	if text, err := readSmall(filepath.Join(c.gitDir, "commondir")); err == nil {
		c.common = resolvePath(c.gitDir, strings.TrimSpace(text))
	}
	// Objects are named in the store's alternates file by their real place, one per line.
	if c.objects, err = filepath.EvalSymlinks(filepath.Join(c.common, "objects")); err != nil {
		return nil, fmt.Errorf("find its objects: %w", err)
	}
	if strings.ContainsAny(c.objects, "\n\"") {
		return nil, fmt.Errorf("its path %q holds a line break or a quote: check out elsewhere", c.objects)
	}
	if c.shallow, err = readSmall(filepath.Join(c.common, "shallow")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if err := c.readConfig(ctx, g); err != nil {
		return nil, err
	}
	return c, nil
}

// findGitDir follows the ".git" file of a linked worktree or a submodule.
func findGitDir(dir string) (string, error) {
	dot := filepath.Join(dir, ".git")
	info, err := os.Stat(dot)
	switch {
	case errors.Is(err, os.ErrNotExist):
		if info, err := os.Stat(filepath.Join(dir, "objects")); err == nil && info.IsDir() {
			return dir, nil // bare
		}
		return "", errors.New("it is no git repository: check out the repository first (actions/checkout)")
	case err != nil:
		return "", err
	case info.IsDir():
		return dot, nil
	}
	text, err := readSmall(dot)
	if err != nil {
		return "", err
	}
	target, ok := strings.CutPrefix(strings.TrimRight(text, "\r\n"), "gitdir: ")
	if !ok {
		return "", fmt.Errorf("%s names no git directory", dot)
	}
	return resolvePath(dir, target), nil
}

func resolvePath(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// readConfig lets git parse the file as data: no include is followed, no key takes effect.
func (c *checkout) readConfig(ctx context.Context, g *Git) error {
	files := []string{filepath.Join(c.common, "config")}
	if extra := filepath.Join(c.gitDir, "config.worktree"); exists(extra) {
		files = append(files, extra)
	}
	for _, file := range files {
		if !exists(file) {
			continue
		}
		out, err := g.output(ctx, call{args: []string{"config", "--file", file, "--no-includes", "--null", "--list"}, dir: "/"})
		if err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
		for record := range strings.SplitSeq(string(out), "\x00") {
			key, value, _ := strings.Cut(record, "\n")
			if err := c.setting(key, value); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *checkout) setting(key, value string) error {
	on := strings.EqualFold(value, "true") || value == "1" || strings.EqualFold(value, "yes") || strings.EqualFold(value, "on")
	switch {
	case key == "extensions.objectformat" && value == "sha256":
		c.fmt = sha256Format()
	case key == "extensions.objectformat" && value != "sha1":
		return fmt.Errorf("its object format %q is not known: use sha1 or sha256", value)
	case key == "extensions.refstorage" && value != "files":
		c.refless = true
	case key == "core.sparsecheckout" && on:
		return errors.New("it is a sparse checkout, which hides files from the agent and its gates: remove sparse-checkout from the checkout step")
	case key == "extensions.partialclone", strings.HasPrefix(key, "remote.") && strings.HasSuffix(key, ".promisor") && on:
		c.partial = true
	}
	return nil
}

// head is the commit that HEAD stands on.
func (c *checkout) head() (ID, error) { return c.resolve("HEAD") }

// resolve reads a ref the way git does: the worktree's own, then loose, then packed, symbolic ones followed.
func (c *checkout) resolve(name string) (ID, error) {
	if c.refless {
		return "", errors.New("its refs are stored as a reftable: give the base commit's id")
	}
	for range 5 {
		text, err := c.ref(name)
		if err != nil {
			return "", err
		}
		target, symbolic := strings.CutPrefix(text, "ref: ")
		if !symbolic {
			return c.fmt.objectID(text)
		}
		if name = strings.TrimSpace(target); checkRefName(name) != nil {
			return "", fmt.Errorf("%q is no ref name", name)
		}
	}
	return "", fmt.Errorf("ref %q refers to itself", name)
}

func (c *checkout) ref(name string) (string, error) {
	dir := c.common
	if name == "HEAD" {
		dir = c.gitDir
	}
	text, err := readSmall(filepath.Join(dir, name))
	if err == nil {
		return strings.TrimSpace(text), nil
	}
	packed, err := os.ReadFile(filepath.Join(c.common, "packed-refs"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	for line := range strings.Lines(string(packed)) {
		if id, ref, ok := strings.Cut(strings.TrimSpace(line), " "); ok && ref == name {
			return id, nil
		}
	}
	return "", fmt.Errorf("there is no commit at %q: the repository is empty, or the ref was not fetched. Next: make the first commit: `git add -A && git commit -m \"First commit\"`; in a clone without its history, `git fetch`", name)
}

// advice says what brings a missing object, for the kind of checkout it is.
func (c *checkout) advice() string {
	switch {
	case c.partial:
		return "the checkout is a partial clone; remove filter from the checkout step"
	case c.shallow != "":
		return "the checkout is shallow; set fetch-depth: 0, or run git fetch --depth=1 origin and the base commit's id"
	default:
		return "fetch it, or check out the repository again"
	}
}

func exists(file string) bool {
	_, err := os.Lstat(file)
	return err == nil
}

// readSmall reads a control file of a repository; none is larger than 16 MiB.
func readSmall(file string) (string, error) {
	info, err := os.Stat(file)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > 16<<20 {
		return "", fmt.Errorf("%s is no small regular file", file)
	}
	content, err := os.ReadFile(file)
	return string(content), err
}
