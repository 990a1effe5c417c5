//go:build linux

package sandbox_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/proctor-ci/proctor/internal/sandbox"
)

// canary is a secret whose name tells where it was found.
func canary(where string) string { return "canary-" + where + "-51c7" }

// hunt looks everywhere and prints the names of the secrets that it found. Its arguments are the directory of the harness
// and addresses that a guess would find too.
func hunt(a []string) error {
	shape := regexp.MustCompile(`canary-([a-z-]+)-51c7`)
	found := map[string]bool{}
	see := func(raw []byte) {
		for _, m := range shape.FindAllSubmatch(raw, -1) {
			found[string(m[1])] = true
		}
	}
	see([]byte(strings.Join(os.Environ(), "\n")))
	for _, pattern := range []string{"/proc/[0-9]*/environ", "/proc/[0-9]*/cmdline", "/proc/[0-9]*/fd/*", "/proc/[0-9]*/root/etc/hostname", "/dev/shm/*", "/tmp/*"} {
		files, _ := filepath.Glob(pattern)
		for _, f := range files {
			if info, err := os.Stat(f); err == nil && info.Mode().IsRegular() {
				raw, _ := readSome(f)
				see(raw)
			}
		}
	}
	_ = filepath.Walk(a[0], func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			raw, _ := readSome(path)
			see(raw)
		}
		return nil
	})
	git := exec.Command("git", "-c", "safe.directory=*", "-C", a[0]+"/checkout", "config", "--list")
	raw, _ := git.CombinedOutput()
	see(raw)
	addresses := slices.Clone(a[1:])
	unixes, _ := os.ReadFile("/proc/net/unix")
	for line := range strings.Lines(string(unixes)) {
		if f := strings.Fields(line); len(f) == 8 {
			addresses = append(addresses, "unix "+f[7])
		}
	}
	listening, _ := os.ReadFile("/proc/net/tcp")
	for _, m := range regexp.MustCompile(`: [0-9A-F]{8}:([0-9A-F]{4}) 00000000:0000 0A`).FindAllStringSubmatch(string(listening), -1) {
		port, _ := strconv.ParseUint(m[1], 16, 16)
		addresses = append(addresses, fmt.Sprintf("tcp 127.0.0.1:%d", port))
	}
	for _, address := range addresses {
		network, at, _ := strings.Cut(address, " ")
		see(greet(network, at))
	}
	if len(found) == 0 {
		return errors.New("nothing found")
	}
	fmt.Println(strings.Join(slices.Sorted(maps.Keys(found)), " "))
	return nil
}

func greet(network, at string) []byte {
	c, err := net.DialTimeout(network, at, 2*time.Second)
	if err != nil {
		return nil
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(2 * time.Second))
	_, _ = io.WriteString(c, "GET /latest/meta-data/ HTTP/1.0\r\n\r\n")
	raw, _ := io.ReadAll(c)
	return raw
}

// tells says one secret to everybody who connects.
func tells(t *testing.T, network, at, where string) {
	t.Helper()
	l, err := net.Listen(network, at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	if network == "unix" && at[0] != '@' {
		if err := os.Chmod(at, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, canary(where)+"\n")
			_ = c.Close()
		}
	}()
}

// TestNoneOfManyPlantedSecretsIsFound is INV-33: with confinement off the same search finds every one.
func TestNoneOfManyPlantedSecretsIsFound(t *testing.T) {
	needRoot(t)
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("needs ip, to give this machine a metadata address: apt-get install iproute2")
	}
	runtime.LockOSThread() // never unlocked: the thread, and its network, end with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"link set lo up", "addr add 169.254.169.254/32 dev lo"} {
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v %s", line, err, out)
		}
	}
	tells(t, "tcp4", "127.0.0.1:47119", "loopback")
	tells(t, "tcp4", "169.254.169.254:80", "metadata")
	all := []string{"abstract-socket", "docker-socket", "environment", "file", "git-config", "loopback", "metadata", "netrc", "open-file", "other-process"}
	for i, m := range machines() {
		l := ownedLab(t, m.uid)
		if err := os.MkdirAll(l.harness+"/checkout", 0o755); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("git", "-C", l.harness+"/checkout", "init", "-q").CombinedOutput(); err != nil {
			t.Fatalf("git init: %v %s", err, out)
		}
		write(t, l.harness+"/checkout/.git/config", "[core]\n\trepositoryformatversion = 0\n[http \"https://forge.example/\"]\n\textraheader = AUTHORIZATION: basic "+canary("git-config")+"\n")
		write(t, l.harness+"/token", canary("file"))
		write(t, l.harness+"/.netrc", "machine forge.example password "+canary("netrc"))
		tells(t, "unix", l.harness+"/docker.sock", "docker-socket")
		tells(t, "unix", fmt.Sprintf("@proctor-canaries-%d-%d", os.Getpid(), i), "abstract-socket")
		// Another process of the user that the tree runs as.
		other := exec.Command("sleep", "300")
		other.Env = []string{"TOKEN=" + canary("other-process")}
		user := m.uid
		if user == 0 {
			user = 65534
		}
		other.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(user), Gid: uint32(user)}, Pdeathsig: syscall.SIGKILL}
		if err := other.Start(); err != nil {
			t.Fatal(err)
		}
		open, err := os.CreateTemp(t.TempDir(), "open")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := open.WriteString(canary("open-file")); err != nil || open.Chmod(0o644) != nil {
			t.Fatal(err)
		}
		search := func(mode sandbox.Mode, guarded bool) string {
			j := job{Root: l.root, Mode: mode, Argv: []string{binary(), hostileArg, "hunt", l.harness, "tcp 127.0.0.1:47119", "tcp 169.254.169.254:80", "unix " + l.harness + "/docker.sock"}, Harden: guarded, Pretend: m.pretend, Ports: []uint16{4711}}
			if guarded {
				j.Scrub = []string{"FORGE_TOKEN"}
			}
			cmd := asUser(t, m.uid, j, "FORGE_TOKEN="+canary("environment"), "PATH="+os.Getenv("PATH"))
			cmd.ExtraFiles = []*os.File{open}
			raw, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%s: %v %s", m.name, err, raw)
			}
			said := regexp.MustCompile(`"Output":"([^"\\]*)`).FindSubmatch(raw)
			if said == nil {
				t.Fatalf("%s: %s", m.name, raw)
			}
			return string(said[1])
		}
		if got := search(sandbox.Strict, true); got != "hunt: nothing found" {
			t.Errorf("INV-33 %s: found %s", m.name, got)
		}
		// The control. A file that was open is kept from a tree in every mode, and is open in the harness itself.
		if d := cmp.Diff(all, strings.Fields(search(sandbox.Off, false))); d != "" {
			t.Errorf("%s: the control (-all +found):\n%s", m.name, d)
		}
		_ = other.Process.Kill()
		_ = other.Wait()
		_ = open.Close()
	}
}
