// Package sandbox owns processes that are not trusted: how they are confined, limited, and killed
// with every descendant. It must never start anything with the harness's own environment.
package sandbox

import (
	"fmt"
	"io"
	"time"
)

// Mode is what the user asked for.
type Mode string

// Modes. Auto confines as far as the machine can and says what it could not; Strict refuses to start
// when anything is missing; Off confines nothing (limits and killing stay).
const (
	Auto   Mode = "auto"
	Strict Mode = "strict"
	Off    Mode = "off"
)

// Policy is what one process tree may reach. Everything that is not listed is refused, but for the
// system's own read-only places (/usr, /lib*, /bin, /sbin, /etc without secrets, /proc of its own, /dev basics).
type Policy struct {
	Mode      Mode
	ReadWrite []string // directories, made by the caller
	ReadOnly  []string // further directories or files, e.g. the agent CLI's folder
	// ConnectPorts are the TCP ports of the harness's loopback that it may connect to (meter, egress
	// proxy), as 127.0.0.1:PORT; none: nothing outside at all. Where it has a network namespace of its own
	// its own servers are open to it besides, and each of these ports is carried to the harness's; else
	// the rule is by number, on the machine's loopback (on whatever host where the kernel is older than 6.7 or its
	// system-call filters are taken), it cannot bind a TCP port, and it has no IPv6.
	ConnectPorts []uint16
	Limits       Limits
}

// Limits of a process tree; zero means the default in brackets.
type Limits struct {
	Processes int   // [4096] RLIMIT_NPROC where it bites, and counted by the harness
	FileBytes int64 // [2 GiB] largest file one process may write
	OpenFiles int   // [4096]
	DiskBytes int64 // [8 GiB] growth of all ReadWrite directories and the private /tmp together, watched by the harness
	Output    int64 // [256 MiB] of stdout and stderr each; more kills the tree
}

// Command is one process tree to run.
type Command struct {
	Argv    []string // Argv[0] is looked up in the PATH of Env, never in Dir
	Env     []string // the whole environment: nothing is added but what the confinement itself needs
	Dir     string
	Stdin   io.Reader // nil: closed at once
	Stdout  io.Writer // each is written by one goroutine, by the same one when both are equal; nil: dropped
	Stderr  io.Writer
	Timeout time.Duration // 0: none but the context
	// Clock, where there is one, is sent the Timeout once its time begins, for a process that first waits for its work.
	// Until then none but the context ends it.
	Clock  <-chan time.Duration
	Grace  time.Duration // from SIGTERM to SIGKILL; 0 means 2 s
	Policy Policy
}

// Result of a process tree that was started.
type Result struct {
	ExitCode  int    // -1 when a signal ended it
	Signal    string // "killed", "terminated", … when one did
	TimedOut  bool   // Timeout ended it
	Cancelled bool   // the context ended it
	Exceeded  string // the limit that ended it: "output", "disk", "processes"; else empty
	Survivors int    // descendants that were alive after the main process ended and were killed
	Limits    Limits // that it was under
	Duration  time.Duration
	Enforced  []Enforced // what held this very tree; the same lines as Box.Probe
}

// Excess says in words which limit ended the tree; "" when none did.
func (r Result) Excess() string {
	switch r.Exceeded {
	case "":
		return ""
	case "processes":
		return fmt.Sprintf("it had more than %d processes at a time, as a fork bomb has, so all of them were killed", r.Limits.Processes)
	case "disk":
		return fmt.Sprintf("it filled more than %d MiB of disk, so all of its processes were killed", r.Limits.DiskBytes>>20)
	case "output":
		return fmt.Sprintf("it printed more than %d MiB, so all of its processes were killed", r.Limits.Output>>20)
	}
	return "it went over its limit of " + r.Exceeded + ", so all of its processes were killed"
}

// Enforced is one line of what confinement does on this machine.
type Enforced struct {
	// Name is "user", "filesystem", "network-tcp", "network-udp", "unix-sockets", "syscalls", "limits" or
	// "descendants"; and for namespaces "network", "private-tmp", "processes" or "ipc".
	Name   string
	Active bool
	Detail string // how ("Landlock ABI 7"), or why not and what would bring it
	// Optional: strict starts without it, because the other lines hold what it holds, if less tightly.
	Optional bool
}
