package git

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// INV-24, INV-15: whatever a gate does to tracked files is reported and undone; what it ignores stays;
// nothing of it is in the next commit.
func TestAGateCannotChangeWhatIsGated(t *testing.T) {
	t.Parallel()
	sp := newSpace(t, initRepo(t, sample()), heldOut)
	put(t, sp.agent.Dir(), "pkg/sum.go", "candidate\n")
	put(t, sp.agent.Dir(), "added.txt", "new\n")
	snap := sp.snapshot(t, "")
	if err := sp.gate.Sync(t.Context(), snap.Commit); err != nil {
		t.Fatal(err)
	}
	want := with(without(sample(), "tests/acceptance/sum_test.txt"), files{"pkg/sum.go": "candidate\n", "added.txt": "new\n"})
	dir := sp.gate.Dir()
	if diff := cmp.Diff(want, contents(t, dir)); diff != "" {
		t.Fatalf("gate/ after Sync (-want +got):\n%s", diff)
	}
	if drift, err := sp.gate.Check(t.Context()); err != nil || !drift.Empty() {
		t.Fatalf("drift of an untouched directory: %+v, %v", drift, err)
	}

	put(t, dir, "pkg/sum.go", "repaired by the gate\n")
	put(t, dir, ".gitignore", "*\n") // would hide what it leaves
	put(t, dir, "left/behind.txt", "x")
	put(t, dir, "dist/cache", "kept")
	put(t, dir, "pkg/evil/.gitignore", "*\n")
	put(t, dir, "tests/acceptance/sum_test.txt", "planted")
	if err := os.Remove(dir + "/README.md"); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir+"/run.sh", 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir + "/tests/unit"); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "tests/unit", "->../pkg")
	plain(t, dir, "init", "-q")
	if contents(t, dir)["pkg/sum.go"] == "candidate\n" {
		t.Fatal("control: the gate did damage")
	}
	drift, err := sp.gate.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wantDrift := Drift{
		Changed: []string{".gitignore", "README.md", "pkg/sum.go", "run.sh", "tests/unit/a_test.txt"},
		Left:    []string{".git", "left/behind.txt", "tests/acceptance/sum_test.txt", "tests/unit"},
	}
	if diff := cmp.Diff(wantDrift, drift); diff != "" {
		t.Errorf("drift (-want +got):\n%s", diff)
	}
	// Files a rule of the gate's own making hides count as ignored only when that file is no part of the commit.
	want = with(want, files{"dist/cache": "kept", "pkg/evil/.gitignore": "*\n"})
	if diff := cmp.Diff(want, contents(t, dir)); diff != "" {
		t.Errorf("gate/ after Check (-want +got):\n%s", diff)
	}
	for _, gone := range []string{".git", "left"} {
		if exists(filepath.Join(dir, gone)) {
			t.Errorf("%s is still there", gone)
		}
	}
	if drift, err := sp.gate.Check(t.Context()); err != nil || !drift.Empty() {
		t.Errorf("after the repair: %+v, %v", drift, err)
	}
	if next := sp.snapshot(t, snap.Commit); !next.Unchanged {
		t.Errorf("the gate changed the next commit: %v", paths(next.Changes))
	}
}

