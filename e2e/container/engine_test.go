//go:build e2e

package container

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// engine is podman with a configuration of its own, so that it works without the right to raise limits.
type engine struct {
	config string
	image  string
	env    []string
}

const missing = "Next: make e2e-deps, as root on a Debian or Ubuntu machine"

func newEngine(t *testing.T) engine {
	t.Helper()
	if _, err := exec.LookPath("podman"); err != nil {
		t.Fatalf("podman is not here. %s", missing)
	}
	dir := t.TempDir()
	text := "[containers]\ndefault_ulimits = []\n[engine]\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"file\"\n"
	if _, err := exec.LookPath("runc"); err == nil {
		text += "runtime = \"runc\"\n"
	}
	e := engine{config: filepath.Join(dir, "containers.conf"), image: "localhost/proctor-e2e:" + strings.ToLower(filepath.Base(filepath.Dir(dir)))}
	if err := os.WriteFile(e.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	e.env = append(os.Environ(), "CONTAINERS_CONF="+e.config)
	cmd := e.podman(t, "import", "-", e.image)
	cmd.Stdin = bytes.NewReader(root(t))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("podman import: %v %s", err, out)
	}
	t.Cleanup(func() {
		ctx, done := context.WithTimeout(context.Background(), time.Minute)
		defer done()
		cmd := exec.CommandContext(ctx, "podman", "rmi", "-f", e.image)
		cmd.Env = e.env
		_ = cmd.Run()
	})
	return e
}

func (e engine) podman(t *testing.T, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), "podman", args...)
	cmd.Env = e.env
	return cmd
}

// run runs a program in a container that has this machine's /usr and nothing else of it. profile is a file with the
// system calls that are allowed; empty: the engine's own.
func (e engine) run(t *testing.T, profile string, mounts []string, argv ...string) (string, error) {
	t.Helper()
	args := []string{"run", "--rm", "--pull=never", "--network=none", "-w", "/work", "-e", "PATH=/usr/local/bin:/usr/bin", "-e", "HOME=/root", "-e", inContainer + "=1"}
	if profile != "" {
		args = append(args, "--security-opt", "seccomp="+profile)
	}
	for _, m := range append([]string{"/usr:/usr", "/etc/alternatives:/etc/alternatives", "/etc/ld.so.cache:/etc/ld.so.cache"}, mounts...) {
		args = append(args, "-v", m+":ro")
	}
	out, err := e.podman(t, append(append(args, e.image), argv...)...).CombinedOutput()
	return string(out), err
}

// inContainer tells the sandbox's tests that a container refuses some of their controls itself.
const inContainer = "PROCTOR_TEST_CONTAINER"

// root is a file system with the places that a program expects.
func root(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	put := func(h tar.Header, text string) {
		h.Size = int64(len(text))
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []string{"usr", "proc", "dev", "sys", "run", "etc", "var", "root", "work", "opt"} {
		put(tar.Header{Name: d + "/", Typeflag: tar.TypeDir, Mode: 0o755}, "")
	}
	for _, d := range []string{"tmp", "var/tmp"} {
		put(tar.Header{Name: d + "/", Typeflag: tar.TypeDir, Mode: 0o1777}, "")
	}
	for _, d := range []string{"bin", "sbin", "lib", "lib64"} {
		if to, err := os.Readlink("/" + d); err != nil || to != "usr/"+d {
			t.Fatalf("/%s is no link into /usr (%q, %v): run this on a distribution with a merged /usr", d, to, err)
		}
		put(tar.Header{Name: d, Typeflag: tar.TypeSymlink, Linkname: "usr/" + d, Mode: 0o777}, "")
	}
	put(tar.Header{Name: "etc/passwd", Mode: 0o644}, "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/sh\n")
	put(tar.Header{Name: "etc/group", Mode: 0o644}, "root:x:0:\nnogroup:x:65534:\n")
	put(tar.Header{Name: "etc/hosts", Mode: 0o644}, "127.0.0.1 localhost\n")
	put(tar.Header{Name: "etc/shadow", Mode: 0o600}, "root:*:19000::::::\n")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// withoutNamespaces is the engine's profile with what Docker's refuses besides: a container action on a GitHub-hosted
// runner gets no namespace of any kind.
func withoutNamespaces(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile("/usr/share/containers/seccomp.json")
	if err != nil {
		t.Fatalf("the engine's profile: %v. %s", err, missing)
	}
	var p map[string]any
	if err := json.Unmarshal(raw, &p); err != nil {
		t.Fatal(err)
	}
	refused := []string{"clone", "clone3", "unshare", "setns", "mount", "umount", "umount2", "keyctl", "add_key", "request_key", "pivot_root", "open_tree", "move_mount", "fsopen", "fsmount", "fsconfig", "fspick", "mount_setattr"}
	rules := p["syscalls"].([]any)
	for _, r := range rules {
		rule := r.(map[string]any)
		names := slices.DeleteFunc(slices.Clone(rule["names"].([]any)), func(n any) bool { return slices.Contains(refused, n.(string)) })
		rule["names"] = names
	}
	rules = slices.DeleteFunc(rules, func(r any) bool { return len(r.(map[string]any)["names"].([]any)) == 0 })
	const anyNamespace = 0x7E020000
	p["syscalls"] = append(rules,
		map[string]any{"names": []string{"clone"}, "action": "SCMP_ACT_ALLOW", "args": []any{map[string]any{"index": 0, "value": anyNamespace, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}}},
		map[string]any{"names": []string{"clone3"}, "action": "SCMP_ACT_ERRNO", "errnoRet": 38})
	out, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "profile.json")
	if err := os.WriteFile(path, out, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
