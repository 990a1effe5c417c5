//go:build e2e

package image

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	slim   = "localhost/proctor-e2e/slim"
	agents = "localhost/proctor-e2e/agents"
)

// absolute is a path of this repository.
func absolute(t *testing.T, path string) string {
	t.Helper()
	abs, err := filepath.Abs(filepath.Join("..", "..", path))
	if err != nil {
		t.Fatal(err)
	}
	return abs
}

// podman runs the engine that e2e/image/build configured.
func podman(t *testing.T, stdin string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "podman", args...)
	cmd.Env = append(os.Environ(), "CONTAINERS_CONF="+absolute(t, "bin/image/containers.conf"))
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func mustPodman(t *testing.T, args ...string) string {
	t.Helper()
	out, err := podman(t, "", args...)
	if err != nil {
		t.Fatalf("podman %s: %v\n%s\nNext: make image builds the images", strings.Join(args, " "), err, out)
	}
	return out
}

func TestTheImageStartsTheProgramByAnAbsolutePathAsWhoeverTheRunnerIs(t *testing.T) {
	for _, name := range []string{slim, agents} {
		var found []struct {
			Config struct {
				User       string
				Entrypoint []string
			}
		}
		if err := json.Unmarshal([]byte(mustPodman(t, "inspect", "--type=image", name)), &found); err != nil || len(found) != 1 {
			t.Fatalf("%s: %d images: %v", name, len(found), err)
		}
		if c := found[0].Config; c.User != "" || fmt.Sprint(c.Entrypoint) != "[/usr/bin/tini -g -- /usr/local/bin/proctor]" {
			t.Errorf("%s: USER %q, ENTRYPOINT %q", name, c.User, c.Entrypoint)
		}
	}
}

