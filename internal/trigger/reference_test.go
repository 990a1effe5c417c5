package trigger_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/trigger"
)

var update = flag.Bool("update", false, "write docs/comment-commands.md anew")

func TestTheCommandReferenceIsGenerated(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "..", "docs", "comment-commands.md")
	if *update {
		if err := os.WriteFile(path, []byte(trigger.Reference()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != trigger.Reference() {
		t.Errorf("docs/comment-commands.md differs from the registry (%v); run: go generate ./internal/trigger", err)
	}
}

func TestEveryAnswerThatNeedsNoRunIsReplied(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"/proctor help": "Commands stand first", "/proctor": "Commands stand first", "/proctor dance": "no such command",
		"/proctor split": "not there yet: open the smaller issues", "/proctor budget": "was not understood", "/proctor budget +0": "was not understood",
	} {
		c, ok := trigger.FindCommand(name, "/proctor")
		if !ok {
			t.Fatalf("%s is no command", name)
		}
		text, ok := c.Reply("/proctor")
		if !ok || !strings.Contains(text, want) {
			t.Errorf("%s is answered %v %q, want %q", name, ok, text, want)
		}
		// INV-48: an answer must not be a command itself, or two accounts answer each other for ever.
		if again, ok := trigger.FindCommand(text, "/proctor"); ok {
			t.Errorf("the answer to %s is the command %q", name, again.Name)
		}
	}
	for _, name := range []string{"/proctor run", "/proctor stop now", "/proctor budget +5"} {
		c, _ := trigger.FindCommand(name, "/proctor")
		if text, ok := c.Reply("/proctor"); ok {
			t.Errorf("%s has an engine and is answered %q", name, text)
		}
	}
}
