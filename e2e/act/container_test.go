//go:build e2e

package act

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/templates"
)

const (
	slim      = "localhost/proctor-e2e/slim"     // by e2e/image/build
	published = "ghcr.io/proctor-ci/proctor:e2e" // what action.yml names, but for its tag
)

// engine is podman with a configuration of its own, and its API on a socket.
type engine struct {
	env    []string
	socket string
}

func newEngine(t *testing.T) engine {
	t.Helper()
	dir := t.TempDir()
	text := "[containers]\ndefault_ulimits = []\n[engine]\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"file\"\n"
	if _, err := exec.LookPath("runc"); err == nil {
		text += "runtime = \"runc\"\n"
	}
	write(t, filepath.Join(dir, "containers.conf"), text)
	e := engine{env: append(os.Environ(), "CONTAINERS_CONF="+filepath.Join(dir, "containers.conf")), socket: filepath.Join(dir, "podman.sock")}
	ctx, stop := context.WithCancel(context.Background())
	service := exec.CommandContext(ctx, "podman", "system", "service", "--time=0", "unix://"+e.socket)
	service.Env = e.env
	service.Cancel = func() error { return service.Process.Signal(syscall.SIGTERM) }
	service.WaitDelay = 10 * time.Second
	if err := service.Start(); err != nil {
		t.Fatalf("podman: %v. %s", err, missing)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = service.Wait() // it ends by our signal
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	for range 200 {
		if c, err := net.Dial("unix", e.socket); err == nil {
			c.Close()
			return e
		}
		select {
		case <-ended:
			t.Fatalf("podman's service ended. %s", missing)
		case <-time.After(50 * time.Millisecond):
		}
	}
	t.Fatal("podman's service does not answer")
	return e
}

func (e engine) podman(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "podman", args...)
	cmd.Env = e.env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("podman %s: %v\n%s%s", strings.Join(args, " "), err, out, missing)
	}
}

// build makes the image with this build's program, on the layers that are there.
func (e engine) build(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	program, err := os.ReadFile(absolute(t, "bin/proctor"))
	if err != nil {
		t.Fatalf("%v. %s", err, missing)
	}
	write(t, filepath.Join(dir, "proctor"), string(program))
	write(t, filepath.Join(dir, "Containerfile"), "FROM "+slim+"\nCOPY proctor /usr/local/bin/proctor\n")
	e.podman(t, "build", "--quiet", "--pull=never", "-t", published, dir)
	t.Cleanup(func() {
		cmd := exec.Command("podman", "rmi", published)
		cmd.Env = e.env
		_ = cmd.Run()
	})
}

func TestALabelledIssueBecomesADraftByTheContainerAction(t *testing.T) {
	e := newEngine(t)
	e.build(t)
	s := newStage(t)
	workflow := strings.Replace(string(templates.GitHubWorkflow), "uses: proctor-ci/proctor/host@v0", "uses: proctor-ci/proctor@v0", 1)
	job := s.session(t, workflow)
	job.socket, job.artifacts, job.port = e.socket, filepath.Join(t.TempDir(), "artifacts"), freePort(t)
	job.env["NODE_PATH"] = absolute(t, "e2e/act/node_modules")
	for _, dir := range job.repositories {
		path := filepath.Join(dir, "action.yml")
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if text := strings.Replace(string(raw), "docker://ghcr.io/proctor-ci/proctor:0\n", "docker://"+published+"\n", 1); text != string(raw) {
			write(t, path, text)
		}
	}
	o := job.run(t)
	if o.err != nil || o.jobs()["proctor"] != "success" {
		t.Fatalf("%v, %v\n%s", o.err, o.jobs(), o.said())
	}
	commit := s.proved(t, o)
	if kept := unpacked(t, job.artifacts); !strings.Contains(kept[evidence.RecordFile], commit) {
		t.Errorf("the artifact has no record of %s", commit)
	}
	// INV-38: as in the containers of GitHub's runners, with the engine's socket beside it.
	for _, held := range []string{"user", "filesystem", "network-tcp", "unix-sockets", "syscalls"} {
		if !strings.Contains(o.summary(), "\n- "+held+": ") {
			t.Errorf("%s was not enforced:\n%s", held, o.summary())
		}
	}
}
