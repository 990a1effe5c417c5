package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// scriptArg is the argument by which a process knows that it is to play a script.
const scriptArg = "proctor-script-agent"

// ScriptChild plays a script's steps when args say so, and reports whether they did and with which
// exit code to end. Every main (and TestMain) whose process runs the script agent calls it first:
//
//	if code, ok := agent.ScriptChild(os.Args, os.Stdin, os.Stdout); ok {
//		os.Exit(code)
//	}
func ScriptChild(args []string, stdin io.Reader, stdout io.Writer) (code int, ok bool) {
	if len(args) != 2 || args[1] != scriptArg {
		return 0, false
	}
	p := &player{out: json.NewEncoder(stdout)}
	p.out.SetEscapeHTML(false)
	if err := json.NewDecoder(stdin).Decode(&p.order); err != nil {
		p.end(AgentError, "the script's steps did not arrive: "+err.Error())
		return 1, true
	}
	return p.play(), true
}

// player is the child's side.
type player struct {
	order
	out   *json.Encoder
	usage struct{ input, output int64 }
	turns int
}

func (p *player) tell(s said) { _ = p.out.Encode(s) } // nobody to tell when stdout is gone

func (p *player) end(k Kind, text string) {
	p.tell(said{Type: "result", Kind: k, Text: text, Input: p.usage.input, Output: p.usage.output, Turns: p.turns})
}

// failure is a step that ends the script with an outcome of its own.
type failure struct {
	kind Kind
	text string
}

func (f *failure) Error() string { return f.text }

// exitNow is a step that ends the process without a result.
type exitNow int

func (e exitNow) Error() string { return "exit" }

func (p *player) play() int {
	p.tell(said{Type: "start"})
	for i, s := range p.Steps {
		err := p.step(s)
		var now exitNow
		var f *failure
		switch {
		case errors.As(err, &now):
			return int(now)
		case errors.As(err, &f):
			p.end(f.kind, f.text)
			return 1
		case err != nil:
			p.end(AgentError, fmt.Sprintf("step %d: %v", i+1, err))
			return 1
		}
	}
	p.end(OK, "")
	return 0
}

func (p *player) step(s Step) error {
	switch {
	case s.Say != nil:
		p.tell(said{Type: "message", Text: *s.Say})
	case s.Run != nil:
		p.run(*s.Run)
	case s.Spend != nil:
		return p.spend(*s.Spend)
	case s.Sleep != nil:
		d, err := time.ParseDuration(*s.Sleep)
		time.Sleep(d)
		return err
	case s.Exit != nil:
		return exitNow(*s.Exit)
	case s.Crash != nil:
		return crash(*s.Crash)
	case s.Hang != nil:
		hang(*s.Hang == "stubborn")
	default:
		return p.file(s)
	}
	return nil
}

func (p *player) file(s Step) error {
	tool := func(name, path string) { p.tell(said{Type: "tool", Tool: name, Text: path}) }
	switch {
	case s.Write != nil:
		tool("write", s.Write.Path)
		return writeFile(*s.Write, os.O_TRUNC)
	case s.Append != nil:
		tool("append", s.Append.Path)
		return writeFile(*s.Append, os.O_APPEND)
	case s.Replace != nil:
		tool("replace", s.Replace.Path)
		return replaceText(*s.Replace)
	case s.Delete != nil:
		tool("delete", *s.Delete)
		if _, err := os.Lstat(*s.Delete); err != nil {
			return err
		}
		return os.RemoveAll(*s.Delete)
	case s.Symlink != nil:
		tool("symlink", s.Symlink.Path)
		if err := os.RemoveAll(s.Symlink.Path); err != nil {
			return err
		}
		return withDir(s.Symlink.Path, func() error { return os.Symlink(s.Symlink.Target, s.Symlink.Path) })
	case s.Rename != nil:
		tool("rename", s.Rename.From)
		return withDir(s.Rename.To, func() error { return os.Rename(s.Rename.From, s.Rename.To) })
	}
	return errors.New("a step without an action")
}

func withDir(path string, do func() error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return do()
}

func writeFile(w WriteStep, how int) error {
	mode, err := w.mode()
	if err != nil {
		return err
	}
	return withDir(w.Path, func() error {
		f, err := os.OpenFile(w.Path, os.O_CREATE|os.O_WRONLY|how, mode)
		if err != nil {
			return err
		}
		_, err = io.WriteString(f, w.Content)
		if w.Mode != "" {
			err = errors.Join(err, f.Chmod(mode)) // the file may have been there, with another mode
		}
		return errors.Join(err, f.Close())
	})
}

