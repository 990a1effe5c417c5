package guard

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/git"
)

// fixtures reads the decisions that the corpus of repositories asks for.
func fixtures(t *testing.T) []fixture {
	t.Helper()
	raw, err := os.ReadFile("../../../shared/corpus/git-fixtures/expected.json")
	if os.IsNotExist(err) {
		t.Skip("the shared corpus is not beside the repository; put it at ../shared to run this")
	}
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Cases []fixture `json:"cases"`
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	return file.Cases
}

type fixture struct {
	ID       string            `json:"id"`
	Decision string            `json:"decision"`
	Why      string            `json:"why"`
	Changed  json.RawMessage   `json:"changed"`
	Modes    map[string]string `json:"modes"`
	Count    int               `json:"changed_count"`
}

// fixtureText is what the builder script of the corpus writes into files whose text decides.
var fixtureText = map[string]string{
	"GF06 README.md": "/etc/hostname", "GF07 pkg/out": "../../outside", "GF07 pkg/dangling": "nowhere/at/all",
	"GF09 pkg/wf": "../.github/workflows", "GF43 AGENTS.md": "CLAUDE.md", "GF43 gitdir": ".git",
}

func (f fixture) candidate(t *testing.T) *candidate {
	t.Helper()
	c := newCandidate()
	if f.Count > 0 {
		for i := range f.Count - 1 {
			c.added(fmt.Sprintf("many/f%04d.txt", i), "x\n")
		}
		return c.added(".github/workflows/zz.yml", "on: push\n")
	}
	for path, modes := range f.Modes {
		var before, after uint32
		if _, err := fmt.Sscanf(modes, "%o->%o", &before, &after); err != nil {
			t.Fatalf("%s: modes %q: %v", f.ID, modes, err)
		}
		change := Change{Path: path}
		if before != 0 {
			change.Old = c.entry(git.Mode(before), "before\n")
		}
		text, ok := fixtureText[f.ID+" "+path]
		if !ok {
			text = "after\n"
		}
		if after != 0 {
			change.New = c.entry(git.Mode(after), text)
		}
		if before != 0 && after != 0 && before != after && !ok {
			change.New.ID = change.Old.ID // these fixtures change the mode alone
		}
		c.in.Changes = append(c.in.Changes, change)
	}
	return c
}

// INV-13: the decisions of every fixture, with the globs that the corpus names.
func TestEveryGitFixtureGetsItsDecision(t *testing.T) {
	t.Parallel()
	rules := Rules{Protected: globs{".github/**", "acceptance/**", "**/.gitattributes", "**/.gitmodules", "**/.claude/**", "**/.mcp.json", "**/CLAUDE.md", "**/AGENTS.md"}}
	for _, f := range fixtures(t) {
		t.Run(f.ID, func(t *testing.T) {
			t.Parallel()
			v := f.candidate(t).check(t, rules)
			halted := map[Rule]bool{}
			for _, x := range v.At(Halt) {
				halted[x.Rule] = true
			}
			switch f.Decision {
			case "allow", "nothing":
				if !v.Passed() {
					t.Errorf("%s: want it to pass, got %v", f.Why, v.Findings)
				}
			case "deny":
				if !halted[Protected] {
					t.Errorf("%s: want a protected-path halt, got %v", f.Why, v.Findings)
				}
				// The control: without the list there is nothing protected to halt at.
				if w := f.candidate(t).check(t, Rules{}); has(w, Protected, Halt, v.Findings[0].Path) {
					t.Errorf("control: halted without any protected path: %v", w.Findings)
				}
			case "refuse":
				if !halted[Gitlink] && !halted[Symlink] {
					t.Errorf("%s: want a gitlink or symlink halt, got %v", f.Why, v.Findings)
				}
			default:
				t.Errorf("unknown decision %q", f.Decision)
			}
			if f.ID == "GF12" && !strings.Contains(fmt.Sprint(v.Why), "becomes executable") {
				t.Errorf("a mode change is not told: %v", v.Why)
			}
		})
	}
}