func TestTheImageHoldsTheBytesThatMakeBuilds(t *testing.T) {
	out := t.TempDir()
	stamp := strings.Fields(mustPodman(t, "run", "--rm", "--network=none", slim, "version"))
	build := exec.CommandContext(t.Context(), "make", "--no-print-directory", "program", "OUT="+out)
	build.Dir = absolute(t, ".")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("make program: %v\n%s", err, text)
	}
	dir := t.TempDir()
	mustPodman(t, "run", "--rm", "--network=none", "-v", dir+":/out", "--entrypoint", "/bin/cp", slim, "/usr/local/bin/proctor", "/out/proctor")
	ours, err := os.ReadFile(filepath.Join(out, "proctor"))
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := os.ReadFile(filepath.Join(dir, "proctor"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(ours, theirs) {
		t.Errorf("the image's program (%d bytes, %v) is not what make builds here (%d bytes): was something edited since make image?", len(theirs), stamp, len(ours))
	}
}

func TestTheDemoRunsInTheImageWithoutANetwork(t *testing.T) {
	out, err := podman(t, "", "run", "--rm", "--network=none", slim, "demo")
	if err != nil || !strings.Contains(out, "Draft pull request #") {
		t.Errorf("%v\n%s", err, out)
	}
	for _, agent := range []string{"claude-code", "codex"} {
		out, err := podman(t, "", "run", "--rm", "--network=none", agents, "demo", "--agent", agent)
		if err != nil || !strings.Contains(out, "Draft pull request #") {
			t.Errorf("%s: %v\n%s", agent, err, out)
		}
	}
}

// actions is how a runner starts a container action: what it mounts, which variables it hands over and where they then lie.
// A process of the host that has this text as its binary takes the action's place on the forge that the demo stands up.
const actions = `#!/bin/bash
set -eu
files=${GITHUB_OUTPUT%/*} workflow=$HOME-workflow
mkdir -p "$workflow"
cp "$GITHUB_EVENT_PATH" "$workflow/event.json"
chown -R 1001:1001 "$GITHUB_WORKSPACE" "$HOME" "$files"
args=()
while IFS= read -r -d '' pair; do
  name=${pair%%=*} value=${pair#*=}
  case $name in PATH|PWD|SHLVL|_) continue;; esac
  case $value in
    "$GITHUB_WORKSPACE"*) value=/github/workspace${value#"$GITHUB_WORKSPACE"};;
    "$HOME"*) value=/github/home${value#"$HOME"};;
    "$files"*) value=/github/file_commands${value#"$files"};;
    "$GITHUB_EVENT_PATH") value=/github/workflow/event.json;;
  esac
  args+=(-e "$name=$value")
done </proc/$$/environ
export CONTAINERS_CONF=@CONF@ PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin
exec podman run --rm --pull=never --network=host --workdir /github/workspace --entrypoint /usr/local/bin/proctor-action \
  -v "$GITHUB_WORKSPACE:/github/workspace" -v "$HOME:/github/home" -v "$files:/github/file_commands" -v "$workflow:/github/workflow" \
  -v @SOCKET@:/var/run/docker.sock "${args[@]}" @IMAGE@
`

func TestTheImageIsAnActionsContainer(t *testing.T) {
	// Mounted /github/*, a workspace of uid 1001, the engine's socket beside it.
	dir := t.TempDir()
	socket := filepath.Join(dir, "docker.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	shim := filepath.Join(dir, "action")
	text := strings.NewReplacer("@CONF@", absolute(t, "bin/image/containers.conf"), "@SOCKET@", socket, "@IMAGE@", slim).Replace(actions)
	if err := os.WriteFile(shim, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), absolute(t, "bin/proctor"), "demo", "--json", "--action", shim, "--out", filepath.Join(dir, "demo")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var ended struct {
		Terminal string `json:"terminal"`
		Draft    bool   `json:"draft"`
		Record   string `json:"record"`
	}
	if err := json.Unmarshal(out, &ended); err != nil || ended.Terminal != "done" || !ended.Draft {
		t.Fatalf("%v\n%s", err, out)
	}
	record, err := os.ReadFile(ended.Record)
	if err != nil {
		t.Fatal(err)
	}
	var rec struct {
		Confinement []struct {
			Name   string `json:"name"`
			Active bool   `json:"active"`
		} `json:"confinement"`
	}
	if err := json.Unmarshal(record, &rec); err != nil {
		t.Fatal(err)
	}
	held := map[string]bool{}
	for _, c := range rec.Confinement {
		held[c.Name] = c.Active
	}
	for _, name := range []string{"user", "filesystem", "network-tcp", "unix-sockets", "syscalls"} {
		if !held[name] {
			t.Errorf("%s was not enforced in the container: %v", name, held)
		}
	}
}

func TestCanariesAreNotFoundInTheImage(t *testing.T) {
	// INV-33, INV-38: the suite's own table with the engine's default profile, and this image's programs.
	tests := filepath.Join(t.TempDir(), "sandbox.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", tests, "./internal/sandbox")
	build.Dir, build.Env = absolute(t, "."), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go test -c: %v %s", err, out)
	}
	out, err := podman(t, "", "run", "--rm", "--network=none", "-e", "PROCTOR_TEST_CONTAINER=1", "-v", tests+":/opt/sandbox.test:ro", "--entrypoint", "/opt/sandbox.test", slim,
		"-test.v", "-test.run", "^(TestConfinementTable|TestWhatIsAllowedWorks|TestCanariesAreNotFound)$")
	if n := strings.Count(out, "--- PASS: TestConfinementTable/"); err != nil || n < 40 || strings.Contains(out, "--- SKIP") || !strings.Contains(out, "--- PASS: TestConfinementTable/INV-38_reach_docker.sock") {
		t.Errorf("%v, %d rows of the table passed:\n%s", err, n, out)
	}
}

func TestTheImageIsAGitLabJobWithAShell(t *testing.T) {
	// GitLab's runner pipes its script into a shell of the image; internal/app plays a whole job that way.
	out, err := podman(t, "set -e\ncd /tmp\ngit --version\nproctor-action\n", "run", "--rm", "-i", "--network=none", "--entrypoint", "", "-e", "GITLAB_CI=true", slim, "/bin/sh")
	if err == nil || !strings.Contains(out, "git version 2.") || !strings.Contains(out, "the runner did not set CI_PROJECT_PATH") {
		t.Errorf("%v\n%s", err, out)
	}
}

// budget is DESIGN's §11: what a runner without the image downloads, in bytes.
const budget = 70e6

// TestTheImageIsWithinItsBudget asserts sizes, which a builder's machine does not change, and prints times, which it does.
func TestTheImageIsWithinItsBudget(t *testing.T) {
	for _, name := range []string{slim, agents} {
		layers := compressed(t, name)
		var all int64
		for _, size := range layers {
			all += size
		}
		began := time.Now()
		mustPodman(t, "run", "--rm", "--network=none", name, "version")
		run := time.Since(began)
		began = time.Now()
		mustPodman(t, "run", "--rm", "--network=none", "--entrypoint", "/bin/true", name)
		t.Logf("%s: %.1f MB compressed, by layers %d; `version` in a container %s, of which the engine %s", name, float64(all)/1e6, layers,
			run.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
		t.Logf("before compression:\n%s", mustPodman(t, "history", "--no-trunc", "--format", "{{.Size}}\t{{.CreatedBy}}", name))
		if over := all > budget; over != (name == agents) {
			t.Errorf("%s has %d bytes compressed, and the budget is %.0f", name, all, budget) // agents is the control
		}
	}
	info, err := os.Stat(absolute(t, "bin/proctor"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, done := context.WithTimeout(t.Context(), time.Minute)
	defer done()
	began := time.Now()
	if err := exec.CommandContext(ctx, absolute(t, "bin/proctor"), "version").Run(); err != nil {
		t.Fatal(err)
	}
	t.Logf("program: %.1f MB (budget 25); start to end of `version` %s (budget of the first line 15 ms)", float64(info.Size())/1e6, time.Since(began).Round(time.Millisecond))
}

// compressed are the sizes of an image's layers as a registry gets them, the base first.
func compressed(t *testing.T, name string) (sizes []int64) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "oci")
	mustPodman(t, "save", "--quiet", "--format", "oci-dir", "-o", dir, name)
	var index, manifest struct {
		Manifests, Layers []struct {
			Digest, MediaType string
			Size              int64
		}
	}
	read := func(path string, into any) {
		if text, err := os.ReadFile(filepath.Join(dir, path)); err != nil || json.Unmarshal(text, into) != nil {
			t.Fatalf("%s of %s: %v %s", path, name, err, text)
		}
	}
	read("index.json", &index)
	if len(index.Manifests) != 1 {
		t.Fatalf("%s: %d manifests", name, len(index.Manifests))
	}
	read(filepath.Join("blobs", strings.Replace(index.Manifests[0].Digest, ":", "/", 1)), &manifest)
	for _, l := range manifest.Layers {
		if !strings.HasSuffix(l.MediaType, "tar+gzip") {
			t.Fatalf("%s: a layer is %s", name, l.MediaType)
		}
		sizes = append(sizes, l.Size)
	}
	return sizes
}
