package git

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const stateRef = "refs/proctor/7/state"

// INV-9: a fresh runner, from a shallow clone of the base alone, gets state and work from the one ref.
func TestAFreshRunnerResumesFromTheStateRefAlone(t *testing.T) {
	t.Parallel()
	f, sp, snap := candidate(t)
	blob := []byte(`{"spent":"1.20"}` + "\x00\nnot only json")
	if _, err := sp.store.LoadState(t.Context(), f.remote(), stateRef); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("no state yet: %v", err)
	}
	id, err := sp.store.SaveState(t.Context(), f.remote(), stateRef, snap.Commit, blob, "")
	if err != nil {
		t.Fatal(err)
	}
	put(t, sp.agent.Dir(), "second", "x\n")
	second := sp.snapshot(t, snap.Commit)
	if id, err = sp.store.SaveState(t.Context(), f.remote(), stateRef, second.Commit, blob, id); err != nil {
		t.Fatal(err)
	}

	clone := filepath.Join(t.TempDir(), "fresh")
	plain(t, "/", "clone", "-q", "--depth=1", "file://"+f.bare, clone)
	fresh := newSpace(t, clone, heldOut)
	state, err := fresh.store.LoadState(t.Context(), f.remote(), stateRef)
	if err != nil {
		t.Fatal(err)
	}
	if state.ID != id || state.Commit != second.Commit || string(state.Blob) != string(blob) {
		t.Errorf("state %+v", state)
	}
	if err := fresh.agent.Restore(t.Context(), state.Commit); err != nil {
		t.Fatal(err)
	}
	again, err := fresh.agent.Snapshot(t.Context(), SnapshotOptions{Parent: state.Commit})
	if err != nil || !again.Unchanged || again.Tree != second.Tree {
		t.Errorf("resumed: %+v, %v", again, err)
	}
	put(t, fresh.agent.Dir(), "third", "x\n")
	third, err := fresh.agent.Snapshot(t.Context(), SnapshotOptions{Parent: state.Commit})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fresh.store.SaveState(t.Context(), f.remote(), stateRef, third.Commit, blob, state.ID); err != nil {
		t.Error(err)
	}
	// The first runner, alive after all, is told.
	if _, err := sp.store.SaveState(t.Context(), f.remote(), stateRef, second.Commit, blob, id); err == nil {
		t.Error("a stale runner overwrote the state")
	} else {
		wantKind(t, err, Rejected)
	}
}

// INV-9: a torn, cut, foreign, copied or newer state is told apart and not trusted.
func TestADamagedStateIsNotTrusted(t *testing.T) {
	t.Parallel()
	f, sp, snap := candidate(t)
	s := sp.store
	whole, err := s.WriteState(t.Context(), stateRef, snap.Commit, []byte(`{"spent":1}`))
	if err != nil {
		t.Fatal(err)
	}
	content, err := s.ReadFile(t.Context(), whole, stateFile, 0)
	if err != nil {
		t.Fatal(err)
	}
	text := string(content)
	cases := map[string]struct {
		name, content string
		parents       []ID
		kind          StateKind
	}{
		"whole":             {stateFile, text, []ID{snap.Commit}, ""},
		"cut payload":       {stateFile, text[:len(text)-3], []ID{snap.Commit}, Torn},
		"cut envelope":      {stateFile, text[:40], []ID{snap.Commit}, Torn},
		"empty":             {stateFile, "", []ID{snap.Commit}, Torn},
		"flipped bit":       {stateFile, strings.Replace(text, `"spent":1`, `"spent":0`, 1), []ID{snap.Commit}, Torn},
		"longer":            {stateFile, text + "x", []ID{snap.Commit}, Torn},
		"other parent":      {stateFile, text, []ID{s.Base()}, Torn},
		"no parent":         {stateFile, text, nil, Torn},
		"another's ref":     {stateFile, strings.Replace(text, "/7/", "/8/", 1), []ID{snap.Commit}, Foreign},
		"no envelope":       {stateFile, `{"spent":1}`, []ID{snap.Commit}, Foreign},
		"not JSON":          {stateFile, "hello\n", []ID{snap.Commit}, Foreign},
		"other file":        {"notes.txt", text, []ID{snap.Commit}, Foreign},
		"newer":             {stateFile, strings.Replace(text, `"version":1`, `"version":2`, 1), []ID{snap.Commit}, Newer},
		"impossible number": {stateFile, strings.Replace(text, `"version":1`, `"version":0`, 1), []ID{snap.Commit}, Foreign},
	}
	expect := ID("")
	for name, c := range cases {
		id, err := s.writeNote(c.name, []byte(c.content), c.parents, "x "+name+"\n")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Push(t.Context(), f.remote(), []RefUpdate{{stateRef, id, expect}}); err != nil {
			t.Fatal(err)
		}
		expect = id
		got, err := s.LoadState(t.Context(), f.remote(), stateRef)
		var bad *StateError
		if c.kind == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if !errors.As(err, &bad) || bad.Kind != c.kind || bad.ID != id || len(got.Blob) > 0 {
			t.Errorf("%s: got %v (blob %q), want %s", name, err, got.Blob, c.kind)
		}
	}
}

