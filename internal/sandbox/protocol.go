package sandbox

// The harness and its child talk over one socket, file descriptor 3 of the child, in lines of JSON.
// The socket is also the life line: when it closes, the harness is gone and the child kills its tree.

// shimName is the argv[0] under which the binary starts itself again. It is no path, so no user can
// reach this door by naming a file.
const shimName = "proctor: sandbox"

// controlFD is where the child finds the socket.
const controlFD = 3

// spec is the first message to the child: what to run and how to hold it.
type spec struct {
	Argv      []string   `json:"argv"`
	Env       []string   `json:"env"`
	Dir       string     `json:"dir"`
	Mode      Mode       `json:"mode"`
	ReadWrite []string   `json:"read_write"`
	ReadOnly  []string   `json:"read_only"`
	Ports     []uint16   `json:"ports"`
	Limits    Limits     `json:"limits"`
	User      *Identity  `json:"user,omitempty"`
	Probe     bool       `json:"probe,omitempty"` // confine, report, start nothing
	Pretend   Capability `json:"pretend"`

	Namespaces Namespaces        `json:"namespaces"` // the supervisor was started in
	Refused    map[string]string `json:"refused"`    // line name of the others → why
	Names      map[string]string `json:"names"`      // a path as the caller called it → what it is
	Listening  []string          `json:"listening"`  // named sockets of the harness's network namespace

	// Found out by the supervisor.
	private private
	program string
	missing *failure
}

// Capability makes a machine look weaker than it is, so that what happens on older kernels can be
// shown on a new one. The zero value pretends nothing; it cannot make anything look stronger.
type Capability struct {
	MaxLandlock int  `json:"max_landlock,omitempty"` // highest Landlock ABI to use; 0: the kernel's; -1: none
	NoSeccomp   bool `json:"no_seccomp,omitempty"`
	NoAsking    bool `json:"no_asking,omitempty"` // a filter cannot ask its supervisor: EBUSY, as under another that does
	// Without are namespaces that it cannot make; Without.User: none without being root.
	Without Namespaces `json:"without"`
}

// order is every later message to the child.
type order struct {
	Kill    bool  `json:"kill,omitempty"` // at once
	GraceMS int64 `json:"grace_ms"`       // else SIGTERM now, and kill after this
}

// report is a message from the child. Where there are namespaces, the first one tells what of them
// cannot be had, and the child ends, or is empty but for the doors that come with it. Of the others
// exactly one of the last three is set, but for a probe, which ends after Enforced.
type report struct {
	Lacking  map[string]string `json:"lacking,omitempty"` // line name → why
	Enforced []Enforced        `json:"enforced,omitempty"`
	Failed   *failure          `json:"failed,omitempty"`
	Started  int               `json:"started,omitempty"` // pid
	Ended    *ending           `json:"ended,omitempty"`
}

// failure is a command that was not started.
type failure struct {
	Kind    string `json:"kind"` // "missing", "denied", "strict", "system"
	Program string `json:"program,omitempty"`
	Detail  string `json:"detail"`
}

// ending is a tree that is gone.
type ending struct {
	ExitCode  int    `json:"exit"`
	Signal    string `json:"signal,omitempty"`
	Exceeded  string `json:"exceeded,omitempty"`
	Survivors int    `json:"survivors"`
	Left      []int  `json:"left,omitempty"` // could not be killed
}
