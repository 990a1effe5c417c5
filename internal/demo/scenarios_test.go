package demo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/agent"
	"github.com/proctor-ci/proctor/internal/config"
	"github.com/proctor-ci/proctor/internal/evidence"
)

// `make e2e` plays each to its end; here is what would keep one from beginning.
func TestEveryScenarioIsARepositoryThatARunTakes(t *testing.T) {
	t.Parallel()
	ends := map[string]bool{}
	for _, s := range Scenarios() {
		dir := t.TempDir()
		if err := Write(dir, Script, "", s); err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		file := func(path string) []byte {
			b, err := os.ReadFile(filepath.Join(dir, path))
			if err != nil {
				t.Fatalf("%s: %v", s.Name, err)
			}
			return b
		}
		if _, err := config.Load(".github/proctor.yml", file(".github/proctor.yml")); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
		plan, err := agent.ParsePlan(file(".github/demo-agent.yml"))
		if err != nil || len(plan.Tick(1)) < 2 {
			t.Errorf("%s: %v", s.Name, err)
		}
		if _, ok := evidence.FindTerminal(s.Ends); !ok || !strings.HasSuffix(s.Story, ".") {
			t.Errorf("%s ends %s, which is no terminal, or its story %q is no sentence", s.Name, s.Ends, s.Story)
		}
		ends[s.Ends] = true
		if found, ok := FindScenario(s.Name); !ok || found.Story != s.Story {
			t.Errorf("%s is not found by its name", s.Name)
		}
		if strings.Contains(string(file(".github/demo-agent.yml")), "@KEY@") {
			t.Errorf("%s: the key was not put in", s.Name)
		}
	}
	if len(ends) < 6 {
		t.Errorf("the scenarios end in %d ways only", len(ends))
	}
	if err := (Scenario{Name: HeldOut, config: map[string]string{"gone:": "gone: 1"}}).apply(map[string][]byte{".github/proctor.yml": []byte("version: 1\n")}); err == nil {
		t.Error("a scenario that changes a line that is not there is taken")
	}
	if _, ok := FindScenario("nobody-wrote-this"); ok {
		t.Error("a scenario that is not there was found")
	}
}
