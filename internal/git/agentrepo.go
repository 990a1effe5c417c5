package git

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// projectGit gives the agent's directory a repository of its own: one commit of the base without its
// sealed files, a second one when the directory stands on a later commit, their objects in one pack,
// no remote, no hook, no alternates. With nothing held out and a small history it is the real history.
// It is made beside the directory and moved in whole.
func (w *Worktree) projectGit(ctx context.Context, commit ID) (err error) {
	stage, err := os.MkdirTemp(filepath.Dir(w.dir), ".git-new-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = removeTree(stage)
		}
	}()
	for _, sub := range []string{"objects/pack", "objects/info", "refs/heads", "refs/tags", "info"} {
		if err := os.MkdirAll(filepath.Join(stage, sub), 0o755); err != nil {
			return err
		}
	}
	head, err := w.packHistory(ctx, stage, commit)
	if err != nil {
		return err
	}
	version, extension := 0, ""
	if w.store.fmt.name != "sha1" {
		version, extension = 1, "[extensions]\n\tobjectFormat = "+w.store.fmt.name+"\n"
	}
	files := map[string]string{
		"HEAD":            "ref: refs/heads/work\n",
		"refs/heads/work": string(head) + "\n",
		"config":          fmt.Sprintf("[core]\n\trepositoryformatversion = %d\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n[user]\n\tname = agent\n\temail = agent@noreply.invalid\n", version) + extension,
		"description":     "the agent's throw-away repository\n",
		"info/exclude":    "",
		"index":           string(w.index()),
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(stage, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	if err := w.give(stage); err != nil {
		return err
	}
	final := filepath.Join(w.dir, ".git")
	if err := removeTree(final); err != nil {
		return err
	}
	return os.Rename(stage, final)
}

// give hands a directory to the worktree's owner.
func (w *Worktree) give(dir string) error {
	if err := os.Chmod(dir, 0o755); err != nil || w.owner == nil {
		return err
	}
	return filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, w.owner.UID, w.owner.GID)
	})
}

// historyObjects is the number of packed objects up to which a whole history is cheap to hand over.
const historyObjects = 20_000

// packHistory writes the pack and returns the commit for HEAD.
func (w *Worktree) packHistory(ctx context.Context, stage string, commit ID) (ID, error) {
	s := w.store
	if w.sealed == nil && commit == s.base && s.smallHistory() {
		if shallow, err := os.ReadFile(filepath.Join(s.dir, "shallow")); err == nil {
			if err := os.WriteFile(filepath.Join(stage, "shallow"), shallow, 0o644); err != nil {
				return "", err
			}
		}
		return s.base, s.pack(ctx, stage, strings.NewReader(string(s.base)+"\n"), "--revs")
	}
	var ids objectList
	head, err := w.projectCommit(ctx, &ids, s.tree, nil, "The repository as the task begins\n")
	if err != nil {
		return "", err
	}
	if commit != s.base {
		tree, err := s.Tree(ctx, commit)
		if err != nil {
			return "", err
		}
		if head, err = w.projectCommit(ctx, &ids, tree, []ID{head}, "The work so far\n"); err != nil {
			return "", err
		}
	}
	return head, s.pack(ctx, stage, &ids.list, "--window=0")
}

// objectList names each object once, one per line.
type objectList struct {
	list bytes.Buffer
	seen map[ID]bool
}

func (o *objectList) add(id ID) {
	if o.seen == nil {
		o.seen = map[ID]bool{}
	}
	if !o.seen[id] {
		o.seen[id] = true
		o.list.WriteString(string(id) + "\n")
	}
}

// projectCommit writes a commit of the tree without its sealed files and lists all it needs.
func (w *Worktree) projectCommit(ctx context.Context, ids *objectList, tree ID, parents []ID, message string) (ID, error) {
	s := w.store
	hidden := overlay{}
	if w.sealed != nil {
		err := s.Walk(ctx, tree, func(path string, _ Entry) error {
			if w.sealed(path) {
				hidden[path] = Entry{}
			}
			return nil
		})
		if err != nil {
			return "", err
		}
	}
	tree, err := s.buildTree(ctx, tree, hidden)
	if err != nil {
		return "", err
	}
	commit, err := s.writeCommit(tree, parents, message)
	if err != nil {
		return "", err
	}
	ids.add(commit)
	ids.add(tree)
	return commit, s.walk(ctx, tree, "", func(_ string, e Entry) error {
		if e.Mode != ModeGitlink {
			ids.add(e.ID)
		}
		return nil
	})
}

// pack writes the named objects into a repository, whole: no delta against an object outside.
func (s *Store) pack(ctx context.Context, repo string, objects io.Reader, args ...string) error {
	c := s.command(append(append([]string{"pack-objects", "-q"}, args...), filepath.Join(repo, "objects/pack/pack"))...)
	c.stdin = objects
	c.stdout = io.Discard
	return s.git.run(ctx, c)
}

// smallHistory counts the objects in the checkout's packs by their indexes' fan-out tables.
func (s *Store) smallHistory() bool {
	alternates, err := os.ReadFile(filepath.Join(s.loose.dir, "info/alternates"))
	if err != nil {
		return false
	}
	objects := strings.TrimSpace(string(alternates))
	if exists(filepath.Join(objects, "info/alternates")) {
		return false // more objects lie elsewhere
	}
	packs, err := filepath.Glob(filepath.Join(objects, "pack", "*.idx"))
	if err != nil {
		return false
	}
	total := 0
	for _, idx := range packs {
		n, err := packedObjects(idx)
		if err != nil {
			return false
		}
		total += n
	}
	return total <= historyObjects
}

func packedObjects(idx string) (int, error) {
	file, err := os.Open(idx)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	// Version 2: magic, version, 256 counts of four bytes, the last of which is the total.
	var last [4]byte
	if _, err := file.ReadAt(last[:], 8+255*4); err != nil {
		return 0, err
	}
	return int(last[0])<<24 | int(last[1])<<16 | int(last[2])<<8 | int(last[3]), nil
}
