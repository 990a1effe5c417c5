package sandbox

import (
	"net"
	"os"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func TestListeningSocketsAreFoundByName(t *testing.T) {
	t.Parallel()
	// INV-38: what the plan does not hear of, it does not keep anybody from.
	path := t.TempDir() + "/an engine.sock"
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if found := listeningSockets(); !slices.Contains(found, path) {
		t.Errorf("%q is not among %q", path, found)
	}
	_ = l.Close()
	if found := listeningSockets(); slices.Contains(found, path) {
		t.Errorf("control: %q is found after it was closed", path)
	}
	const list = "Num       RefCount Protocol Flags    Type St Inode Path\n" +
		"0000000000000000: 00000002 00000000 00010000 0001 01 1234 /var/run/engine.sock\n" +
		"0000000000000000: 00000002 00000000 00010000 0001 01 1235 @/run/abstract\n" +
		"0000000000000000: 00000002 00000000 00010000 0001 01 1236 served.sock\n" +
		"0000000000000000: 00000003 00000000 00000000 0001 03 1237 /run/connected.sock\n" +
		"0000000000000000: 00000003 00000000 00000000 0001 03 1238\n"
	if got, want := namesOfListeners(list), []string{"/run/engine.sock", "served.sock"}; !slices.Equal(got, want) {
		t.Errorf("listeners %q, want %q", got, want)
	}
	mine := spec{User: &Identity{UID: os.Getuid(), GID: os.Getgid()}, Listening: []string{"/run/connected.sock"}}
	if open := reachableSocket(mine); open != "" {
		t.Errorf("control: %q counts as open", open)
	}
	if mine.Listening = append(mine.Listening, "served.sock"); reachableSocket(mine) != "served.sock" {
		t.Error("a socket whose place is not known counts as closed")
	}
}

// The supervisor comes into the network namespace of the thread that starts it, and so does the list; that of the process's first
// thread may be another one.
func TestSocketsAreThoseOfTheThreadsNetwork(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root, for a network namespace of its own")
	}
	path := t.TempDir() + "/outside.sock"
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	type seen struct {
		found []string
		err   error
	}
	inside := make(chan seen)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its goroutine
		err := unix.Unshare(unix.CLONE_NEWNET)
		inside <- seen{listeningSockets(), err}
	}()
	if s := <-inside; s.err != nil || len(s.found) != 0 {
		t.Errorf("in a namespace of its own the thread finds %q, %v", s.found, s.err)
	}
	if found := listeningSockets(); !slices.Contains(found, path) {
		t.Errorf("control: %q is not among %q", path, found)
	}
}

func TestAListThatLeavesASocketOutIsReadAgain(t *testing.T) {
	t.Parallel()
	readings := 0
	read := func() []string {
		readings++
		switch readings {
		case 1:
			return []string{"/a"} // and not /b, as the kernel's list does now and then
		case 3:
			return []string{"/b"}
		}
		return []string{"/a", "/b"}
	}
	if got, want := settled(read), []string{"/a", "/b"}; !slices.Equal(got, want) || readings != 4 {
		t.Errorf("settled on %q after %d readings, want %q after 4", got, readings, want)
	}
	n := 0
	churn := func() []string { n++; return []string{string(rune('a' + n))} }
	if got := settled(churn); len(got) != n || n != 32 {
		t.Errorf("%d names after %d readings of a list that never settles, want 32 after 32", len(got), n)
	}
}
