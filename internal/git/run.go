package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Options of New. The zero value is usable.
type Options struct {
	Log *slog.Logger     // nil: nothing is logged
	Now func() time.Time // nil: time.Now
	// Path is the search list in which git is looked up once (the caller's PATH), or the file of git
	// itself. Empty: the system's usual directories.
	Path string
	// Network holds "NAME=value" pairs that git's HTTP client may see. Only HTTP_PROXY, HTTPS_PROXY,
	// ALL_PROXY, NO_PROXY, SSL_CERT_FILE, SSL_CERT_DIR and GIT_SSL_CAINFO (any case) pass; others are an error.
	Network []string
	// Name and Email are the identity of every commit. Empty: Proctor <proctor@noreply.invalid>.
	Name, Email string
}

// Git starts git processes. It is safe for concurrent use.
type Git struct {
	log         *slog.Logger
	now         func() time.Time
	file        string
	network     []string
	name, email string
	started     atomic.Int64
}

const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// New looks up git once; a PATH that changes later has no effect.
func New(opts Options) (*Git, error) {
	g := &Git{log: opts.Log, now: opts.Now, name: opts.Name, email: opts.Email}
	if g.log == nil {
		g.log = slog.New(slog.DiscardHandler)
	}
	if g.now == nil {
		g.now = time.Now
	}
	if g.name == "" {
		g.name = "Proctor"
	}
	if g.email == "" {
		g.email = "proctor@noreply.invalid"
	}
	if strings.ContainsAny(g.name+g.email, "<>\n\x00") {
		return nil, fmt.Errorf("identity %q: name and address may hold neither < > nor a line break", g.name+" <"+g.email+">")
	}
	for _, pair := range opts.Network {
		if !networkVariable(pair) {
			name, _, _ := strings.Cut(pair, "=")
			return nil, fmt.Errorf("environment %q may not reach git: only proxy and certificate variables do", name)
		}
		g.network = append(g.network, pair)
	}
	var err error
	g.file, err = find(opts.Path)
	return g, err
}

// Started is the number of git processes started so far: what the budget of three per tick is counted with.
func (g *Git) Started() int64 { return g.started.Load() }

// Version is what "git version" prints, without the words before the number.
func (g *Git) Version(ctx context.Context) (string, error) {
	out, err := g.output(ctx, call{args: []string{"version"}, dir: "/"})
	return strings.TrimPrefix(strings.TrimSpace(string(out)), "git version "), err
}

