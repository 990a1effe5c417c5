//go:build e2e

package act

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const missing = "Next: make act"

// session is one start of act.
type session struct {
	workflow       string // the file's text
	event, payload string // the name, and the event file's content
	plan           bool   // evaluate everything; of scripts act spares those in containers only
	path           string // in front of PATH
	socket         string // an engine's, for container actions; "": none
	artifacts      string // directory of act's artifact server, on port; "": none
	port           string
	repositories   map[string]string
	env            map[string]string
	secrets        map[string]string
	flags          []string
}

// line is one line of act's log.
type line struct {
	JobID, Step, Stage string
	JobResult, Msg     string
	Command            string
	Name, Arg, Content string
}

type outcome struct {
	text  string
	lines []line
	err   error
}

// ours is what a release's tag holds of this repository, as far as its actions read it.
func ours(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "cp", "--archive", "--parents", "action.yml", "host", "image/agents", dir)
	cmd.Dir = absolute(t, ".")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("copy the actions: %v %s", err, out)
	}
	return dir
}

var uses = regexp.MustCompile(`(?m)\buses: ([\w.-]+/[\w.-]+)(/[\w./-]+)?@([\w.-]+)`)

// named are the repositories that a workflow's steps take actions from, with their refs.
func named(workflow string) map[string]string {
	found := map[string]string{}
	for _, m := range uses.FindAllStringSubmatch(workflow, -1) {
		if !strings.HasPrefix(m[1], "my-org/") {
			found[m[1]+"@"+m[3]] = m[1]
		}
	}
	return found
}

// local maps each repository that a workflow names to a folder: this repository's actions, or a stand-in below testdata/actions.
func local(t *testing.T, workflow, own string) map[string]string {
	t.Helper()
	to := map[string]string{}
	for ref, name := range named(workflow) {
		if to[ref] = own; name == "proctor-ci/proctor" {
			continue
		}
		to[ref] = absolute(t, filepath.Join("e2e/act/testdata/actions", strings.TrimPrefix(name, "actions/")))
		if _, err := os.Stat(filepath.Join(to[ref], "action.yml")); err != nil {
			t.Fatalf("a workflow uses %s, which act cannot fetch everywhere. Next: write a stand-in, %s", ref, to[ref])
		}
	}
	return to
}

// run starts act with an environment made from nothing.
func (s session) run(t *testing.T) outcome {
	t.Helper()
	program := absolute(t, "bin/act")
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("act is not here. %s", missing)
	}
	dir := t.TempDir()
	for _, d := range []string{"home", "work"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	workflow, event := filepath.Join(dir, "workflow.yml"), filepath.Join(dir, "event.json")
	for path, text := range map[string]string{workflow: s.workflow, event: s.payload} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{s.event, "--json", "-W", workflow, "-e", event, "-C", filepath.Join(dir, "work"), "-P", "ubuntu-latest=-self-hosted", "--pull=false", "--no-cache-server",
		"--action-cache-path", filepath.Join(dir, "cache"), "--no-skip-checkout", "--defaultbranch", "main"}
	if s.socket == "" {
		args = append(args, "--container-daemon-socket", "-")
	} else {
		// The socket is in the container, as it is in those of GitHub's runners. The variables of a job on the machine itself name the machine's directories,
		// and act mounts others: these are mounted where they are named.
		args = append(args, "--container-daemon-socket", "unix://"+s.socket, "--container-options", "--network=host -v "+dir+":"+dir)
	}
	if s.plan {
		args = append(args, "--dryrun")
	}
	if s.artifacts != "" {
		args = append(args, "--artifact-server-path", s.artifacts, "--artifact-server-addr", "127.0.0.1", "--artifact-server-port", s.port)
	}
	for flag, pairs := range map[string]map[string]string{"--local-repository": s.repositories, "--env": s.env, "--secret": s.secrets} {
		for _, name := range slices.Sorted(maps.Keys(pairs)) {
			args = append(args, flag, name+"="+pairs[name])
		}
	}
	cmd := exec.CommandContext(t.Context(), program, append(args, s.flags...)...)
	cmd.Dir = filepath.Join(dir, "work")
	path := "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	if node, err := exec.LookPath("node"); err == nil { // a runner has it for actions
		path += ":" + filepath.Dir(node)
	}
	if s.path != "" {
		path = s.path + ":" + path
	}
	cmd.Env = []string{"PATH=" + path, "HOME=" + filepath.Join(dir, "home")}
	if s.socket != "" {
		cmd.Env = append(cmd.Env, "DOCKER_HOST=unix://"+s.socket)
	}
	out, err := cmd.CombinedOutput()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	o := outcome{text: string(out), err: err}
	for raw := range bytes.Lines(out) {
		var l line
		if json.Unmarshal(raw, &l) == nil {
			o.lines = append(o.lines, l)
		}
	}
	return o
}

// jobs are the results of the jobs that ran.
func (o outcome) jobs() map[string]string {
	ended := map[string]string{}
	for _, l := range o.lines {
		if l.JobResult != "" {
			ended[l.JobID] = l.JobResult
		}
	}
	return ended
}

// outputs are those of the step that a workflow names so.
func (o outcome) outputs() map[string]string {
	out := map[string]string{}
	for _, l := range o.lines {
		if l.Command == "set-output" {
			out[l.Name] = l.Arg
		}
	}
	return out
}

func (o outcome) summary() string {
	var all strings.Builder
	for _, l := range o.lines {
		if l.Command == "summary" {
			all.WriteString(l.Content)
		}
	}
	return all.String()
}

// said are the messages, for a person who looks at a failure.
func (o outcome) said() string {
	var b strings.Builder
	for _, l := range o.lines {
		fmt.Fprintf(&b, "[%s] %s\n", l.JobID, l.Msg)
	}
	if len(o.lines) == 0 {
		return o.text
	}
	return b.String()
}
