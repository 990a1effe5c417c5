package forgetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// bareRepo is one repository on the forge's disk.
type bareRepo struct {
	dir string // …/owner/name.git
}

// seedTime is the date of the first commit, so that the same files give the same commit id.
var seedTime = time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC)

// gitEnv gives git nothing of ours: no user config, no prompt, a fixed identity; its hook needs the
// system's tools beside git's own folder.
func gitEnv(extra ...string) []string {
	return append([]string{
		"PATH=" + gitDir() + systemPath, "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_TERMINAL_PROMPT=0", "LC_ALL=C",
		"GIT_AUTHOR_NAME=Forge", "GIT_AUTHOR_EMAIL=forge@example.com",
		"GIT_COMMITTER_NAME=Forge", "GIT_COMMITTER_EMAIL=forge@example.com",
		"GIT_AUTHOR_DATE=" + seedTime.Format(time.RFC3339), "GIT_COMMITTER_DATE=" + seedTime.Format(time.RFC3339),
	}, extra...)
}

// gitDir is the folder of the git that will be run, for a PATH.
func gitDir() string {
	p, err := exec.LookPath("git")
	if err != nil {
		return "" // starting it will say so
	}
	return filepath.Dir(p) + ":"
}

// git runs one command in dir and gives its output.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.Env = dir, gitEnv()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git %s in %s: %w: %s", args[0], dir, err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSuffix(stdout.String(), "\n"), nil
}

// newBareRepo makes owner/name.git below root with one commit of files on branch. No files: an empty repository.
func newBareRepo(ctx context.Context, root, owner, name, branch string, files fs.FS) (*bareRepo, error) {
	dir := filepath.Join(root, filepath.FromSlash(owner), name+".git")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make repository: %w", err)
	}
	r := &bareRepo{dir: dir}
	if _, err := git(ctx, dir, "init", "-q", "--bare", "-b", branch, "."); err != nil {
		return nil, err
	}
	if err := appendFile(filepath.Join(dir, "config"), serverConfig); err != nil {
		return nil, fmt.Errorf("configure repository: %w", err)
	}
	if err := r.installHook(); err != nil {
		return nil, err
	}
	if files == nil {
		return r, nil
	}
	_, err := r.commit(ctx, branch, branch, files, "Initial commit")
	return r, err
}

// serverConfig is written at once: a `git config` each would cost nine processes. A hidden ref answers
// "deny updating a hidden ref", as refs/pull does on GitHub.
const serverConfig = `[http]
	receivepack = true
[receive]
	autogc = false
[gc]
	auto = 0
[maintenance]
	auto = false
[uploadpack]
	allowReachableSHA1InWant = true
	allowFilter = true
[transfer]
	fsckObjects = true
	hideRefs = refs/pull
`

