//go:build e2e

package image

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheHostActionInstallsTheCLIsOfTheImagesLockFilesAndTheyWork(t *testing.T) {
	// internal/app plays each case with an npm of its own; this is the real one, with the real packages.
	dir := t.TempDir()
	path := filepath.Join(dir, "path")
	cmd := exec.CommandContext(t.Context(), absolute(t, "host/agents"))
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH=/usr/local/bin:/usr/bin:/bin:"+filepath.Dir(program(t, "npm")), "PROCTOR_AGENT_CLI=claude-code codex", "RUNNER_ARCH=X64", "RUNNER_TEMP="+dir,
		"GITHUB_ACTION_PATH="+absolute(t, "host"), "GITHUB_PATH="+path)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	bins := strings.Fields(string(text))
	if len(bins) != 2 {
		t.Fatalf("PATH got %q", bins)
	}
	for i, c := range []struct{ agent, program string }{{"claude-code", "claude"}, {"codex", "codex"}} {
		file, err := os.ReadFile(absolute(t, "image/agents/"+c.agent+"/package.json"))
		if err != nil {
			t.Fatal(err)
		}
		var wanted struct{ OptionalDependencies map[string]string }
		if err := json.Unmarshal(file, &wanted); err != nil {
			t.Fatal(err)
		}
		said, err := exec.CommandContext(t.Context(), filepath.Join(bins[i], c.program), "--version").CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", c.program, err, said)
		}
		ours := false
		for _, version := range wanted.OptionalDependencies {
			version = strings.TrimSuffix(version[strings.LastIndex(version, "@")+1:], "-linux-x64")
			ours = ours || strings.Contains(string(said), version)
		}
		if !ours {
			t.Errorf("%s says %q, and the lock file has %v", c.program, said, wanted.OptionalDependencies)
		}
		out, err := exec.CommandContext(t.Context(), absolute(t, "bin/proctor"), "demo", "--agent", c.agent, "--agent-path", bins[i], "--out", filepath.Join(dir, c.agent)).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "Draft pull request #") {
			t.Errorf("%s from there: %v\n%s", c.agent, err, out)
		}
	}
}

func program(t *testing.T, name string) string {
	t.Helper()
	at, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%v. Next: install it", err)
	}
	return at
}
