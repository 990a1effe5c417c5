package git

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCarryBringsIgnoredDirectoriesAndNothingElse(t *testing.T) {
	t.Parallel()
	checkout := initRepo(t, with(sample(), files{".gitignore": "dist/\nnode_modules\nsub/.venv/\n", "sub/a": "x"}))
	put(t, checkout, "node_modules/lib/index.js", "lib\n")
	put(t, checkout, "node_modules/.bin/tool", "->../lib/index.js")
	put(t, checkout, "node_modules/lib/run", "#!/bin/sh\n")
	put(t, checkout, "sub/.venv/python", "->/usr/bin/python3")
	put(t, checkout, "loose/x", "x")
	mkfifo(t, checkout+"/node_modules/pipe")
	sp := newSpace(t, checkout, heldOut)
	before := contents(t, sp.gate.Dir())
	got, err := sp.gate.Carry(t.Context(), checkout, []string{"node_modules", "sub/.venv", "dist", "dist/nowhere"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"node_modules", "sub/.venv"}, got); diff != "" {
		t.Errorf("carried (-want +got):\n%s", diff)
	}
	want := with(before, files{
		"node_modules/lib/index.js": "lib\n", "node_modules/.bin/tool": "->../lib/index.js", "node_modules/lib/run": "#!/bin/sh\n",
		"sub/.venv/python": "->/usr/bin/python3",
	})
	if diff := cmp.Diff(want, contents(t, sp.gate.Dir())); diff != "" {
		t.Errorf("gate/ (-want +got):\n%s", diff)
	}
	put(t, sp.gate.Dir(), "node_modules/lib/index.js", "changed by a gate\n")
	if text, err := os.ReadFile(checkout + "/node_modules/lib/index.js"); err != nil || string(text) != "lib\n" {
		t.Errorf("the checkout's file is %q, %v", text, err)
	}
	if drift, err := sp.gate.Check(t.Context()); err != nil || !drift.Empty() {
		t.Errorf("drift: %+v, %v", drift, err)
	}
	if _, err := sp.agent.Carry(t.Context(), checkout, []string{"node_modules"}); err != nil {
		t.Fatal(err)
	}
	if snap := sp.snapshot(t, ""); !snap.Unchanged {
		t.Errorf("what is carried is no change: %v", paths(snap.Changes))
	}
	for _, path := range []string{"", ".", "..", "../x", "/etc", "pkg", ".git", "loose", "tests/acceptance", "a/../b", "node_modules/", ".GIT/x", "dist/.git"} {
		if _, err := sp.gate.Carry(t.Context(), checkout, []string{path}); err == nil || !strings.Contains(err.Error(), "carry") {
			t.Errorf("%q: %v", path, err)
		}
	}
}
