package app

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/proctor-ci/proctor/internal/agent"
	"github.com/proctor-ci/proctor/internal/config"
	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
	"github.com/proctor-ci/proctor/internal/forge/github"
	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/loop"
	"github.com/proctor-ci/proctor/internal/prompt"
)

// hubFor is a forge with one file on its default branch, and its client.
func hubFor(t *testing.T, path, content string) (*forgetest.GitHub, *github.Client) {
	t.Helper()
	g, err := forgetest.NewGitHub(forgetest.Options{Dir: t.TempDir(), Files: fstest.MapFS{path: {Data: []byte(content)}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	client, err := github.New(github.Config{BaseURL: g.APIURL(), ServerURL: g.URL(), Owner: g.Owner(), Repo: g.Repo(), Token: g.NewToken(forgetest.Token{Login: g.Owner()})})
	if err != nil {
		t.Fatal(err)
	}
	return g, client
}

// staleAt is a session whose base has changed path since a branch left it.
func staleAt(t *testing.T, path string) *session {
	t.Helper()
	g, client := hubFor(t, path, "one\ntwo\nthree\n")
	s, _ := sessionOn(t, client, g.GitDir(), path, "one\ntheirs\nthree\n")
	s.cfg, s.trigger.Repo.DefaultBranch = config.Default(), base
	s.req.forge, s.coder = client, named{}
	s.status, s.red = &statusKeeper{}, evidence.NewRedactor()
	return s
}

// named is an agent that only has a name.
type named struct{ agent.Agent }

func (named) Name() string { return "script" }

// left is a commit beside the base with other entries than the commit below the base.
func (s *session) left(t *testing.T, changes map[string]git.Entry) git.ID {
	t.Helper()
	c, err := s.store.ReadCommit(t.Context(), s.store.Base())
	if err != nil {
		t.Fatal(err)
	}
	return s.varied(t, c.Parents[0], changes)
}

func (s *session) varied(t *testing.T, from git.ID, changes map[string]git.Entry) git.ID {
	t.Helper()
	id, err := s.store.Variant(t.Context(), from, changes)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func (s *session) blob(t *testing.T, content string) git.Entry {
	t.Helper()
	id, err := s.store.WriteBlob([]byte(content))
	if err != nil {
		t.Fatal(err)
	}
	return git.Entry{Mode: git.ModeFile, ID: id}
}

// INV-15: what no mark can show the agent is not the agent's to settle, for doing nothing would settle it, against the base.
func TestAConflictThatNoMarkShowsIsRefusedBeforeAnythingIsSpent(t *testing.T) {
	t.Parallel()
	const path = "app/answer.txt"
	s := staleAt(t, path)
	for name, c := range map[string]struct {
		ours    git.Entry
		refused bool
	}{
		"control: lines":     {s.blob(t, "one\nours\nthree\n"), false},
		"a binary file":      {s.blob(t, "one\x00ours"), true},
		"a deleted file":     {git.Entry{}, true},
		"a file made a link": {git.Entry{Mode: git.ModeSymlink, ID: s.blob(t, "elsewhere").ID}, true},
	} {
		r := &round{Pull: 7, Branch: "proctor/issue-3", Tip: s.left(t, map[string]git.Entry{path: c.ours})}
		err := s.joinBase(t.Context(), r)
		var e *ended
		switch {
		case !c.refused && (err != nil || r.marked == "" || !slices.Equal(r.Conflicts, []string{path})):
			t.Errorf("%s: %+v, %v", name, r, err)
		case c.refused && (!errors.As(err, &e) || e.terminal != evidence.Refused || !strings.Contains(e.reason, "by hand: "+path) || !strings.Contains(e.next, "merge "+base+" into proctor/issue-3, then ask again")):
			t.Errorf("%s: %v", name, err)
		case c.refused && r.marked != "":
			t.Errorf("%s: it was laid before the agent", name)
		}
		// So it is where a machine takes up a round that another one began.
		if again := s.markConflicts(t.Context(), r); (again != nil) != c.refused {
			t.Errorf("%s: taken up: %v", name, again)
		}
	}
}

// INV-15: a conflict is settled when no file shows both sides any more, whatever it is called, and an agent that did nothing has settled none.
func TestAConflictIsSettledByWhoeverTakesItsMarksAway(t *testing.T) {
	t.Parallel()
	path := "app/" + strings.Repeat("a very long name ", 8) + "::.txt" // longer than a note shows it
	s := staleAt(t, path)
	r := &round{Pull: 7, Branch: "proctor/issue-3", Tip: s.left(t, map[string]git.Entry{path: s.blob(t, "one\nours\nthree\n")})}
	r.Start = r.Tip
	if err := s.joinBase(t.Context(), r); err != nil || r.marked == "" {
		t.Fatalf("%+v, %v", r, err)
	}
	s.round, s.newRound = r, true
	tree := func(id git.ID) string {
		t.Helper()
		tree, err := s.store.Tree(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return string(tree)
	}
	st, err := s.beginOn(t.Context(), loop.Begin(loop.Commit{ID: "b", Tree: "b"}))
	if err != nil || st.Good.ID != string(r.Tip) || st.From.Tree != tree(r.marked) {
		t.Errorf("nothing is asked but to settle it, and the agent's start %+v counts as an end: %v", st.From, err)
	}
	both, err := s.store.Entry(t.Context(), r.marked, path)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		changes map[string]git.Entry
		holds   string
	}{
		"nothing done":      {nil, path},
		"something else":    {map[string]git.Entry{"more.txt": s.blob(t, "more\n")}, path},
		"moved":             {map[string]git.Entry{path: {}, "moved.txt": both}, "moved.txt"},
		"other names":       {map[string]git.Entry{path: s.blob(t, "<<<<<<< HEAD\none\nours\n=======\ntheirs\n>>>>>>> main\nthree\n")}, path},
		"half taken away":   {map[string]git.Entry{path: s.blob(t, "one\nours\n=======\ntheirs\nthree\n")}, path},
		"made executable":   {map[string]git.Entry{path: {Mode: git.ModeExecutable, ID: both.ID}}, path},
		"copied":            {map[string]git.Entry{path: s.blob(t, "one\nboth\nthree\n"), "copy.txt": both}, "copy.txt"},
		"control: settled":  {map[string]git.Entry{path: s.blob(t, "one\nboth\nthree\n")}, ""},
		"control: deleted":  {map[string]git.Entry{path: {}}, ""},
		"control: one side": {map[string]git.Entry{path: s.blob(t, "one\nours\nthree\n"), "more.txt": s.blob(t, "<<<<<<< HEAD\n")}, ""},
	} {
		id := s.varied(t, r.marked, c.changes)
		if got, err := s.unsettledIn(t.Context(), loop.Commit{ID: string(id), Tree: tree(id)}); err != nil || got != c.holds {
			t.Errorf("%s: marks are in %q, want %q, %v", name, got, c.holds, err)
		}
	}
}

// INV-31: tests that people have put on the branch are not the round's to delete, though the base never had them; a file in conflict may have
// to change to be settled, and is shown.
func TestARoundKeepsThePeoplesTestsOfItsBranch(t *testing.T) {
	t.Parallel()
	const path = "app/answer_test.go"
	test := func(name string) string {
		return "package app\n\nimport \"testing\"\n\nfunc " + name + "(t *testing.T) {\n\tif Answer() != 42 {\n\t\tt.Fatal(\"wrong\")\n\t}\n}\n"
	}
	s := staleAt(t, path)
	if err := s.makeGuard(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.env.Now = time.Now
	s.tick(1).Commit = &evidence.Commit{}
	tip := s.left(t, map[string]git.Entry{path: s.blob(t, "one\nours\nthree\n"), "app/theirs_test.go": s.blob(t, test("TestTheirs"))})
	r := &round{Pull: 7, Branch: "proctor/issue-3", Tip: tip, Start: tip}
	s.round = r
	if err := s.joinBase(t.Context(), r); err != nil || r.marked == "" {
		t.Fatalf("%+v, %v", r, err)
	}
	var err error
	if r.theirs, err = s.store.ByOthers(t.Context(), tip); err != nil || !r.theirs["app/theirs_test.go"] || r.theirs["README.md"] {
		t.Fatalf("%v, %v", r.theirs, err)
	}
	look := func(changes map[string]git.Entry) loop.GuardSeen {
		t.Helper()
		changes[path] = s.blob(t, "one\nboth\nthree\n")
		id := s.varied(t, r.marked, changes)
		tree, err := s.store.Tree(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if s.snap.Changes, err = s.store.Diff(t.Context(), s.store.BaseTree(), tree); err != nil {
			t.Fatal(err)
		}
		was, err := s.store.Tree(t.Context(), tip)
		if err != nil {
			t.Fatal(err)
		}
		seen, err := s.Guard(t.Context(), 1, loop.Commit{ID: string(tip), Tree: string(was)}, loop.Commit{ID: string(id), Tree: string(tree)})
		if err != nil {
			t.Fatal(err)
		}
		s.proved = id
		return seen
	}
	if seen := look(map[string]git.Entry{"more.txt": s.blob(t, "more\n")}); seen.Level != loop.GuardPass {
		t.Errorf("control: %+v", seen)
	}
	if err := s.tellTakenOut(t.Context()); err != nil || len(s.rec.Notes) != 1 { // the conflict's own
		t.Errorf("control: %q, %v", s.rec.Notes, err)
	}
	if seen := look(map[string]git.Entry{"app/theirs_test.go": {}}); seen.Level != loop.GuardBlock || !strings.Contains(seen.Detail, "app/theirs_test.go") || !strings.Contains(seen.Detail, "since the round began") {
		t.Errorf("%+v", seen)
	}
	if err := s.tellTakenOut(t.Context()); err != nil || !strings.Contains(strings.Join(s.rec.Notes, "\n"), "not in the change any more: app/theirs_test.go") {
		t.Errorf("%q, %v", s.rec.Notes, err)
	}
	r.theirs = nil // as if a run of ours had written it
	if seen := look(map[string]git.Entry{"app/theirs_test.go": {}}); seen.Level != loop.GuardPass || !strings.Contains(r.asks(), "conflicted with it") || !strings.Contains(r.asks(), path) {
		t.Errorf("our own: %+v, the reviewer is asked %q", seen, r.asks())
	}
}

// What no agent could settle is a person's: more files than it can be shown, and a base whose history was replaced.
func TestABaseThatCannotBeJoinedIsRefused(t *testing.T) {
	t.Parallel()
	s := staleAt(t, "app/answer.txt")
	ask := func(tip git.ID) string {
		t.Helper()
		var e *ended
		err := s.joinBase(t.Context(), &round{Pull: 7, Branch: "proctor/issue-3", Tip: tip})
		if err != nil && (!errors.As(err, &e) || e.terminal != evidence.Refused || e.next == "") {
			t.Fatal(err)
		}
		if err == nil {
			return ""
		}
		return e.reason
	}
	for n, refused := range map[int]bool{maxConflicts: false, maxConflicts + 1: true} {
		m := git.Merge{Tree: s.store.BaseTree()}
		for i := range n {
			m.Conflicts = append(m.Conflicts, strings.Repeat("x", i+1))
		}
		r := &round{Branch: "proctor/issue-3", Tip: s.store.Base()}
		if err := s.mark(r, m); (err != nil) != refused || refused && !strings.Contains(err.Error(), "in 101 files") {
			t.Errorf("%d conflicts: %v", n, err)
		}
	}
	apart := strings.TrimSpace(gitAt(t, s.store.Dir(), "", "-c", "user.name=Maya", "-c", "user.email=maya@example.com", "commit-tree", "-m", "Anew", string(s.store.BaseTree())))
	if got := ask(git.ID(apart)); !strings.Contains(got, "share no history") {
		t.Errorf("%q", got)
	}
	if got := ask(s.left(t, map[string]git.Entry{"more.txt": s.blob(t, "more\n")})); got != "" {
		t.Errorf("control: %q", got)
	}
}

// A round without wishes on a branch whose change the base has got by another way would be spent on nothing.
func TestARoundOnAChangeThatTheBaseHasIsRefused(t *testing.T) {
	t.Parallel()
	const path = "app/answer.txt"
	s := staleAt(t, path)
	if err := s.makeGuard(t.Context()); err != nil {
		t.Fatal(err)
	}
	theirs := s.blob(t, "one\ntheirs\nthree\n")
	for name, c := range map[string]struct {
		changes map[string]git.Entry
		wish    string
		says    string
	}{
		"the base has it":             {map[string]git.Entry{path: theirs}, "", "holds all that branch"},
		"control: and more is wished": {map[string]git.Entry{path: theirs}, "More.", ""},
		"control: it has not":         {map[string]git.Entry{path: theirs, "more.txt": s.blob(t, "more\n")}, "", ""},
	} {
		tip := s.left(t, c.changes)
		s.round = &round{Pull: 7, Branch: "proctor/issue-3", Tip: tip, Start: tip}
		s.round.add(wish{Wish: prompt.Wish{From: "command", Text: c.wish}})
		s.newRound = true
		if err := s.layRound(t.Context()); (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	tip := s.varied(t, s.store.Base(), map[string]git.Entry{"more.txt": s.blob(t, "more\n")})
	s.round = &round{Pull: 7, Branch: "proctor/issue-3", Tip: tip, Start: tip}
	if err := s.layRound(t.Context()); err == nil || !strings.Contains(err.Error(), "nothing to do") {
		t.Errorf("nothing asked: %v", err)
	}
}
