package git

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// forked is a repository in which main went on after a branch left it, and its store with both.
func forked(t *testing.T, main, branch map[string]string) (s *Store, f *forge, base, tip ID) {
	t.Helper()
	checkout := initRepo(t, sample())
	f = newForge(t, checkout)
	commit := func(content map[string]string) ID {
		for path, text := range content {
			put(t, checkout, path, text)
		}
		plain(t, checkout, "add", "-A")
		plain(t, checkout, "commit", "-q", "--allow-empty", "-m", "work")
		return ID(strings.TrimSpace(plain(t, checkout, "rev-parse", "HEAD")))
	}
	plain(t, checkout, "switch", "-q", "-c", "proctor/issue-1")
	tip = commit(branch)
	plain(t, checkout, "switch", "-q", "main")
	base = commit(main)
	plain(t, checkout, "push", "-q", f.bare, "main", "proctor/issue-1")
	s = openStore(t, newGit(t), checkout, string(base))
	return s, f, base, tip
}

func TestTwoHistoriesAreJoinedInTheStore(t *testing.T) {
	t.Parallel()
	// A driver that the repository names must not run, nor may "ours" hide the other side.
	s, _, base, tip := forked(t, map[string]string{"b.txt": "main's\n", ".gitattributes": "* merge=ours\n"}, map[string]string{"c.txt": "ours\n"})
	m, err := s.Merge(t.Context(), tip, base)
	if err != nil || len(m.Conflicts) != 0 {
		t.Fatalf("%+v, %v", m, err)
	}
	id, err := s.Join(m.Tree, tip, base, Meta{Run: "r1", Issue: "1"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.ReadCommit(t.Context(), id)
	if err != nil || !slices.Equal(c.Parents, []ID{tip, base}) || c.Tree != m.Tree || c.Trailer(TrailerBase) != string(base) {
		t.Errorf("%+v, %v", c, err)
	}
	for path, want := range map[string]string{"b.txt": "main's\n", "c.txt": "ours\n"} {
		if got, err := s.ReadFile(t.Context(), id, path, 0); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v", path, got, err)
		}
	}
	if issue, ours, err := s.Wrote(t.Context(), id); err != nil || !ours || issue != "1" {
		t.Errorf("the merge is of issue %q, ours %v, %v", issue, ours, err)
	}
	if _, ours, err := s.Wrote(t.Context(), tip); err != nil || ours {
		t.Errorf("a person's commit is ours %v, %v", ours, err)
	}
}

func TestAConflictIsNamedAndItsMarkersAreFound(t *testing.T) {
	t.Parallel()
	s, _, base, tip := forked(t, map[string]string{"odd name \".txt": "main's\n"}, map[string]string{"odd name \".txt": "ours\n", "c.txt": "ours\n"})
	m, err := s.Merge(t.Context(), tip, base)
	if err != nil || !slices.Equal(m.Conflicts, []string{"odd name \".txt"}) {
		t.Fatalf("%+v, %v", m, err)
	}
	entry, err := s.lookup(t.Context(), m.Tree, m.Conflicts[0])
	if err != nil {
		t.Fatal(err)
	}
	both, err := s.ReadBlob(t.Context(), entry.ID, 0)
	if err != nil || !marked(t, string(both), tip, base) || !strings.Contains(string(both), "main's\n") || !strings.Contains(string(both), "ours\n") {
		t.Errorf("%q, %v", both, err)
	}
	for _, settled := range []string{"ours\n", "a text about <<<<<<< HEAD\n<<<<<<< HEAD\n=======\n>>>>>>> main\n"} {
		if marked(t, settled, tip, base) {
			t.Errorf("%q counts as a conflict", settled)
		}
	}
}

// INV-15: a driver of git's own that an attribute names would settle a conflict without anybody's eyes.
func TestNoAttributeSettlesAConflict(t *testing.T) {
	t.Parallel()
	for _, driver := range []string{"union", "binary"} {
		s, _, base, tip := forked(t, map[string]string{"c.txt": "main's\n", ".gitattributes": "* merge=" + driver + "\n"}, map[string]string{"c.txt": "ours\n", ".gitattributes": "* merge=" + driver + "\n"})
		m, err := s.Merge(t.Context(), tip, base)
		if err != nil || !slices.Equal(m.Conflicts, []string{"c.txt"}) || len(m.Unmarked) > 0 {
			t.Errorf("%s: %+v, %v", driver, m, err)
		}
	}
}

// sides are two commits that left a third one, each with other content at some paths.
func sides(t *testing.T, s *Store, common, ours, theirs map[string]Entry) (tip, base ID) {
	t.Helper()
	on := func(parent ID, changes map[string]Entry) ID {
		id, err := s.Variant(t.Context(), parent, changes)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	fork := on(s.Base(), common)
	return on(fork, ours), on(fork, theirs)
}

// file is an entry with this content.
func file(t *testing.T, s *Store, mode Mode, content string) Entry {
	t.Helper()
	id, err := s.WriteBlob([]byte(content))
	if err != nil {
		t.Fatal(err)
	}
	return Entry{mode, id}
}

func marked(t *testing.T, content string, ours, theirs ID) bool {
	t.Helper()
	m, err := marksIn(strings.NewReader(content), ours, theirs)
	if err != nil {
		t.Fatal(err)
	}
	return m.Any()
}

const fiveLines = "one\ntwo\nthree\nfour\nfive\n"

// third is fiveLines with another third line.
func third(s string) string { return strings.Replace(fiveLines, "three", s, 1) }

// INV-15: where a side has renamed the file, git's marks name the path too; an agent that leaves them has settled nothing.
func TestAMarkIsFoundWhateverStandsBehindItsID(t *testing.T) {
	t.Parallel()
	s := openStore(t, newGit(t), initRepo(t, sample()), "")
	const from, to = "a.txt", "z.txt"
	tip, base := sides(t, s, map[string]Entry{from: file(t, s, ModeFile, fiveLines)},
		map[string]Entry{from: {}, to: file(t, s, ModeFile, third("ours"))}, map[string]Entry{from: file(t, s, ModeFile, third("theirs"))})
	m, err := s.Merge(t.Context(), tip, base)
	if err != nil || !slices.Equal(m.Conflicts, []string{to}) {
		t.Fatalf("%+v, %v", m, err)
	}
	entry, err := s.lookup(t.Context(), m.Tree, to)
	if err != nil {
		t.Fatal(err)
	}
	both, err := s.ReadBlob(t.Context(), entry.ID, 0)
	if err != nil || !strings.Contains(string(both), "<<<<<<< "+string(tip)+":"+to+"\n") || !strings.Contains(string(both), ">>>>>>> "+string(base)+":"+from+"\n") {
		t.Fatalf("git names no path: this test proves nothing: %q, %v", both, err)
	}
	for line, want := range map[string]bool{
		string(both):                                true,
		"<<<<<<< " + string(tip) + ":z\n":           true,
		">>>>>>> " + string(base) + ":a\r\n":        true,
		">>>>>>> " + string(base) + " (a)\n":        true,
		"<<<<<<<<<<<< " + string(tip) + "\n":        true,
		">>>>>>> " + string(base):                   true,
		">>>>>>> " + string(tip) + ":z\n":           false,
		"<<<<<<< " + string(tip) + "0\n":            false,
		" " + string(tip) + "\n":                    false,
		"text <<<<<<< " + string(tip) + "\n":        false,
		"package pkg // both " + string(tip) + "\n": false,
	} {
		if got := marked(t, line, tip, base); got != want {
			t.Errorf("%q counts as marked: %v", line, got)
		}
	}
}

// INV-15: marks under other names are marks; what only looks like them, and a line without end, are none.
func TestMarksAreCountedWhoeverIsNamedBehindThem(t *testing.T) {
	t.Parallel()
	tip, base := ID(strings.Repeat("a", 40)), ID(strings.Repeat("b", 40))
	git := "<<<<<<< " + string(tip) + "\nours\n=======\ntheirs\n>>>>>>> " + string(base) + "\n"
	for content, want := range map[string]Marks{
		git:       {Open: 1, Close: 1, Alike: 3},
		git + git: {Open: 2, Close: 2, Alike: 6},
		"<<<<<<< HEAD\r\n=======\r\n>>>>>>> main":                                      {Alike: 3},
		"<<<<<<<\n||||||| base\n":                                                      {Alike: 2},
		"<<<<<<\n<<<<<<<<\n<<<<<<<x\n======== \n======= x\n <<<<<<< HEAD\n<<<<<<= x\n": {},
		strings.Repeat("x", 1<<20) + "<<<<<<< HEAD\n" + git:                            {Open: 1, Close: 1, Alike: 3},
		strings.Repeat("x", 4096) + "<<<<<<< " + string(tip) + "\n":                    {},
	} {
		if got, err := marksIn(strings.NewReader(content), tip, base); err != nil || got != want {
			t.Errorf("%.80q has %+v, %v", content, got, err)
		}
	}
	for _, c := range []struct {
		m    Marks
		want int
	}{{Marks{Open: 1, Close: 1, Alike: 3}, 0}, {Marks{Open: 1, Close: 1, Alike: 5}, 2}, {Marks{Alike: 2}, 2}, {Marks{Open: 1}, 0}} {
		if got := c.m.Others(); got != c.want {
			t.Errorf("%+v has %d others", c.m, got)
		}
	}
}

// INV-15: a conflict that no mark shows would pass for settled, in favour of the side that git has left in the tree.
func TestAConflictWithoutMarksIsToldFromOneWithThem(t *testing.T) {
	t.Parallel()
	s := openStore(t, newGit(t), initRepo(t, sample()), "")
	text := func(content string) Entry { return file(t, s, ModeFile, content) }
	script := func(content string) Entry { return file(t, s, ModeExecutable, content) }
	link := func(to string) Entry { return file(t, s, ModeSymlink, to) }
	sub := func(digit string) Entry { return Entry{ModeGitlink, ID(strings.Repeat(digit, 40))} }
	none := Entry{}
	for name, c := range map[string]struct {
		common, ours, theirs Entry
		unmarked             bool
	}{
		"lines":                         {text(fiveLines), text(third("ours")), text(third("theirs")), false},
		"a file that both added":        {none, text("ours\n"), text("theirs\n"), false},
		"lines, and a mode of theirs":   {text(fiveLines), text(third("ours")), script(third("theirs")), false},
		"a binary file":                 {text("\x00\x01"), text("\x00ours"), text("\x00theirs"), true},
		"a file that we deleted":        {text(fiveLines), none, text(third("theirs")), true},
		"a file that they deleted":      {text(fiveLines), text(third("ours")), none, true},
		"a symlink":                     {link("x"), link("y"), link("z"), true},
		"a symlink that was a file":     {text(fiveLines), link("y"), text(third("theirs")), true},
		"a submodule":                   {sub("1"), sub("2"), sub("3"), true},
		"a mode":                        {none, text("both\n"), script("both\n"), true},
		"a mode beside lines":           {none, text("ours\n"), script("theirs\n"), true},
		"marks that were there already": {text("\x00<<<<<<< HEAD\n"), text("\x00<<<<<<< HEAD\nours"), text("\x00<<<<<<< HEAD\ntheirs"), true},
	} {
		const path = "dir/odd \t\n\".txt\n"
		tip, base := sides(t, s, map[string]Entry{path: c.common}, map[string]Entry{path: c.ours}, map[string]Entry{path: c.theirs})
		m, err := s.Merge(t.Context(), tip, base)
		if err != nil || len(m.Conflicts) == 0 {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
		if (len(m.Unmarked) > 0) != c.unmarked || !c.unmarked && !slices.Equal(m.Conflicts, []string{path}) {
			t.Errorf("%s: of %q these are unmarked: %q", name, m.Conflicts, m.Unmarked)
		}
	}
}

// INV-15: so it is where names conflict. Where both sides stand in one file all the same, its marks are shown to the agent.
func TestAConflictOfNamesIsUnmarked(t *testing.T) {
	t.Parallel()
	s := openStore(t, newGit(t), initRepo(t, sample()), "")
	text := func(content string) Entry { return file(t, s, ModeFile, content) }
	long := strings.Repeat("a line that is the same\n", 20)
	none := Entry{}
	type side = map[string]Entry
	for name, c := range map[string]struct {
		common, ours, theirs side
		unmarked             bool
	}{
		"renamed to two names":            {side{"a": text(long)}, side{"a": none, "b": text(long)}, side{"a": none, "c": text(long)}, true},
		"renamed to two names and edited": {side{"a": text(long)}, side{"a": none, "b": text(long + "ours\n")}, side{"a": none, "c": text(long + "theirs\n")}, true},
		"renamed and deleted":             {side{"a": text(long)}, side{"a": none, "b": text(long)}, side{"a": none}, true},
		"deleted and renamed":             {side{"a": text(long)}, side{"a": none}, side{"a": none, "b": text(long + "more\n")}, true},
		"a file and a directory":          {side{"a": text(long)}, side{"a": text(long + "ours\n")}, side{"a": none, "a/b": text("theirs\n")}, true},
		"a directory that moved": {side{"d/a": text(long), "d/b": text("b" + long)}, side{"d/a": none, "d/b": none, "e/a": text(long), "e/b": text("b" + long)},
			side{"d/new": text("theirs\n")}, true},
		"two files renamed to one":         {side{"a": text(long), "b": text(fiveLines)}, side{"a": none, "c": text(long)}, side{"b": none, "c": text(fiveLines)}, false},
		"renamed by one, edited by both":   {side{"a": text(long)}, side{"a": none, "b": text(long + "ours\n")}, side{"a": text(long + "theirs\n")}, false},
		"lines, beside a file without any": {side{"a": text(fiveLines), "b": text("\x00")}, side{"a": text(third("ours")), "b": text("\x00ours")}, side{"a": text(third("theirs")), "b": text("\x00theirs")}, true},
		"a name that looks like a mark":    {side{"<<<<<<< HEAD": text(fiveLines)}, side{"<<<<<<< HEAD": text(third("ours"))}, side{"<<<<<<< HEAD": text(third("theirs"))}, false},
	} {
		tip, base := sides(t, s, c.common, c.ours, c.theirs)
		m, err := s.Merge(t.Context(), tip, base)
		if err != nil || len(m.Conflicts) == 0 || (len(m.Unmarked) > 0) != c.unmarked {
			t.Errorf("%s: of %q these are unmarked: %q, %v", name, m.Conflicts, m.Unmarked, err)
		}
	}
}

func TestTheShallowStoreOfAJobGetsTheHistoryItNeeds(t *testing.T) {
	t.Parallel()
	_, f, base, tip := forked(t, map[string]string{"b.txt": "main's\n"}, map[string]string{"c.txt": "ours\n"})
	job := filepath.Join(t.TempDir(), "job")
	plain(t, t.TempDir(), "clone", "-q", "--depth=1", "--branch", "main", "file://"+f.bare, job)
	s := openStore(t, newGit(t), job, string(base))
	if err := s.Fetch(t.Context(), f.remote(), "refs/heads/proctor/issue-1:refs/heads/proctor/issue-1"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.MergeBase(t.Context(), tip, base); err == nil {
		t.Fatal("a shallow store finds what the two share: this test proves nothing")
	}
	for range 2 {
		if err := s.Deepen(t.Context(), f.remote(), "refs/heads/main"); err != nil {
			t.Fatal(err)
		}
	}
	if m, err := s.Merge(t.Context(), tip, base); err != nil || len(m.Conflicts) != 0 {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestASnapshotJoinsTheHistoryBesideIt(t *testing.T) {
	t.Parallel()
	s, _, base, tip := forked(t, map[string]string{"b.txt": "main's\n"}, map[string]string{"b.txt": "ours\n"})
	w, err := s.NewAgent(t.Context(), filepath.Join(t.TempDir(), "agent"), nil)
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.Merge(t.Context(), tip, base)
	if err != nil {
		t.Fatal(err)
	}
	marked, err := s.Join(m.Tree, tip, base, Meta{Run: "r1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Restore(t.Context(), marked); err != nil {
		t.Fatal(err)
	}
	put(t, w.Dir(), "b.txt", "both\n")
	snap, err := w.Snapshot(t.Context(), SnapshotOptions{Parent: tip, Beside: base, Meta: Meta{Run: "r1"}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.ReadCommit(t.Context(), snap.Commit)
	if err != nil || !slices.Equal(c.Parents, []ID{tip, base}) {
		t.Errorf("%+v, %v", c, err)
	}
	// INV-15: squashed, it is one commit on the same parents; alone on them it stays what it is.
	put(t, w.Dir(), "b.txt", "both, better\n")
	next, err := w.Snapshot(t.Context(), SnapshotOptions{Parent: snap.Commit, Meta: Meta{Run: "r1"}})
	if err != nil {
		t.Fatal(err)
	}
	one, err := s.Squash(t.Context(), next.Commit, Meta{Run: "r1"}, tip, base)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := s.ReadCommit(t.Context(), one); err != nil || !slices.Equal(c.Parents, []ID{tip, base}) || c.Tree != next.Tree {
		t.Errorf("%+v, %v", c, err)
	}
	for _, same := range []struct{ commit, onto ID }{{snap.Commit, tip}, {tip, tip}} {
		if got, err := s.Squash(t.Context(), same.commit, Meta{}, same.onto, base); err != nil || got != same.commit {
			t.Errorf("%s became %s, %v", same.commit, got, err)
		}
	}
}

// Whose a file of a branch is: along the branch alone, and not below where a run of ours began.
func TestTheFilesOfOthersOnABranchAreTold(t *testing.T) {
	t.Parallel()
	s := openStore(t, newGit(t), initRepo(t, sample()), "")
	on := func(parent ID, path string) ID {
		id, err := s.Variant(t.Context(), parent, map[string]Entry{path: file(t, s, ModeFile, path)})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	joined := func(paths ID, parents ...ID) ID {
		tree, err := s.Tree(t.Context(), paths)
		if err != nil {
			t.Fatal(err)
		}
		id, err := s.writeCommit(tree, parents, Meta{Run: "r1"}.message(s.Base()))
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	ours := joined(on(s.Base(), "ours.txt"), s.Base())
	theirs := on(ours, "theirs.txt")
	side := on(on(s.Base(), "main1.txt"), "main2.txt")
	merge := joined(on(theirs, "more.txt"), theirs, side)
	for tip, want := range map[ID][]string{
		s.Base(): nil, ours: nil, theirs: {"theirs.txt"}, merge: {"theirs.txt"}, on(merge, "last.txt"): {"last.txt", "theirs.txt"}, side: {"main1.txt", "main2.txt"},
	} {
		if got, err := s.ByOthers(t.Context(), tip); err != nil || !slices.Equal(slices.Sorted(maps.Keys(got)), want) {
			t.Errorf("%s: %v, want %q, %v", tip, got, want, err)
		}
	}
}
