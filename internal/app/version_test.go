package app

import (
	"bytes"
	"runtime/debug"
	"strings"
	"testing"
)

func TestTheVersionTellsCommitDateAndModules(t *testing.T) {
	// Not parallel: it sets what the linker sets.
	v, c, d := version, commit, date
	t.Cleanup(func() { version, commit, date = v, c, d })
	version, commit, date = "v1.2.3", strings.Repeat("ab", 20), "2026-11-30T10:00:00Z"
	var short, long bytes.Buffer
	deps := []*debug.Module{{Path: "example.com/a", Version: "v1.0.0", Sum: "h1:a="}, {Path: "example.com/b", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/fork", Version: "v1.0.1", Sum: "h1:f="}}}
	tellBuild(&short, deps, false)
	tellBuild(&long, deps, true)
	for _, want := range []string{"proctor v1.2.3 (ababababab)", "commit   " + commit + " of 2026-11-30T10:00:00Z\n", "built    with go1.", "modules  2; proctor version --modules lists them"} {
		if !strings.Contains(short.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, &short)
		}
	}
	for _, want := range []string{"module   example.com/a v1.0.0 h1:a=\n", "module   example.com/fork v1.0.1 h1:f=\n"} {
		if !strings.Contains(long.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, &long)
		}
	}
}
