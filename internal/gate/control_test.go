package gate_test

import (
	"os/exec"
	"strings"
	"testing"
)

// plain runs a command as a simple runner would: found by the PATH it is given, with that environment.
func plain(t *testing.T, dir string, argv, env []string) string {
	t.Helper()
	hasPath := false
	for _, kv := range env {
		hasPath = hasPath || strings.HasPrefix(kv, "PATH=")
	}
	if !hasPath {
		env = append(env, "PATH=/usr/bin:/bin")
	}
	// env looks its program up in the PATH it was given, as a shell does.
	cmd := exec.Command("/usr/bin/env", append(append([]string{"-i"}, env...), argv...)...)
	cmd.Dir = dir
	out, _ := cmd.CombinedOutput()
	return strings.TrimSpace(string(out))
}