func FuzzStateEnvelope(f *testing.F) {
	f.Add([]byte(`{"format":"proctor-state","version":1,"ref":"refs/proctor/7/state","commit":"","bytes":2,"sha256":"x"}` + "\n{}"))
	f.Add([]byte("{\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		payload, kind, _ := openEnvelope(content, stateRef, []ID{"x"})
		if kind == "" && payload == nil {
			t.Error("trusted without a payload")
		}
	})
}

// INV-12: of many runs that begin at once exactly one holds the lease; the others learn who does.
func TestOfManyRunsOneHoldsTheLease(t *testing.T) {
	t.Parallel()
	checkout := initRepo(t, sample())
	f := newForge(t, checkout)
	const ref = "refs/proctor/7/lease"
	now := clock()
	var mu sync.Mutex
	g, err := New(Options{Now: func() time.Time { mu.Lock(); defer mu.Unlock(); return now }})
	if err != nil {
		t.Fatal(err)
	}
	open := func() *Store { return openStore(t, g, checkout, "") }
	leases := make([]*Lease, 5)
	errs := make([]error, 5)
	var wait sync.WaitGroup
	for i := range leases {
		s := open()
		wait.Go(func() {
			leases[i], errs[i] = s.Acquire(t.Context(), f.remote(), ref, "run-"+string(rune('a'+i)), time.Hour)
		})
	}
	wait.Wait()
	var winner *Lease
	for i, err := range errs {
		var held *HeldError
		switch {
		case err == nil && winner == nil:
			winner = leases[i]
		case err == nil:
			t.Error("two runs hold the lease")
		case !errors.As(err, &held) && !errors.Is(err, ErrLeaseLost):
			t.Errorf("run %d: %v", i, err)
		}
	}
	if winner == nil {
		t.Fatal("nobody holds the lease")
	}
	if err := winner.Renew(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	late := open()
	var held *HeldError
	if _, err := late.Acquire(t.Context(), f.remote(), ref, "late", time.Hour); !errors.As(err, &held) || held.Holder != winner.Holder {
		t.Errorf("a held lease: %v", err)
	}
	mu.Lock()
	now = now.Add(61 * time.Minute)
	mu.Unlock()
	taken, err := late.Acquire(t.Context(), f.remote(), ref, "late", time.Hour)
	if err != nil {
		t.Fatalf("an expired lease could not be taken over: %v", err)
	}
	if err := winner.Renew(t.Context(), time.Hour); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("the old holder is not told: %v", err)
	}
	if err := taken.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := open().Acquire(t.Context(), f.remote(), ref, "next", time.Hour); err != nil {
		t.Errorf("a released lease: %v", err)
	}
}

