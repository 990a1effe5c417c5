package gate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/proctor-ci/proctor/internal/sandbox"
)

// DefaultTimeout of a gate whose Spec has none.
const DefaultTimeout = 10 * time.Minute

// Starter starts a process tree and waits until nothing of it is left; *sandbox.Box is one.
type Starter interface {
	Run(ctx context.Context, c sandbox.Command) (sandbox.Result, error)
}

// Runner runs gates. The zero value but for Box is usable.
type Runner struct {
	Box          Starter
	Limits       sandbox.Limits
	ConnectPorts []uint16      // TCP ports gates may connect to, e.g. the egress proxy; none by default
	Grace        time.Duration // from SIGTERM to SIGKILL; 0: the sandbox's default
}

// Place is where a gate runs. All directories exist and are absolute.
type Place struct {
	Dir  string // the checkout: working directory, writable
	Home string // HOME, outside Dir, writable
	Tmp  string // TMPDIR, outside Dir, writable
	// Sealed: code that the agent wrote runs beside held-out files. No output is kept, and no word of it
	// gets into Detail.
	Sealed     bool
	ReadOnly   []string // further directories, e.g. toolchains
	Env        []string // added to sandbox.BaseEnv, later entries win; never a secret
	KeepOutput bool     // Result.Output is filled in, unless Sealed
}

// Run runs one gate once. Whatever the command does is a Result; an error means that the gate could not
// be asked at all: the confinement that was demanded is missing, processes could not be killed, the
// place is wrong.
func (r Runner) Run(ctx context.Context, s Spec, p Place) (Result, error) {
	if len(s.Argv) == 0 {
		return Result{}, fmt.Errorf("gate %s: its command is empty: write the command whose exit code decides", title(s))
	}
	if p.Dir == "" || p.Home == "" || p.Tmp == "" {
		return Result{}, fmt.Errorf("gate %s: no place to run: working directory, HOME and TMPDIR are needed", title(s))
	}
	if err := checkEnv(p.Env); err != nil {
		return Result{}, fmt.Errorf("gate %s: %w", title(s), err)
	}
	timeout := s.Timeout
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	out := newCapture(p.KeepOutput && !p.Sealed)
	res, err := r.Box.Run(ctx, sandbox.Command{
		Argv: s.Argv, Env: environment(p), Dir: p.Dir, Stdout: out, Stderr: out, Timeout: timeout, Grace: r.Grace,
		Policy: sandbox.Policy{
			ReadWrite: []string{p.Dir, p.Home, p.Tmp}, ReadOnly: p.ReadOnly,
			ConnectPorts: r.ConnectPorts, Limits: r.Limits,
		},
	})
	result := Result{
		Class: s.Class, Name: s.Name, Argv: s.Argv, Shown: s.Shown, ExitCode: res.ExitCode, Signal: res.Signal, Duration: res.Duration,
		Digest: out.digest(), Bytes: out.bytes, Output: out.kept(), Sealed: p.Sealed, Survivors: res.Survivors,
	}
	if err != nil {
		return notStarted(ctx, result, s, err)
	}
	result.Status, result.Detail = judge(res, timeout)
	if !p.Sealed {
		result.Excess = res.Excess()
	}
	if result.Status == Broken && !p.Sealed {
		if line := lastLine(result.Output); line != "" {
			result.Detail += ": " + line
		}
	}
	return result, nil
}

// notStarted tells a command that could not be started, which is a broken gate, from a harness that
// could not ask.
func notStarted(ctx context.Context, result Result, s Spec, err error) (Result, error) {
	var start *sandbox.StartError
	switch {
	case errors.As(err, &start) && errors.Is(err, sandbox.ErrProgramMissing):
		result.Status, result.ExitCode, result.Detail = Broken, 127, start.Error()
	case errors.As(err, &start) && errors.Is(err, sandbox.ErrProgramDenied):
		result.Status, result.ExitCode, result.Detail = Broken, 126, start.Error()
	case ctx.Err() != nil:
		result.Status, result.ExitCode, result.Detail = Stopped, -1, "the run was cancelled"
	default:
		return Result{}, fmt.Errorf("run gate %s: %w", title(s), err)
	}
	return result, nil
}

