package evidence

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := WriteFile(path, []byte(got)); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (make it with: go test ./internal/evidence -update)", err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-golden +got; go test -update writes it anew):\n%s", name, d)
	}
}

func TestViewsOfEveryTerminalMatchTheirGoldenFiles(t *testing.T) {
	t.Parallel()
	for _, term := range Terminals() {
		t.Run(term.Name, func(t *testing.T) {
			t.Parallel()
			r := sample()
			if term.Name != Done {
				r = ended(t, term.Name)
			}
			if err := Validate(r); err != nil {
				t.Fatal(err)
			}
			golden(t, term.Name+".status.md", StatusComment(r, 0))
			golden(t, term.Name+".summary.md", JobSummary(r))
			golden(t, term.Name+".txt", Plain(r, "out/run-42-1"))
		})
	}
}

func TestPullRequestBodiesMatchTheirGoldenFiles(t *testing.T) {
	t.Parallel()
	dry := sample()
	dry.DryRun, dry.Published = true, nil
	revise := sample()
	revise.Trigger.Revise = true
	alone := sample()
	alone.Trigger = Trigger{Forge: "local", Kind: "manual", Goal: "make totals right", Snapshot: hexid("a", 64), Actor: "dev"}
	alone.Confinement, alone.Removed, alone.Config.Path = nil, nil, ""
	alone.Ticks[1].Proof = alone.Ticks[1].Proof[:2]
	for name, r := range map[string]Record{"done": sample(), "revise": revise, "no-issue": alone, "huge": huge(), "dry-run": dry} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := Validate(r); err != nil {
				t.Fatal(err)
			}
			golden(t, "pr-"+name+".md", PRTitle(r)+"\n\n"+PRBody(r, 0))
		})
	}
	golden(t, "dry-run.txt", Plain(dry, "out/run-42-1"))
}