func appendFile(path, text string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// commit writes files as the whole tree of a new commit on top of branch, or of from where there is no
// such branch yet, and moves the branch.
func (r *bareRepo) commit(ctx context.Context, branch, from string, files fs.FS, message string) (string, error) {
	work, err := os.MkdirTemp("", "forge-seed-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	if err := copyFS(work, files); err != nil {
		return "", fmt.Errorf("seed %s: %w", r.dir, err)
	}
	index := filepath.Join(r.dir, "forge-index")
	defer os.Remove(index)
	run := func(args ...string) (string, error) {
		cmd := append([]string{"--git-dir=" + r.dir, "--work-tree=" + work}, args...)
		return gitWith(ctx, work, []string{"GIT_INDEX_FILE=" + index}, cmd...)
	}
	if _, err := run("add", "-A", "-f", "."); err != nil {
		return "", err
	}
	tree, err := run("write-tree")
	if err != nil {
		return "", err
	}
	args := []string{"commit-tree", tree, "-m", message}
	for _, b := range []string{branch, from} {
		if parent, err := r.branch(b); err == nil {
			args = append(args, "-p", parent)
			break
		}
	}
	commit, err := run(args...)
	if err != nil {
		return "", err
	}
	_, err = run("update-ref", "refs/heads/"+branch, commit)
	return commit, err
}

func gitWith(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.Env = dir, gitEnv(env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}

// copyFS keeps the executable bit, which os.CopyFS may lose for embedded files: a file is executable
// when the source says so or it begins with "#!".
func copyFS(dst string, src fs.FS) error {
	return fs.WalkDir(src, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		to := filepath.Join(dst, filepath.FromSlash(name))
		if d.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		data, err := fs.ReadFile(src, name)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if info.Mode()&0o111 != 0 || bytes.HasPrefix(data, []byte("#!")) {
			mode = 0o755
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		return os.WriteFile(to, data, mode)
	})
}

var errNoRef = errors.New("no such ref")

// branch reads the ref's file instead of starting git: the forge answers this on almost every call.
func (r *bareRepo) branch(name string) (string, error) { return r.ref("refs/heads/" + name) }

func (r *bareRepo) ref(ref string) (string, error) {
	if !fs.ValidPath(ref) || strings.HasSuffix(ref, ".lock") {
		return "", errNoRef
	}
	data, err := os.ReadFile(filepath.Join(r.dir, filepath.FromSlash(ref)))
	if err == nil {
		return strings.TrimSpace(string(data)), nil
	}
	packed, err := os.ReadFile(filepath.Join(r.dir, "packed-refs"))
	if err != nil {
		return "", errNoRef
	}
	for line := range strings.Lines(string(packed)) {
		if id, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name == ref {
			return id, nil
		}
	}
	return "", errNoRef
}

// has tells whether there is such a commit.
func (r *bareRepo) has(commit string) bool {
	_, err := git(context.Background(), r.dir, "rev-parse", "--verify", "--quiet", "--end-of-options", commit+"^{commit}")
	return err == nil
}

// file is a file's content at a commit.
func (r *bareRepo) file(ctx context.Context, commit, path string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", "cat-file", "blob", commit+":"+path)
	cmd.Dir, cmd.Env = r.dir, gitEnv()
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("read %s at %s: %w", path, commit, err)
	}
	return out, nil
}

// list is the names directly below a folder at a commit.
func (r *bareRepo) list(ctx context.Context, commit, dir string) ([]string, error) {
	out, err := git(ctx, r.dir, "ls-tree", "-z", "--name-only", commit, dir+"/")
	if err != nil || out == "" {
		return nil, err
	}
	return strings.Split(strings.Trim(out, "\x00"), "\x00"), nil
}

// ahead counts commits of head that base does not have.
func (r *bareRepo) ahead(ctx context.Context, base, head string) (string, error) {
	return git(ctx, r.dir, "rev-list", "--count", base+".."+head)
}

// stat is the size of a change, zero where it cannot be read.
type stat struct{ commits, files, added, deleted int }

func (r *bareRepo) stat(ctx context.Context, base, head string) stat {
	var s stat
	if n, err := r.ahead(ctx, base, head); err == nil {
		s.commits, _ = strconv.Atoi(n)
	}
	out, err := git(ctx, r.dir, "diff", "--numstat", base+"..."+head)
	if err != nil {
		return s
	}
	for line := range strings.Lines(out) {
		var added, deleted int
		fmt.Sscan(line, &added, &deleted) // a binary file has "-": it counts as a file only
		s.files, s.added, s.deleted = s.files+1, s.added+added, s.deleted+deleted
	}
	return s
}

// merge makes ref the merge of a commit into a branch, as the forge does for an open pull request; an error where they conflict.
func (r *bareRepo) merge(ctx context.Context, ref, branch, commit string) (string, error) {
	into, err := r.branch(branch)
	if err != nil {
		return "", err
	}
	tree, err := git(ctx, r.dir, "merge-tree", "--write-tree", into, commit)
	if err != nil {
		return "", err
	}
	id, err := git(ctx, r.dir, "commit-tree", "-p", into, "-p", commit, "-m", "Merge "+commit+" into "+into, strings.TrimSpace(tree))
	if err != nil {
		return "", err
	}
	_, err = git(ctx, r.dir, "update-ref", ref, strings.TrimSpace(id))
	return strings.TrimSpace(id), err
}