// What a run gives back at its end goes out in one push, and what somebody else changed meanwhile holds nothing else back.
func TestALeaseIsReleasedBesideOtherRefs(t *testing.T) {
	t.Parallel()
	f, sp, snap := candidate(t)
	s, lease := sp.store, "refs/proctor/7/lease"
	state, err := s.WriteState(t.Context(), stateRef, snap.Commit, []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	for _, theirs := range []ID{"", snap.Commit} {
		l, err := s.Acquire(t.Context(), f.remote(), lease, "r1", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if theirs != "" {
			if err := s.Push(t.Context(), f.remote(), []RefUpdate{{stateRef, theirs, state}}); err != nil {
				t.Fatal(err)
			}
		}
		started := sp.git.Started()
		others, err := l.ReleaseBeside(t.Context(), RefUpdate{stateRef, state, ""})
		if err != nil || len(others) != 1 || rejected(others[0]) != (theirs != "") || theirs == "" && others[0] != nil {
			t.Errorf("state at %q: released with %v, the other with %v", theirs, err, others)
		}
		if n := sp.git.Started() - started; n != 1 {
			t.Errorf("%d processes, want 1", n)
		}
		if want := cmp.Or(theirs, state); f.ref(t, stateRef) != want {
			t.Errorf("the other ref is at %s, want %s", f.ref(t, stateRef), want)
		}
		next, err := s.Acquire(t.Context(), f.remote(), lease, "r2", time.Hour)
		if err != nil {
			t.Fatalf("the lease was not given back: %v", err)
		}
		// A lease that is lost is told, and what goes beside it is written all the same.
		if others, err := l.ReleaseBeside(t.Context(), RefUpdate{"refs/proctor/spend", state, ""}); !errors.Is(err, ErrLeaseLost) || theirs == "" && others[0] != nil {
			t.Errorf("a lost lease: %v, beside it %v", err, others)
		}
		if f.ref(t, "refs/proctor/spend") != state {
			t.Error("what went beside a lost lease was not written")
		}
		if err := next.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// What the remote says of one ref is not what became of another.
func TestALostLeaseIsToldBesideARefThatIsForbidden(t *testing.T) {
	t.Parallel()
	f, sp, _ := candidate(t)
	s, ref, ledger := sp.store, "refs/proctor/7/lease", "refs/proctor/spend"
	first, err := s.Acquire(t.Context(), f.remote(), ref, "r1", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	l := &Lease{Ref: ref, Holder: "r1", id: first.id, store: s, remote: f.remote()}
	if err := first.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Acquire(t.Context(), f.remote(), ref, "r2", time.Hour); err != nil {
		t.Fatal(err)
	}
	hook := "#!/bin/sh\necho 'GitLab: You are not allowed to push there' >&2\nexit 1\n"
	if err := os.WriteFile(filepath.Join(f.bare, "hooks", "pre-receive"), []byte(hook), 0o755); err != nil {
		t.Fatal(err)
	}
	note, err := s.NoteUpdate(ledger, "a", Note{}, []byte("one"))
	if err != nil {
		t.Fatal(err)
	}
	others, err := l.ReleaseBeside(t.Context(), note)
	if !errors.Is(err, ErrLeaseLost) {
		t.Errorf("the lease: %v", err)
	}
	var failure *RemoteError
	if len(others) != 1 || !errors.As(others[0], &failure) || failure.Kind != Forbidden {
		t.Errorf("the ledger: %v", others)
	}
}

// What lies beside a lease comes with it, once: the next look asks the remote again.
func TestWhatLiesBesideALeaseIsFetchedWithIt(t *testing.T) {
	t.Parallel()
	checkout := initRepo(t, sample())
	f, sp := newForge(t, checkout), newSpace(t, checkout, heldOut)
	put(t, sp.agent.Dir(), "pkg/sum.go", "candidate\n")
	snap := sp.snapshot(t, "")
	theirs, note, none := sp.store, "refs/proctor/spend", "refs/proctor/7/none"
	if _, err := theirs.SaveState(t.Context(), f.remote(), stateRef, snap.Commit, []byte("{}"), ""); err != nil {
		t.Fatal(err)
	}
	one, err := theirs.WriteNote(t.Context(), f.remote(), note, "a", Note{}, []byte("one"))
	if err != nil {
		t.Fatal(err)
	}
	g := newGit(t)
	s := openStore(t, g, checkout, "")
	if _, err := s.Acquire(t.Context(), f.remote(), "refs/proctor/7/lease", "r1", time.Hour, stateRef, note, none); err != nil {
		t.Fatal(err)
	}
	started := g.Started()
	if st, err := s.LoadState(t.Context(), f.remote(), stateRef); err != nil || st.Commit != snap.Commit {
		t.Errorf("state %+v %v", st, err)
	}
	if got, err := s.ReadNote(t.Context(), f.remote(), note, "a"); err != nil || string(got.Content) != "one" {
		t.Errorf("note %q %v", got.Content, err)
	}
	if got, err := s.ReadNote(t.Context(), f.remote(), none, "a"); err != nil || got.ID != "" {
		t.Errorf("a note that is not there: %+v %v", got, err)
	}
	if n := g.Started() - started; n > 1 { // cat-file, for the objects
		t.Errorf("%d processes, want none that asks the remote", n)
	}
	if _, err := theirs.WriteNote(t.Context(), f.remote(), note, "a", one, []byte("two")); err != nil {
		t.Fatal(err)
	}
	if got, err := s.ReadNote(t.Context(), f.remote(), note, "a"); err != nil || string(got.Content) != "two" {
		t.Errorf("the second look: %q %v, want what is there now", got.Content, err)
	}
	plain(t, f.bare, "update-ref", "-d", note)
	if _, err := s.Acquire(t.Context(), f.remote(), "refs/proctor/7/lease", "r1", time.Hour, note); err != nil {
		t.Fatal(err)
	}
	if got, err := s.ReadNote(t.Context(), f.remote(), note, "a"); err != nil || got.ID != "" {
		t.Errorf("a note that was deleted since: %q %v", got.Content, err)
	}
}

func TestWhatIsNoLeaseIsNotOverwritten(t *testing.T) {
	t.Parallel()
	f, sp, snap := candidate(t)
	const ref = "refs/proctor/7/lease"
	if err := sp.store.Push(t.Context(), f.remote(), []RefUpdate{{ref, snap.Commit, ""}}); err != nil {
		t.Fatal(err)
	}
	if _, err := sp.store.Acquire(t.Context(), f.remote(), ref, "r1", time.Hour); err == nil || !strings.Contains(err.Error(), "no lease") {
		t.Errorf("got %v", err)
	}
	if f.ref(t, ref) != snap.Commit {
		t.Error("it was overwritten")
	}
}

// A forge refuses a commit that touches workflow files without the permission, on any ref, and a tree
// without them is a deletion.
func TestACheckpointAddsOneFileToTheCandidate(t *testing.T) {
	t.Parallel()
	s := openStore(t, newGit(t), initRepo(t, files{".github/workflows/ci.yml": "on: push\n", "a.txt": "a\n"}), "")
	id, err := s.WriteState(t.Context(), stateRef, s.Base(), []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	tree, err := s.Tree(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	changes, err := s.Diff(t.Context(), s.BaseTree(), tree)
	if err != nil {
		t.Fatal(err)
	}
	if len(changes) != 1 || changes[0].Path != stateFile || changes[0].Status() != "A" {
		t.Errorf("the checkpoint changes %v", changes)
	}
}