func replaceText(r ReplaceStep) error {
	b, err := os.ReadFile(r.Path)
	if err != nil {
		return err
	}
	if n := bytes.Count(b, []byte(r.Old)); n != 1 {
		return fmt.Errorf("replace in %s: the old text occurs %d times, want once", r.Path, n)
	}
	info, err := os.Stat(r.Path)
	if err != nil {
		return err
	}
	return os.WriteFile(r.Path, bytes.Replace(b, []byte(r.Old), []byte(r.New), 1), info.Mode().Perm())
}

// run plays a line of shell. A background process that it leaves is left: ending it is what the
// confinement is tried with.
func (p *player) run(line string) {
	out := &tail{max: 2 << 10}
	cmd := exec.Command("sh", "-c", line)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.WaitDelay = 100 * time.Millisecond // such a process may hold the pipe
	err := cmd.Run()
	text := fmt.Sprintf("%s: exit %d", line, cmd.ProcessState.ExitCode())
	if err != nil && cmd.ProcessState == nil {
		text = line + ": " + err.Error()
	}
	if words := strings.TrimSpace(out.text("")); words != "" {
		text += ": " + words
	}
	p.tell(said{Type: "tool", Tool: "run", Text: text})
}

// spendPrompt is understood by the demo's model server, which reports the tokens that it names.
const spendPrompt = "proctor script: spend input=%d output=%d"

func (p *player) spend(s SpendStep) error {
	if p.Gateway.BaseURL == "" {
		return errors.New("spend: this run has no model gateway")
	}
	model := s.Model
	for _, m := range []string{p.Model, "claude-haiku-4-5"} {
		if model == "" {
			model = m
		}
	}
	// The request has the size that its tokens would have: the meter does not believe more tokens than
	// a request can hold.
	body, err := json.Marshal(map[string]any{
		"model": model, "max_tokens": s.Output,
		"messages": []map[string]string{
			{"role": "user", "content": strings.Repeat("word ", int(s.Input)/2)},
			{"role": "user", "content": fmt.Sprintf(spendPrompt, s.Input, s.Output)},
		},
	})
	if err != nil {
		return err
	}
	req, err := http.NewRequest(http.MethodPost, p.Gateway.BaseURL+"/v1/messages", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	req.Header.Set("X-Api-Key", p.Gateway.Nonce)
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return fmt.Errorf("spend: %w", err)
	}
	defer resp.Body.Close()
	return p.bill(resp)
}

func (p *player) bill(resp *http.Response) error {
	var answer struct {
		Usage struct {
			Input  int64 `json:"input_tokens"`
			Output int64 `json:"output_tokens"`
		} `json:"usage"`
		Error struct{ Message string } `json:"error"`
	}
	_ = json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&answer) // the status decides
	if resp.StatusCode != http.StatusOK {
		v, ok := byStatus(int64(resp.StatusCode), false, answer.Error.Message)
		if !ok {
			v.kind = AgentError
		}
		return &failure{v.kind, fmt.Sprintf("model call: status %d: %s", resp.StatusCode, answer.Error.Message)}
	}
	p.turns++
	p.usage.input += answer.Usage.Input
	p.usage.output += answer.Usage.Output
	p.tell(said{Type: "tool", Tool: "spend", Text: fmt.Sprintf("%d input, %d output tokens", answer.Usage.Input, answer.Usage.Output)})
	return nil
}

func signalNumber(name string) (syscall.Signal, bool) {
	s, ok := map[string]syscall.Signal{
		"KILL": syscall.SIGKILL, "SEGV": syscall.SIGSEGV, "ABRT": syscall.SIGABRT, "TERM": syscall.SIGTERM,
		"INT": syscall.SIGINT, "BUS": syscall.SIGBUS, "QUIT": syscall.SIGQUIT, "HUP": syscall.SIGHUP,
	}[strings.TrimPrefix(strings.ToUpper(name), "SIG")]
	return s, ok
}

// crash lets a shell take this process's place and kill itself: the Go runtime would catch most
// signals and turn them into an exit code.
func crash(name string) error {
	n, ok := signalNumber(name)
	if !ok {
		return fmt.Errorf("crash: no signal %q", name)
	}
	return syscall.Exec("/bin/sh", []string{"sh", "-c", fmt.Sprintf("kill -%d $$", int(n))}, nil)
}

func hang(stubborn bool) {
	if stubborn {
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	}
	for {
		time.Sleep(time.Hour) // not select{}: the runtime would call that a deadlock
	}
}
