//go:build e2e

package probe_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/probe"
)

// These tests build with a real engine. Install it with: make e2e-deps
// and run them with: go test -tags e2e -run Podman ./internal/probe

// looker is the one program of an image: it says which network interfaces it has, and fails when there is one.
const looker = `package main

import ("fmt"; "net"; "os")

func main() {
	all, err := net.Interfaces()
	for _, i := range all {
		if i.Flags&net.FlagLoopback == 0 {
			fmt.Println("a network:", i.Name)
			os.Exit(1)
		}
	}
	fmt.Println("no network", err)
}
`

// podman starts an engine of its own, with its own storage, and gives its address.
func podman(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("podman"); err != nil {
		t.Fatalf("a real builder is needed (%v): run `make e2e-deps`", err)
	}
	dir, err := os.MkdirTemp("", "podman")
	if err != nil {
		t.Fatal(err)
	}
	conf := "[containers]\ndefault_ulimits = [\"nofile=1024:1024\"]\n[engine]\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"file\"\n"
	if _, err := exec.LookPath("runc"); err == nil {
		conf += "runtime = \"runc\"\n"
	}
	file, socket := filepath.Join(dir, "containers.conf"), filepath.Join(dir, "s")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd := exec.Command("podman", "--root", filepath.Join(dir, "root"), "--runroot", filepath.Join(dir, "run"), "--storage-driver", "vfs", "system", "service", "--time=0", "unix://"+socket)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), "CONTAINERS_CONF="+file), &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
		}
		_ = os.RemoveAll(dir)
	})
	for range 300 {
		if _, err := os.Stat(socket); err == nil {
			return "unix://" + socket
		}
		select {
		case <-ended:
			t.Fatalf("podman ended: %s", said.String())
		case <-time.After(100 * time.Millisecond):
		}
	}
	t.Fatalf("podman does not listen: %s", said.String())
	return ""
}

func TestPodmanBuildsWhatBuildsAndGivesStepsNoNetwork(t *testing.T) {
	at := podman(t)
	dir := t.TempDir()
	source, program := filepath.Join(dir, "look.go"), filepath.Join(dir, "look")
	if err := os.WriteFile(source, []byte(looker), 0o600); err != nil {
		t.Fatal(err)
	}
	compile := exec.Command("go", "build", "-o", program, source)
	compile.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	look, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	build := func(dockerfile string) (string, error) {
		var out bytes.Buffer
		err := probe.Image{Builder: at, File: "Dockerfile", Tag: "proctor-probe:e2e"}.Build(t.Context(), func(w *tar.Writer) error {
			for name, text := range map[string][]byte{"Dockerfile": []byte(dockerfile), "look": look} {
				if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(text))}); err != nil {
					return err
				}
				if _, err := w.Write(text); err != nil {
					return err
				}
			}
			return nil
		}, &out)
		return out.String(), err
	}
	out, err := build("FROM scratch\nCOPY look /look\nRUN [\"/look\"]\n")
	if err != nil || !strings.Contains(out, "no network <nil>") {
		t.Errorf("%v\n%s", err, out)
	}
	var failed *probe.BuildError
	for name, file := range map[string]string{
		"a file that is not there": "FROM scratch\nCOPY none /none\n",
		"a step that fails":        "FROM scratch\nCOPY look /look\nRUN [\"/look\", \"/none\"]\nRUN [\"/none\"]\n",
		"no Dockerfile's text":     "HELLO\n",
	} {
		if out, err := build(file); !errors.As(err, &failed) {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	images := exec.Command("podman", "--url", at, "images", "--quiet", "--filter", "reference=proctor-probe")
	if left, err := images.Output(); err != nil || len(bytes.TrimSpace(left)) > 0 {
		t.Errorf("images that were built are left: %s, %v", left, err)
	}
}
