package agent

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/sandbox"
)

// The test binary plays four parts: the tests, the supervisor that a Box starts, the script agent's
// child, and the tool loop.
func TestMain(m *testing.M) {
	sandbox.Child()
	if code, ok := ScriptChild(os.Args, os.Stdin, os.Stdout); ok {
		os.Exit(code)
	}
	if code, ok := ToolLoopChild(os.Args, os.Stdin, os.Stdout); ok {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// lab is a task with directories of its own and a box to run it in.
type lab struct {
	box  *sandbox.Box
	task Task
}

func newLab(t testing.TB, mode sandbox.Mode) lab {
	t.Helper()
	box, err := sandbox.New(sandbox.Config{Mode: mode})
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	l := lab{box: box, task: Task{
		Run: "run1", Tick: 1, Dir: filepath.Join(root, "agent"), Home: filepath.Join(root, "home"), Tmp: filepath.Join(root, "tmp"),
		Prompt: "Fix it.", Timeout: time.Minute, Grace: 300 * time.Millisecond,
	}}
	for _, d := range []string{l.task.Dir, l.task.Home, l.task.Tmp} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func (l lab) file(t testing.TB, name, content string) {
	t.Helper()
	p := filepath.Join(l.task.Dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (l lab) read(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(l.task.Dir, name))
	if err != nil {
		return "(" + err.Error() + ")"
	}
	return string(b)
}

func (l lab) run(t testing.TB, name string, o Options) (Outcome, []Event) {
	t.Helper()
	o.Runner = l.box
	a, err := New(name, o)
	if err != nil {
		t.Fatal(err)
	}
	var events []Event
	out, err := a.Run(context.Background(), l.task, func(e Event) { events = append(events, e) })
	if err != nil {
		t.Fatal(err)
	}
	return out, events
}

// alive finds the processes that work in a directory.
func alive(word, dir string) (found []string) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		line, err := os.ReadFile(filepath.Join(d, "cmdline"))
		at, _ := os.Readlink(filepath.Join(d, "cwd"))
		if err == nil && at == dir && strings.Contains(string(line), word) {
			found = append(found, d)
		}
	}
	return found
}
