//go:build e2e

package doctor

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/goccy/go-yaml"
)

// Java is not here: its dependencies come from a repository that the tests do not reach.
func TestTheExamplesPassTheirOwnGates(t *testing.T) {
	for dir := range examples(t) {
		name := filepath.Base(dir)
		if name == "java" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			work := t.TempDir()
			if err := os.CopyFS(work, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			var c struct {
				Setup []string
				Gates struct {
					Iteration  string
					Regression string
					Acceptance struct{ Run string }
				}
			}
			b, err := os.ReadFile(filepath.Join(work, ".github/proctor.yml"))
			if err != nil {
				t.Fatal(err)
			}
			if err := yaml.Unmarshal(b, &c); err != nil {
				t.Fatal(err)
			}
			for _, line := range append(c.Setup, c.Gates.Iteration, c.Gates.Regression, c.Gates.Acceptance.Run) {
				cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
				cmd.Dir = work
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%s: %v\n%s", line, err, out)
				}
			}
		})
	}
}