func TestSyncMovesBetweenCommitsWhateverChangesKind(t *testing.T) {
	t.Parallel()
	sp := newSpace(t, initRepo(t, sample()), heldOut)
	base := contents(t, sp.gate.Dir())
	dir := sp.agent.Dir()
	for _, path := range []string{"pkg", "README.md", "link"} {
		if err := os.RemoveAll(dir + "/" + path); err != nil {
			t.Fatal(err)
		}
	}
	put(t, dir, "pkg", "a file now\n")
	put(t, dir, "README.md/inside", "a directory now\n")
	put(t, dir, "link", "#! no link now\n")
	snap := sp.snapshot(t, "")
	for range 2 {
		if err := sp.gate.Sync(t.Context(), snap.Commit); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(contents(t, dir), contents(t, sp.gate.Dir())); diff != "" {
			t.Errorf("gate/ at the candidate (-want +got):\n%s", diff)
		}
		if err := sp.gate.Sync(t.Context(), sp.store.Base()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(base, contents(t, sp.gate.Dir())); diff != "" {
			t.Errorf("gate/ back at the base (-want +got):\n%s", diff)
		}
	}
}

func TestSyncWritesOnlyWhatDiffers(t *testing.T) {
	t.Parallel()
	sp := newSpace(t, initRepo(t, sample()), nil)
	before, err := os.Stat(sp.gate.Dir() + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	put(t, sp.agent.Dir(), "pkg/sum.go", "x\n")
	snap := sp.snapshot(t, "")
	if err := sp.gate.Sync(t.Context(), snap.Commit); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(sp.gate.Dir() + "/README.md")
	if err != nil || !os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime()) {
		t.Error("an equal file was written again: build caches would be lost")
	}
}

// INV-13: a second name of a tracked file's inode is not written through.
func TestSyncDoesNotWriteThroughAHardLink(t *testing.T) {
	t.Parallel()
	sp := newSpace(t, initRepo(t, sample()), nil)
	outside := filepath.Join(filepath.Dir(sp.gate.Dir()), "outside")
	file := sp.gate.Dir() + "/pkg/sum.go"
	if err := os.WriteFile(outside, []byte("outside"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(outside, file); err != nil {
		t.Fatal(err)
	}
	if err := sp.gate.Sync(t.Context(), sp.store.Base()); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(outside); err != nil || string(text) != "outside" {
		t.Errorf("the other name holds %q, %v", text, err)
	}
}

func TestSubmodulesStayAsTheyAre(t *testing.T) {
	t.Parallel()
	inner := initRepo(t, files{"a": "x"})
	outer := initRepo(t, sample())
	plain(t, outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", inner, "sub")
	plain(t, outer, "commit", "-qm", "submodule")
	sp := newSpace(t, outer, heldOut)
	for _, w := range []*Worktree{sp.agent, sp.gate} {
		if names, err := os.ReadDir(w.Dir() + "/sub"); err != nil || len(names) > 0 {
			t.Errorf("the submodule's directory: %v, %v", names, err)
		}
	}
	if status := plain(t, sp.agent.Dir(), "status", "--porcelain"); status != "" {
		t.Errorf("git status for the agent:\n%s", status)
	}
	put(t, sp.agent.Dir(), "pkg/sum.go", "x\n")
	snap := sp.snapshot(t, "")
	if diff := cmp.Diff([]string{"M pkg/sum.go"}, paths(snap.Changes)); diff != "" || len(snap.Problems) > 0 {
		t.Errorf("an empty submodule is no change: %s %v", diff, snap.Problems)
	}
	put(t, sp.agent.Dir(), "sub/loose", "x")
	if diff := cmp.Diff([]string{"submodule-content sub"}, kinds(sp.snapshot(t, "").Problems)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if err := os.RemoveAll(sp.agent.Dir() + "/sub"); err != nil {
		t.Fatal(err)
	}
	plain(t, sp.agent.Dir(), "clone", "-q", inner, "sub")
	plain(t, sp.agent.Dir()+"/sub", "commit", "-q", "--allow-empty", "-m", "bump")
	if diff := cmp.Diff([]string{"M pkg/sum.go", "M sub"}, paths(sp.snapshot(t, "").Changes)); diff != "" {
		t.Errorf("a bumped submodule (-want +got):\n%s", diff)
	}
	put(t, sp.gate.Dir(), "sub/left", "x")
	if drift, err := sp.gate.Check(t.Context()); err != nil || exists(sp.gate.Dir()+"/sub/left") {
		t.Errorf("a gate's file in the submodule stays: %+v, %v", drift, err)
	}
}

// INV-27: the proof is pristine, with the sealed files, and leaves nothing behind however it was treated.
func TestAProofIsPristineAndLeavesNothing(t *testing.T) {
	t.Parallel()
	sp := newSpace(t, initRepo(t, sample()), heldOut)
	put(t, sp.agent.Dir(), "pkg/sum.go", "candidate\n")
	snap := sp.snapshot(t, "")
	dir := filepath.Join(t.TempDir(), "proof")
	proof, err := sp.store.NewProof(t.Context(), dir, snap.Commit)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(with(sample(), files{"pkg/sum.go": "candidate\n"}), contents(t, proof.Dir)); diff != "" {
		t.Errorf("proof (-want +got):\n%s", diff)
	}
	if out, err := tryPlain(proof.Dir, "rev-parse", "--git-dir"); err == nil {
		t.Errorf("a git directory is in reach of the proof: %s", out)
	}
	put(t, proof.Home, "cache/x", "x")
	put(t, proof.Tmp, "read-only/x", "x")
	if err := os.Chmod(proof.Tmp+"/read-only", 0o500); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(proof.Dir+"/pkg", 0); err != nil {
		t.Fatal(err)
	}
	put(t, proof.Dir, "out", "->"+sp.agent.Dir())
	deep := proof.Tmp
	for range 300 {
		deep += "/deepdeep"
	}
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := sp.store.NewProof(t.Context(), dir, snap.Commit); err == nil {
		t.Error("a proof began in the leavings of another")
	}
	for range 2 {
		if err := proof.Remove(); err != nil {
			t.Fatal(err)
		}
	}
	if exists(dir) {
		t.Error("the proof is still there")
	}
	if !exists(sp.agent.Dir() + "/pkg/sum.go") {
		t.Error("removing followed a symlink")
	}
}

func TestRemovingGoesDeeperThanThereAreDescriptors(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	dir := filepath.Join(top, "x")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	// Longer than any path the kernel takes: made from the inside out.
	for range 30 {
		next := filepath.Join(top, "next")
		if err := os.MkdirAll(filepath.Join(next, strings.Repeat("d/", 200)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(dir, filepath.Join(next, strings.Repeat("d/", 200), "x")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, dir); err != nil {
			t.Fatal(err)
		}
	}
	put(t, top, ".proctor-remove-1/planted", "x")
	if err := removeTree(dir); err != nil {
		t.Fatal(err)
	}
	if exists(dir) {
		t.Error("it is still there")
	}
}

// INV-8: root over files of another user, and given to another user.
func TestWorktreesCanBelongToAnotherUser(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("giving files away needs root: run the tests as root to enable this one")
	}
	checkout := initRepo(t, sample())
	owner := Owner{UID: 1001, GID: 1001}
	err := filepath.WalkDir(checkout, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, owner.UID, owner.GID)
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tryPlain(checkout, "status"); err == nil {
		t.Error("control: plain git should refuse another user's checkout")
	}
	s := openStore(t, newGit(t), checkout, "")
	w, err := s.NewAgent(t.Context(), filepath.Join(t.TempDir(), "agent"), heldOut, OwnedBy(owner))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tryPlain(w.Dir(), "status"); err == nil {
		t.Error("control: the agent's directory should belong to its user")
	}
	for _, path := range []string{"", "pkg", "pkg/sum.go", "link", ".git", ".git/config", ".git/objects/pack"} {
		info, err := os.Lstat(filepath.Join(w.Dir(), path))
		if err != nil {
			t.Fatal(err)
		}
		if uid := uidOf(info); uid != owner.UID {
			t.Errorf("%q belongs to %d", path, uid)
		}
	}
	put(t, w.Dir(), "pkg/sum.go", "x\n")
	snap, err := w.Snapshot(t.Context(), SnapshotOptions{})
	if err != nil || len(snap.Changes) != 1 {
		t.Errorf("snapshot: %v, %v", paths(snap.Changes), err)
	}
}