func find(list string) (string, error) {
	if info, err := os.Stat(list); err == nil && info.Mode().IsRegular() && filepath.IsAbs(list) {
		return list, nil
	}
	if list == "" {
		list = systemPath
	}
	for _, dir := range filepath.SplitList(list) {
		// A relative entry would make the program depend on the directory it is started in.
		if !filepath.IsAbs(dir) {
			continue
		}
		file := filepath.Join(dir, "git")
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", fmt.Errorf("find git in %q: no executable file: install git (Debian: apt-get install git)", list)
}

func networkVariable(pair string) bool {
	name, _, ok := strings.Cut(pair, "=")
	if !ok || strings.ContainsRune(pair, 0) {
		return false
	}
	switch strings.ToUpper(name) {
	case "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO":
		return true
	}
	return false
}

// call is one git process. Nothing of the harness's environment reaches it.
type call struct {
	args    []string
	dir     string // working directory: always one of ours
	gitDir  string // GIT_DIR; empty for calls that need none
	objects string // GIT_OBJECT_DIRECTORY; empty: GIT_DIR's own
	config  [][2]string
	network bool     // may see the proxy and certificate variables
	scheme  string   // the one transport it may use; empty: none
	secrets []string // never shown in an error
	stdin   io.Reader
	stdout  io.Writer
}

// environment is built from nothing: no HOME, no system or user configuration, no prompt, no replace
// objects, no GIT_* of ours. Values go through GIT_CONFIG_*, so that a token is on no command line.
func (g *Git) environment(c call) []string {
	env := []string{
		"PATH=" + filepath.Dir(g.file) + ":" + systemPath, "LC_ALL=C", "TZ=UTC",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=/bin/false", "SSH_ASKPASS=/bin/false", "GIT_SSH_COMMAND=/bin/false",
		"GIT_OPTIONAL_LOCKS=0", "GIT_NO_REPLACE_OBJECTS=1", "GIT_NO_LAZY_FETCH=1", "GIT_LITERAL_PATHSPECS=1",
		"GIT_PAGER=cat", "GIT_EDITOR=/bin/false", "GIT_PROTOCOL_FROM_USER=0", "GIT_CEILING_DIRECTORIES=/",
		"GIT_ALLOW_PROTOCOL=" + c.scheme,
		"GIT_AUTHOR_NAME=" + g.name, "GIT_AUTHOR_EMAIL=" + g.email,
		"GIT_COMMITTER_NAME=" + g.name, "GIT_COMMITTER_EMAIL=" + g.email,
	}
	if c.gitDir != "" {
		env = append(env, "GIT_DIR="+c.gitDir)
	}
	if c.objects != "" {
		env = append(env, "GIT_OBJECT_DIRECTORY="+c.objects)
	}
	if c.network {
		env = append(env, g.network...)
	}
	config := append([][2]string{
		{"core.hooksPath", "/dev/null"}, {"core.fsmonitor", "false"}, {"credential.helper", ""},
		{"core.attributesFile", "/dev/null"}, {"core.excludesFile", "/dev/null"}, {"gc.auto", "0"}, {"maintenance.auto", "false"},
	}, c.config...)
	env = append(env, "GIT_CONFIG_COUNT="+strconv.Itoa(len(config)))
	for i, kv := range config {
		n := strconv.Itoa(i)
		env = append(env, "GIT_CONFIG_KEY_"+n+"="+kv[0], "GIT_CONFIG_VALUE_"+n+"="+kv[1])
	}
	return env
}

// command prepares a process in a group of its own, which a cancelled context kills whole.
func (g *Git) command(ctx context.Context, c call) *exec.Cmd {
	cmd := exec.CommandContext(ctx, g.file, c.args...)
	cmd.Env = g.environment(c)
	cmd.Dir = c.dir
	cmd.Stdin = c.stdin
	cmd.Stdout = c.stdout
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// run waits for the process. A failure is an *ExitError that holds the redacted tail of stderr.
func (g *Git) run(ctx context.Context, c call) error {
	errs := &tail{limit: 8 << 10}
	cmd := g.command(ctx, c)
	cmd.Stderr = errs
	began := g.now()
	g.started.Add(1)
	err := cmd.Run()
	g.log.LogAttrs(ctx, slog.LevelDebug, "git", slog.String("command", c.args[0]),
		slog.Int("exit", exitCode(cmd)), slog.Duration("duration", g.now().Sub(began)), slog.Int64("stderr_bytes", errs.total))
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("git %s: %w", c.args[0], context.Cause(ctx))
	}
	return &ExitError{Command: c.args[0], Code: exitCode(cmd), Stderr: redact(errs.String(), c.secrets), err: err}
}

func (g *Git) output(ctx context.Context, c call) ([]byte, error) {
	var out bytes.Buffer
	c.stdout = &out
	err := g.run(ctx, c)
	return out.Bytes(), err
}

func exitCode(cmd *exec.Cmd) int {
	if cmd.ProcessState == nil {
		return -1
	}
	return cmd.ProcessState.ExitCode()
}

// ExitError is a git process that failed. Stderr is its redacted tail, at most 8 KiB.
type ExitError struct {
	Command string
	Code    int // -1: it could not be started, or a signal ended it
	Stderr  string
	err     error
}

func (e *ExitError) Error() string {
	said := strings.TrimSpace(e.Stderr)
	if said == "" && e.err != nil {
		said = e.err.Error()
	}
	return fmt.Sprintf("git %s: exit %d: %s", e.Command, e.Code, said)
}

func (e *ExitError) Unwrap() error {
	var exit *exec.ExitError
	if errors.As(e.err, &exit) {
		return nil
	}
	return e.err
}

// tail keeps the last bytes written to it.
type tail struct {
	limit int
	buf   []byte
	total int64
}

func (t *tail) Write(p []byte) (int, error) {
	t.total += int64(len(p))
	if len(p) > t.limit {
		t.buf = append(t.buf[:0], p[len(p)-t.limit:]...)
		return len(p), nil
	}
	if over := len(t.buf) + len(p) - t.limit; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	t.buf = append(t.buf, p...)
	return len(p), nil
}

// String begins at a line's start: half a secret at the cut would escape redaction.
func (t *tail) String() string {
	text := string(t.buf)
	if t.total > int64(len(t.buf)) {
		_, text, _ = strings.Cut(text, "\n")
	}
	return text
}
