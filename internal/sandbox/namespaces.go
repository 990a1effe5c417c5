package sandbox

import (
	"fmt"
	"slices"
	"strings"
)

// Namespaces are views of the machine that a process tree may have to itself. In a plan true means that
// it is made, in Capability.Without that this machine is to look as if it could not make it.
type Namespaces struct {
	Network   bool `json:"network,omitempty"`   // only a loopback interface
	Temp      bool `json:"temp,omitempty"`      // mounts, for a /tmp and /dev/shm of its own
	Processes bool `json:"processes,omitempty"` // process numbers, and a /proc that shows no others
	IPC       bool `json:"ipc,omitempty"`       // System V and POSIX message objects, and the host's name
	// User is how the others are made by who is not root: inside a user namespace, which maps the
	// harness's own user to itself.
	User bool `json:"user,omitempty"`
}

// AllNamespaces is what a capable machine gives, and in Capability.Without one that gives none.
func AllNamespaces() Namespaces {
	return Namespaces{Network: true, Temp: true, Processes: true, IPC: true, User: true}
}

// Names of the lines that tell of namespaces.
const (
	lineNetwork   = "network"
	lineTemp      = "private-tmp"
	lineProcesses = "processes"
	lineIPC       = "ipc"
)

// kinds are the lines of the namespaces that are wanted.
func (n Namespaces) kinds() []string {
	var out []string
	for _, k := range []struct {
		name string
		on   bool
	}{{lineNetwork, n.Network}, {lineTemp, n.Temp}, {lineProcesses, n.Processes}, {lineIPC, n.IPC}} {
		if k.on {
			out = append(out, k.name)
		}
	}
	return out
}

func (n Namespaces) any() bool { return n.Network || n.Temp || n.Processes || n.IPC }

// only keeps the named kinds; how they are made stays.
func (n Namespaces) only(names ...string) Namespaces {
	has := func(name string) bool { return slices.Contains(names, name) }
	return Namespaces{
		Network: n.Network && has(lineNetwork), Temp: n.Temp && has(lineTemp),
		Processes: n.Processes && has(lineProcesses), IPC: n.IPC && has(lineIPC), User: n.User,
	}
}

// without takes the refused kinds out.
func (n Namespaces) without(refused map[string]string) Namespaces {
	return n.only(slices.DeleteFunc(n.kinds(), func(k string) bool { _, ok := refused[k]; return ok })...)
}

// pretended are the refusals of a machine that is to look weaker.
func (c Capability) pretended(user bool) map[string]string {
	lost := c.Without
	if user && lost.User {
		lost = AllNamespaces()
	}
	out := map[string]string{}
	for _, k := range lost.kinds() {
		out[k] = "this machine is to look as if it had no such namespaces"
	}
	return out
}

// namespaceLines says of each kind whether this tree has it. None of them is needed under strict: what
// they keep is kept by the other lines too, if less tightly.
func namespaceLines(s spec) []Enforced {
	lines := []Enforced{
		{Name: lineNetwork, Active: s.Namespaces.Network, Detail: "a network namespace of its own: " + reachable(s)},
		{Name: lineTemp, Active: s.Namespaces.Temp, Detail: "memory of its own on " + strings.Join(s.private.places, " and ") + " (" + s.private.size() + " each), gone with the tree"},
		{Name: lineProcesses, Active: s.Namespaces.Processes, Detail: "a process namespace and a /proc of its own: no other process is visible, and none outlives the supervisor"},
		{Name: lineIPC, Active: s.Namespaces.IPC, Detail: "IPC and UTS namespaces of its own: no object outlives the tree"},
	}
	const anyone = "start the harness as root, or allow user namespaces"
	fallback := map[string]string{
		lineNetwork:   "TCP is held by port numbers, and to this machine's loopback where the line network-tcp says so; a gate cannot connect to a server that it starts itself",
		lineTemp:      "/tmp and /dev/shm may not be written at all, so programs that insist on them fail",
		lineProcesses: "other processes are visible in /proc with their command lines, though closed otherwise",
		lineIPC:       "System V and POSIX message objects are refused, so programs that need them fail",
	}
	for i := range lines {
		e := &lines[i]
		e.Optional = true
		if !e.Active {
			remedy := anyone
			if e.Name == lineProcesses {
				remedy += "; in a container that masks parts of /proc, start that with CAP_SYS_ADMIN"
			}
			e.Detail = s.Refused[e.Name] + ": " + fallback[e.Name] + " (" + remedy + ")"
		}
	}
	return lines
}

// private is where a tree has memory of its own in place of the machine's shared directories.
type private struct {
	places []string
	bytes  int64 // that fit into each
}

func (p private) size() string { return fmt.Sprintf("%d MiB", p.bytes>>20) }

func reachable(s spec) string {
	if len(s.Ports) == 0 {
		return "its loopback and nothing else"
	}
	return "its loopback, on which " + fmt.Sprintf("ports %v", s.Ports) + " of the harness's, and nothing else"
}
