//go:build e2e

package container

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// absolute is a path of this repository.
func absolute(t *testing.T, path string) string {
	t.Helper()
	abs, err := filepath.Abs(filepath.Join("..", "..", path))
	if err != nil {
		t.Fatal(err)
	}
	return abs
}

// what holds in every container, with namespaces or without.
var always = []string{"user", "filesystem", "network-tcp", "network-udp", "unix-sockets", "syscalls", "limits", "descendants"}

func TestConfinementHoldsInsideAContainer(t *testing.T) {
	// INV-38, INV-33: with the engine's default profile and capabilities, and with no namespaces at all.
	e := newEngine(t)
	tests := filepath.Join(t.TempDir(), "sandbox.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", tests, "./internal/sandbox")
	build.Dir, build.Env = absolute(t, "."), append(e.env, "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go test -c: %v %s", err, out)
	}
	for _, c := range []struct {
		name, profile string
		namespaces    bool
		mode          string // of the whole runs: strict wherever this machine can
	}{{"default profile", "", true, "strict"}, {"no namespaces", withoutNamespaces(t), false, "auto"}} {
		t.Run(c.name, func(t *testing.T) {
			t.Run("what is enforced", func(t *testing.T) {
				out, err := e.run(t, c.profile, []string{absolute(t, "bin") + ":/opt/bin"}, "/opt/bin/proctor", "sandbox", "check")
				if err != nil {
					t.Fatalf("proctor sandbox check: %v\n%s", err, out)
				}
				for _, name := range always {
					if !regexp.MustCompile(`(?m)^yes +` + name + ` `).MatchString(out) {
						t.Errorf("%s is not enforced:\n%s", name, out)
					}
				}
				if got := regexp.MustCompile(`(?m)^yes +network `).MatchString(out); got != c.namespaces {
					t.Errorf("a network namespace: %v, want %v:\n%s", got, c.namespaces, out)
				}
			})
			t.Run("every attempt fails inside", func(t *testing.T) {
				const run = "^(TestConfinementTable|TestWhatIsAllowedWorks|TestManySocketsAreGivenAtOnce|TestCanariesAreNotFound|TestASetuidProgramGainsNothing)$"
				out, err := e.run(t, c.profile, []string{tests + ":/opt/sandbox.test"}, "/opt/sandbox.test", "-test.v", "-test.run", run)
				if err != nil {
					t.Errorf("%v\n%s", err, failures(out))
				}
				if n := strings.Count(out, "--- PASS: TestConfinementTable/"); n < 40 || strings.Contains(out, "--- SKIP") {
					t.Errorf("only %d rows of the table ran, or some were skipped:\n%s", n, failures(out))
				}
			})
			for _, cli := range []struct{ agent, installed, dir string }{
				{"claude-code", "@anthropic-ai/claude-code-linux-x64", "/opt/cli"}, {"codex", "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl", "/opt/cli/bin"},
			} {
				t.Run("a whole run with "+cli.agent, func(t *testing.T) {
					mounts := []string{absolute(t, "bin") + ":/opt/bin", absolute(t, "e2e/agents/node_modules/"+cli.installed) + ":/opt/cli"}
					out, err := e.run(t, c.profile, mounts, "/opt/bin/proctor", "demo", "--agent", cli.agent, "--agent-path", cli.dir, "--sandbox", c.mode)
					if err != nil || !strings.Contains(out, "done: proved in a pristine checkout") {
						t.Errorf("%v\n%s", err, out)
					}
				})
			}
		})
	}
}

// failures are the lines of a test's output that tell of trouble.
func failures(out string) string {
	var kept []string
	for line := range strings.Lines(out) {
		if !strings.Contains(line, "=== ") && !strings.Contains(line, "--- PASS") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}