// judge turns how a process tree ended into a status. Zero is the only way to pass, and only when
// nothing else ended the tree.
func judge(res sandbox.Result, timeout time.Duration) (Status, string) {
	switch {
	case res.Cancelled:
		return Stopped, "the run was cancelled"
	case res.TimedOut:
		return TimedOut, fmt.Sprintf("not finished after %s", timeout)
	case res.Exceeded != "":
		return Failed, res.Excess()
	case res.Signal != "":
		return Failed, "ended by signal: " + res.Signal
	case res.ExitCode == 126:
		return Broken, "exit 126: a command may not be executed"
	case res.ExitCode == 127:
		return Broken, "exit 127: a command does not exist"
	case res.ExitCode != 0:
		return Failed, ""
	}
	return Passed, ""
}

func environment(p Place) []string {
	env := sandbox.BaseEnv(p.Home, p.Tmp)
	for _, kv := range p.Env {
		name, _, _ := strings.Cut(kv, "=")
		kept := env[:0:0]
		for _, old := range env {
			if !strings.HasPrefix(old, name+"=") {
				kept = append(kept, old)
			}
		}
		env = append(kept, kv)
	}
	return env
}

// checkEnv refuses variables by which a file of the repository would get into every program of a gate,
// and those that hold a forge's or model's credentials, whoever put them there.
func checkEnv(env []string) error {
	for _, kv := range env {
		name, _, ok := strings.Cut(kv, "=")
		switch {
		case !ok || name == "":
			return fmt.Errorf("%q is no variable: write NAME=value", kv)
		case injects(name):
			return fmt.Errorf("variable %s makes programs load further code and is not passed to gates: set it inside the command that needs it", name)
		case credential(name):
			return fmt.Errorf("variable %s may hold a credential and is not passed to gates: they run code that the agent wrote", name)
		}
	}
	return nil
}

func injects(name string) bool {
	switch name {
	case "BASH_ENV", "ENV", "BASHOPTS", "SHELLOPTS", "PS4", "PROMPT_COMMAND", "IFS", "CDPATH", "GLOBIGNORE",
		"NODE_OPTIONS", "NODE_PATH", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "PYTHONINSPECT",
		"PERL5OPT", "PERL5LIB", "PERLLIB", "RUBYOPT", "RUBYLIB", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS",
		"GCONV_PATH", "MAKEFLAGS", "MAKEFILES", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_EXTERNAL_DIFF", "GIT_ASKPASS", "GIT_PAGER", "GIT_EXEC_PATH":
		return true
	}
	for _, prefix := range []string{"LD_", "DYLD_", "BASH_FUNC_", "GIT_CONFIG_"} {
		if strings.HasPrefix(name, prefix) && name != "GIT_CONFIG_NOSYSTEM" {
			return true
		}
	}
	return false
}

func credential(name string) bool {
	switch name {
	case "GITHUB_TOKEN", "GH_TOKEN", "GH_ENTERPRISE_TOKEN", "GITLAB_TOKEN", "CI_JOB_TOKEN", "CI_JOB_JWT",
		"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "OPENAI_API_KEY", "CODEX_API_KEY",
		"GEMINI_API_KEY", "GOOGLE_API_KEY", "COPILOT_GITHUB_TOKEN",
		"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "SSH_AUTH_SOCK", "DOCKER_HOST":
		return true
	}
	return strings.HasPrefix(name, "ACTIONS_") || strings.HasPrefix(name, "INPUT_") || strings.HasPrefix(name, "PROCTOR_")
}

func title(s Spec) string {
	if s.Name == "" {
		return string(s.Class)
	}
	return s.Name
}

// lastLine is the last line with text, made printable, for one line of detail.
func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimRight(clean(out), "\n "), "\n")
	line := strings.TrimSpace(lines[len(lines)-1])
	const most = 200
	if len(line) > most {
		line = strings.ToValidUTF8(line[:most], "") + "…"
	}
	return line
}
