//go:build linux

package sandbox_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/sandbox"
)

// TestFilesOfWhoeverStartedTheHarnessStayOutside is INV-33: a file that was open in the harness's parent, and came down
// to the harness, is not open in what it starts.
func TestFilesOfWhoeverStartedTheHarnessStayOutside(t *testing.T) {
	t.Parallel()
	for _, m := range machines() {
		t.Run("INV-33 "+m.name, func(t *testing.T) {
			t.Parallel()
			l := ownedLab(t, m.uid)
			write(t, l.harness+"/opened", "canary-in-an-open-file\n")
			line := "for f in /proc/self/fd/*; do case ${f##*/} in 0|1|2) ;; *) cat <&${f##*/};; esac; done 2>/dev/null; :"
			cmd := asUser(t, m.uid, job{Root: l.root, Mode: sandbox.Strict, Argv: []string{"bash", "-c", line}, Harden: true, Pretend: m.pretend})
			for range 5 { // files 3 to 7
				f, err := os.Open(l.harness + "/opened")
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = f.Close() }()
				cmd.ExtraFiles = append(cmd.ExtraFiles, f)
			}
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), `"ExitCode":0`) {
				t.Fatalf("%v %s", err, out)
			}
			if strings.Contains(string(out), "canary") {
				t.Errorf("INV-33 it read what was open: %s", out)
			}
			// The control: the same shell, started with the same files and without us between, reads them.
			plain := exec.Command("bash", "-c", line)
			for range 5 {
				f, err := os.Open(l.harness + "/opened")
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = f.Close() }()
				plain.ExtraFiles = append(plain.ExtraFiles, f)
			}
			if out, err := plain.CombinedOutput(); err != nil || !strings.Contains(string(out), "canary") {
				t.Errorf("the control read nothing: %v %s", err, out)
			}
		})
	}
}
