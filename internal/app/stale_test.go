package app

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWhatAKilledRunLeftIsRemovedAndNothingElse(t *testing.T) {
	t.Parallel()
	scratch := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(scratch, name) }
	run := func(name string, alive bool) {
		t.Helper()
		must(os.MkdirAll(filepath.Join(at(name), "agent", "deep"), 0o711))
		must(os.WriteFile(filepath.Join(at(name), "agent", "deep", "file"), []byte("x"), 0o400))
		must(os.Chmod(filepath.Join(at(name), "agent", "deep"), 0o500))
		lock, err := lockDir(at(name))
		must(err)
		if alive {
			t.Cleanup(func() { lock.Close() })
			return
		}
		must(lock.Close()) // as the kernel does for a process that was killed
	}
	run("proctor-1001", false)
	run("proctor-1002", false)
	run("proctor-2001", true)
	run("proctor-demo-3001", false) // another command's
	run("elsewhere-1", false)
	must(os.Symlink(at("elsewhere-1"), at("proctor-4001")))
	must(os.Mkdir(at("proctor-5001"), 0o700)) // no lock file: somebody else's of that name
	must(os.WriteFile(at("proctor-6001"), nil, 0o600))
	must(os.Mkdir(at("proctor-7001"), 0o700))
	must(os.Symlink(filepath.Join(at("elsewhere-1"), lockName), filepath.Join(at("proctor-7001"), lockName)))
	stay := []string{"proctor-2001", "proctor-demo-3001", "elsewhere-1", "elsewhere-1/agent/deep/file", "proctor-4001", "proctor-5001", "proctor-6001", "proctor-7001"}
	if os.Geteuid() == 0 { // only root can give a directory away
		run("proctor-8001", false)
		must(os.Chown(at("proctor-8001"), 65534, 65534))
		run("proctor-9001", false)
		must(os.Chown(filepath.Join(at("proctor-9001"), lockName), 65534, 65534))
		stay = append(stay, "proctor-8001", "proctor-9001")
	}
	n, err := clearStale(scratch)
	if err != nil || n != 2 {
		t.Errorf("%d directories were removed, want 2: %v", n, err)
	}
	for _, gone := range []string{"proctor-1001", "proctor-1002"} {
		if _, err := os.Lstat(at(gone)); err == nil {
			t.Errorf("%s is still there", gone)
		}
	}
	for _, name := range stay {
		if _, err := os.Lstat(at(name)); err != nil {
			t.Errorf("%s is gone: %v", name, err)
		}
	}
}
