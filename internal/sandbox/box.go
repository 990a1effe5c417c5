package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Defaults of Limits and of Command.Grace.
const (
	DefaultProcesses = 4096
	DefaultFileBytes = int64(2) << 30
	DefaultOpenFiles = 4096
	DefaultDiskBytes = int64(8) << 30
	DefaultOutput    = int64(256) << 20
	DefaultGrace     = 2 * time.Second // a cancelled run has seven for all: to end its child, save, report
)

// Identity is a user and group id.
type Identity struct {
	UID int `json:"uid"`
	GID int `json:"gid"`
}

// nobody is the identity that untrusted processes get when the harness may change it. It has an entry
// in every distribution's passwd, which programs that ask for their own name need.
func nobody() Identity { return Identity{UID: 65534, GID: 65534} }

// Config of a Box. The zero value is usable: mode auto, this binary, nobody, no log.
type Config struct {
	Mode Mode   // what a Policy without a mode means; empty: Auto
	Exe  string // binary whose main calls Child first; empty: the running one
	// User is who untrusted processes run as when the harness is root and may change users; zero: 65534.
	User Identity
	Log  *slog.Logger // nil: silent; never sees argv, environment or output
	// Pretend makes the machine look weaker; for tests.
	Pretend Capability
}

// Box starts untrusted processes. It is safe for use by several goroutines, and several trees may run
// at once.
type Box struct {
	mode    Mode
	exe     string
	user    *Identity // nil: the harness cannot give them a user of their own
	log     *slog.Logger
	pretend Capability

	mu      sync.Mutex
	refused map[string]string // namespaces that this machine was found not to make; line name → why
}

// New checks the configuration and what the harness itself may do. It starts nothing, and makes this
// process the one that orphans of a dead supervisor come to.
func New(c Config) (*Box, error) {
	b := &Box{mode: c.Mode, exe: c.Exe, log: c.Log, pretend: c.Pretend}
	switch c.Mode {
	case "":
		b.mode = Auto
	case Auto, Strict, Off:
	default:
		return nil, fmt.Errorf("sandbox: unknown mode %q: use auto, strict or off", c.Mode)
	}
	if b.exe == "" {
		b.exe = selfExe
	}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	user := c.User
	if user == (Identity{}) {
		user = nobody()
	}
	if user.UID <= 0 || user.GID <= 0 {
		return nil, fmt.Errorf("sandbox: user %d:%d cannot hold untrusted processes: name an unprivileged user and group", user.UID, user.GID)
	}
	if canBecome(user) {
		b.user = &user
	}
	if err := adoptOrphans(); err != nil {
		return nil, err
	}
	return b, nil
}

// User is who untrusted processes run as, and whether that differs from the harness's own user: with mode Off it never
// does. Files that they must be able to change are given to them with Own.
func (b *Box) User() (Identity, bool) {
	if user := b.userFor(b.mode); user != nil {
		return *user, true
	}
	return Identity{UID: os.Geteuid(), GID: os.Getegid()}, false
}

// Probe says what this machine enforces, by confining a child that then starts nothing. Mode Off gives
// lines that are not active.
func (b *Box) Probe(ctx context.Context) ([]Enforced, error) {
	s := spec{Mode: b.mode, Probe: true, Limits: withDefaults(Limits{}), User: b.userFor(b.mode), Pretend: b.pretend}
	return b.probe(ctx, s)
}

// Run starts one process tree and waits until it and all its descendants are gone. A tree that was
// started always gives a Result, however it ended. An error means that nothing was started
// (*StartError, *UnenforcedError, the context's error, a wrong Command), that processes are left that
// could not be killed (*LeftoverError), or that the harness's own machinery failed; a Result that comes
// with a LeftoverError is filled in.
//
// A Stdin that never ends does not keep Run waiting. Stdout and Stderr get everything up to
// Limits.Output; where both are the same writer they are one pipe, which keeps the order in which the
// program wrote. When a writer fails, the rest is dropped and the tree goes on.
func (b *Box) Run(ctx context.Context, c Command) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	s, err := b.spec(c)
	if err != nil {
		return Result{}, err
	}
	if err := b.prepare(s); err != nil {
		return Result{}, err
	}
	if c.Grace <= 0 {
		c.Grace = DefaultGrace
	}
	return b.run(ctx, s, c)
}

// spec turns a Command into what the child needs, with every path absolute and without symbolic links.
func (b *Box) spec(c Command) (spec, error) {
	mode := c.Policy.Mode
	switch mode {
	case "":
		mode = b.mode
	case Auto, Strict, Off:
	default:
		return spec{}, fmt.Errorf("sandbox: unknown mode %q: use auto, strict or off", mode)
	}
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		return spec{}, errors.New("sandbox: no program to run: the command is empty")
	}
	dir, err := realDir(c.Dir)
	if err != nil {
		return spec{}, fmt.Errorf("sandbox: working directory: %w", err)
	}
	s := spec{
		Argv: c.Argv, Env: c.Env, Dir: dir, Mode: mode, Ports: slices.Clone(c.Policy.ConnectPorts),
		Limits: withDefaults(c.Policy.Limits), User: b.userFor(mode), Pretend: b.pretend, Names: map[string]string{},
	}
	slices.Sort(s.Ports)
	s.Ports = slices.Compact(s.Ports)
	for _, d := range c.Policy.ReadWrite {
		real, err := realDir(d)
		if err != nil {
			return spec{}, fmt.Errorf("sandbox: writable directory: %w", err)
		}
		if real == "/" || within(real, systemDirs()) {
			return spec{}, fmt.Errorf("sandbox: %s may not be writable: it is the system's", real)
		}
		s.ReadWrite = append(s.ReadWrite, real)
		s.name(d, real)
	}
	for _, d := range c.Policy.ReadOnly {
		if !filepath.IsAbs(d) {
			return spec{}, fmt.Errorf("sandbox: readable path %q is not absolute", d)
		}
		real, err := filepath.EvalSymlinks(d)
		if err != nil {
			continue // what is not there cannot be read
		}
		if real == "/" {
			return spec{}, errors.New("sandbox: / may not be readable as a whole: name the directories that are needed")
		}
		s.ReadOnly = append(s.ReadOnly, real)
		s.name(d, real)
	}
	return s, checkPath(c.Env, s.ReadWrite)
}

// name remembers a path that was called by a link.
func (s *spec) name(called, real string) {
	if called = filepath.Clean(called); called != real {
		s.Names[called] = real
	}
}

func (b *Box) userFor(mode Mode) *Identity {
	if mode == Off {
		return nil
	}
	return b.user
}

func realDir(dir string) (string, error) {
	if !filepath.IsAbs(dir) {
		return "", fmt.Errorf("%q is not an absolute path", dir)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(real)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", fmt.Errorf("%q is not a directory", dir)
	}
	return real, nil
}

func withDefaults(l Limits) Limits {
	if l.Processes <= 0 {
		l.Processes = DefaultProcesses
	}
	if l.FileBytes <= 0 {
		l.FileBytes = DefaultFileBytes
	}
	if l.OpenFiles <= 0 {
		l.OpenFiles = DefaultOpenFiles
	}
	if l.DiskBytes <= 0 {
		l.DiskBytes = DefaultDiskBytes
	}
	if l.Output <= 0 {
		l.Output = DefaultOutput
	}
	return l
}

// writerOrDiscard is where a stream goes.
func writerOrDiscard(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}
