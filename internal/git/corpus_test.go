package git

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const corpus = "../../../shared/corpus/git-fixtures"

// fixtures builds the repositories as agents leave them and returns their folder.
func fixtures(t *testing.T) string {
	t.Helper()
	script := filepath.Join(corpus, "make_git_fixtures.py")
	if _, err := os.Stat(script); err != nil {
		t.Skip("the shared corpus is not there: lay it beside the repository as ../shared to enable this test")
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 builds the fixtures: apt-get install python3 enables this test")
	}
	out := t.TempDir()
	if text, err := exec.Command(python, script, out).CombinedOutput(); err != nil {
		t.Fatalf("build fixtures: %v\n%s", err, text)
	}
	return out
}

type fixtureCase struct {
	ID      string            `json:"id"`
	Changed json.RawMessage   `json:"changed"`
	Count   int               `json:"changed_count"`
	Modes   map[string]string `json:"modes"`
}

func readFixtureCases(t *testing.T) []fixtureCase {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(corpus, "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var doc struct{ Cases []fixtureCase }
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	return doc.Cases
}

// adopt makes a worktree of a directory that is there already, as if the agent had left it.
func adopt(t *testing.T, s *Store, dir string, sealed func(string) bool) *Worktree {
	t.Helper()
	want, err := s.load(t.Context(), s.tree, "", sealed, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &Worktree{store: s, dir: dir, want: want, commit: s.base, sealed: sealed}
}

func TestSnapshotSeesExactlyWhatAgentsLeft(t *testing.T) {
	t.Parallel()
	out := fixtures(t)
	for _, c := range readFixtureCases(t) {
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(out, c.ID)
			base, err := os.ReadFile(filepath.Join(dir, "base-sha"))
			if err != nil {
				t.Fatal(err)
			}
			s := openStore(t, newGit(t), filepath.Join(dir, "origin.git"), strings.TrimSpace(string(base)))
			snap, err := adopt(t, s, filepath.Join(dir, "repo"), nil).Snapshot(t.Context(), SnapshotOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if c.ID == "GF31" {
				// The corpus lists what git records once text=auto has hidden the CRLF edit. Here bytes are never
				// converted: what the gate saw is what is pushed, so the edit shows. The decision is the same.
				c.Modes["pkg/sum.go"] = "100644->100644 M"
			}
			modes := map[string]string{}
			for _, change := range snap.Changes {
				modes[change.Path] = change.Old.Mode.String() + "->" + change.New.Mode.String() + " " + change.Status()
			}
			if c.Count > 0 {
				if len(modes) != c.Count {
					t.Errorf("%d changes, want %d", len(modes), c.Count)
				}
			} else if diff := cmp.Diff(c.Modes, modes); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			if exists(filepath.Join(dir, "marker")) {
				t.Error("a planted program ran")
			}
		})
	}
}
