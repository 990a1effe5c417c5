// Package probe owns the checks that are gates without being commands of the repository: what they ask and
// how they ask it. It must never let a file of the repository stand for a check, nor run outside the
// confinement that it is started in.
package probe

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/proctor-ci/proctor/internal/sandbox"
)

// Kinds of checks that a process of ours makes inside the confinement.
const (
	HTTP    = "http"
	TCP     = "tcp"
	Boots   = "boots"
	EnvFile = "env-file"
	File    = "file"
)

// Spec is one check. Which fields count is up to Kind; the working directory is the checkout.
type Spec struct {
	Kind     string        `json:"kind"`
	Start    []string      `json:"start,omitempty"` // argv of what is started first; needed by Boots
	URL      string        `json:"url,omitempty"`
	Status   int           `json:"status,omitempty"`
	Body     string        `json:"body,omitempty"`
	Address  string        `json:"address,omitempty"`
	Within   time.Duration `json:"within,omitempty"`
	For      time.Duration `json:"for,omitempty"`
	Path     string        `json:"path,omitempty"`
	Keys     []string      `json:"keys,omitempty"`
	Contains string        `json:"contains,omitempty"`
	Absent   bool          `json:"absent,omitempty"`
}

// childArg is the argument by which a process knows that it is to make a check.
const childArg = "proctor-probe"

// self starts the running binary again, also when its file was replaced since.
const self = "/proc/self/exe"

// Argv is the command that makes the check: this very program. Its file has to be readable in the
// confinement, and its main has to call Child.
func (s Spec) Argv() []string {
	b, err := json.Marshal(s)
	if err != nil {
		// Spec holds texts and numbers only.
		panic("probe: marshal: " + err.Error())
	}
	return []string{self, childArg, string(b)}
}

// String is the check as a person reads it.
func (s Spec) String() string {
	var b strings.Builder
	b.WriteString("probe " + s.Kind)
	switch s.Kind {
	case HTTP:
		fmt.Fprintf(&b, " %s, status %d", s.URL, s.Status)
		if s.Body != "" {
			fmt.Fprintf(&b, ", body with %q", s.Body)
		}
	case TCP:
		b.WriteString(" " + s.Address)
	case Boots:
		fmt.Fprintf(&b, " for %s", s.For)
	case EnvFile:
		fmt.Fprintf(&b, " %s, keys %s", s.Path, strings.Join(s.Keys, ", "))
	case File:
		b.WriteString(" " + s.Path)
		switch {
		case s.Absent:
			b.WriteString(" is absent")
		case s.Contains != "":
			fmt.Fprintf(&b, " with %q", s.Contains)
		}
	}
	if len(s.Start) > 0 {
		fmt.Fprintf(&b, ", start %s", shown(s.Start))
	}
	return b.String()
}

func shown(argv []string) string {
	if len(argv) == 3 && argv[0] == "sh" && argv[1] == "-c" {
		return argv[2]
	}
	return strings.Join(argv, " ")
}

// Exit codes of a check. Those of a command that could not be started are what a shell gives, so that a
// gate reads them as broken and not as a verdict.
const (
	passed     = 0
	failed     = 1
	cannotRun  = 126
	noSuchFile = 127
)

// Child makes the check that args name and reports whether they do and with which exit code to end.
// Every main (and TestMain) whose process runs probes calls it first:
//
//	if code, ok := probe.Child(os.Args, os.Stdout); ok {
//		os.Exit(code)
//	}
//
// Only that exit code is a verdict; what the check and what it started print is for people.
func Child(args []string, stdout io.Writer) (code int, ok bool) {
	if len(args) != 3 || args[1] != childArg {
		return 0, false
	}
	c := &check{out: stdout}
	if err := json.Unmarshal([]byte(args[2]), &c.Spec); err != nil {
		c.say("its description did not arrive: %v", err)
		return cannotRun, true
	}
	// What is checked runs as the same user: it may end this process, which is no pass, but not change it.
	if err := sandbox.HardenSelf(); err != nil {
		c.say("this process could not be shielded from what it checks: %v", err)
		return cannotRun, true
	}
	return c.run(), true
}

// check is the child's side.
type check struct {
	Spec
	out io.Writer
}

func (c *check) say(format string, args ...any) {
	// Nobody to tell when stdout is gone.
	_, _ = fmt.Fprintf(c.out, "probe %s: %s\n", c.Kind, fmt.Sprintf(format, args...))
}

func (c *check) run() int {
	switch c.Kind {
	case File:
		return c.file()
	case EnvFile:
		return c.envFile()
	case Boots:
		return c.boots()
	case TCP:
		return c.poll(c.connect)
	case HTTP:
		return c.poll(c.ask)
	}
	c.say("no such kind of check")
	return cannotRun
}
