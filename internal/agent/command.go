package agent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/proctor-ci/proctor/internal/sandbox"
)

// command is any program that reads a prompt on stdin and changes files; its exit code decides.
type command struct {
	o Options
}

func newCommand(o Options) (Agent, error) {
	if len(o.Command) == 0 || o.Command[0] == "" {
		return nil, errors.New("agent command: no command: give one as agent.args, for example [my-agent, --yes]")
	}
	return &command{o: o}, nil
}

func (*command) Name() string { return "command" }

// Check looks for the program; a name with a slash is relative to the task's directory and is looked
// for when it is started.
func (c *command) Check(context.Context) error {
	name := c.o.Command[0]
	if strings.Contains(name, "/") && !filepath.IsAbs(name) {
		return nil
	}
	if _, err := c.program(); err != nil {
		return fmt.Errorf("agent command: %w; install it in the job before this step, or name it by its path", err)
	}
	return nil
}

func (c *command) program() (string, error) {
	name := c.o.Command[0]
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			return name, nil
		}
		return name, errors.Join(executable(name), c.o.reachable(name))
	}
	o := c.o
	o.Program = ""
	return o.find(name)
}

// Run starts the program. Its stdout is shown line by line and its end kept as the last words.
func (c *command) Run(ctx context.Context, t Task, on func(Event)) (Outcome, error) {
	program, err := c.program()
	if err != nil {
		return Outcome{Kind: RefusedStart, Detail: printable(c.Check(ctx).Error(), detailMax), Next: next(RefusedStart, "the command"), Lasting: true}, nil
	}
	var more []string
	if t.Gateway.BaseURL != "" {
		more = []string{"ANTHROPIC_BASE_URL=" + t.Gateway.BaseURL, "ANTHROPIC_API_KEY=" + t.Gateway.Nonce}
	}
	var readOnly []string
	if filepath.IsAbs(program) {
		readOnly = programDirs(program)
	}
	out := newPlain(on)
	return job{
		name: c.Name(), runner: c.o.Runner, grace: c.o.ResultGrace, secret: t.Gateway.Nonce, out: out,
		cmd: sandbox.Command{
			Argv: append(append([]string{program}, c.o.Command[1:]...), t.Args...), Env: c.o.env(t, more...), Dir: t.Dir,
			Stdin: strings.NewReader(t.Prompt), Timeout: t.Timeout, Grace: t.Grace, Policy: c.o.policy(t, readOnly...),
		},
		read: func(end ending) Outcome { return out.outcome(end) },
	}.run(ctx)
}

// plain reads a program that prints for people.
type plain struct {
	on    func(Event)
	lines lines
	end   tail
}

func newPlain(on func(Event)) *plain {
	p := &plain{on: on, end: tail{max: finalMax}}
	p.lines = lines{each: p.line, long: func() {}}
	return p
}

func (p *plain) Write(b []byte) (int, error) {
	_, _ = p.end.Write(b) // never fails
	return p.lines.Write(b)
}

func (p *plain) close() { p.lines.end() }

func (p *plain) line(b []byte) {
	if text := printable(string(b[:min(len(b), 4*eventMax)]), eventMax); text != "" && p.on != nil {
		p.on(Event{Kind: "message", Text: text})
	}
}

func (p *plain) outcome(end ending) Outcome {
	o := Outcome{Kind: OK, Final: p.end.text("")}
	switch {
	case end.Exceeded != "" || end.TimedOut || end.Cancelled || end.Signal != "":
		o.Kind, o.Detail = unfinished(end, false)
	case end.ExitCode != 0:
		o.Kind = AgentError
		o.Detail = fmt.Sprintf("it ended with exit code %d", end.ExitCode)
		if last := lastLine(end.stderr); last != "" {
			o.Detail += ": " + last
		}
	}
	return o
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}
