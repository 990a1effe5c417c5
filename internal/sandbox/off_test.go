package sandbox_test

import (
	"os"
	"syscall"
	"testing"

	"github.com/proctor-ci/proctor/internal/sandbox"
)

// TestWithModeOffNothingIsGivenToAnotherUser: the untrusted processes run as the harness's own user then, so a
// directory of another owner would be closed to them. The control is mode auto, as root.
func TestWithModeOffNothingIsGivenToAnotherUser(t *testing.T) {
	t.Parallel()
	for _, mode := range []sandbox.Mode{sandbox.Off, sandbox.Auto} {
		box, err := sandbox.New(sandbox.Config{Mode: mode})
		if err != nil {
			t.Fatal(err)
		}
		home, err := os.MkdirTemp("", "home-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(home) })
		write(t, home+"/tool", "#!/bin/sh\n")
		dir := t.TempDir()
		if err := box.Own(dir); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(dir)
		if err != nil {
			t.Fatal(err)
		}
		want, other := os.Geteuid(), false
		if mode == sandbox.Auto && want == 0 {
			want, other = 65534, true
			// A person's own, which root may enter and nobody else.
			if err := os.Chown(home, ordinary, ordinary); err != nil {
				t.Fatal(err)
			}
		}
		owner := int(info.Sys().(*syscall.Stat_t).Uid)
		if id, is := box.User(); owner != want || id.UID != want || is != other {
			t.Errorf("mode %s: the directory belongs to %d and untrusted processes are %d (another user: %v), want %d (%v)", mode, owner, id.UID, is, want, other)
		}
		if err := os.Chmod(home+"/tool", 0o700); err != nil {
			t.Fatal(err)
		}
		if err := box.CanReach(home + "/tool"); (err != nil) != other {
			t.Errorf("mode %s: CanReach: %v", mode, err)
		}
	}
}
