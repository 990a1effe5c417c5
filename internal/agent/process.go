package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/proctor-ci/proctor/internal/sandbox"
)

// job is one process of an agent, and how what it prints is read.
type job struct {
	name   string // of the agent, for messages
	runner Runner
	grace  time.Duration // after a result
	secret string        // masked in what is kept of stderr
	cmd    sandbox.Command
	out    interface {
		io.Writer
		close()
	}
	read func(end ending) Outcome
	hold *hold  // of a process that is started ahead; nil: none
	done func() // puts away what was made for the call; nil: nothing
}

// ending is how a process ended and what else was seen.
type ending struct {
	sandbox.Result
	stderr    string
	lateByUs  bool // we ended it after it had told its result
	cancelled bool // our caller's context ended it
}

// run starts the process, waits for it and all its descendants, and reads what it printed. A program
// that is not there is an outcome, not an error.
func (j job) run(ctx context.Context) (Outcome, error) {
	if j.done != nil {
		defer j.done()
	}
	inner, stop := context.WithCancel(ctx)
	defer stop()
	errs := &tail{max: stderrMax}
	watch := &quiet{out: j.out, grace: j.grace, stop: stop}
	j.cmd.Stdout, j.cmd.Stderr = watch, errs
	if j.hold != nil {
		j.hold.out = watch
		j.cmd.Stdout = j.hold
	}
	res, err := j.runner.Run(inner, j.cmd)
	late := watch.end()
	if err != nil {
		return j.notStarted(ctx, err)
	}
	j.out.close()
	end := ending{Result: res, stderr: errs.text(j.secret), cancelled: res.Cancelled && ctx.Err() != nil}
	end.lateByUs = late && res.Cancelled && !end.cancelled
	o := j.read(end)
	o.ExitCode, o.Signal, o.Duration, o.Survivors, o.Stderr = res.ExitCode, res.Signal, res.Duration, res.Survivors, end.stderr
	o.Excess = res.Excess()
	o.Detail, o.Final = printable(o.Detail, detailMax), cut(o.Final, finalMax)
	if o.Next == "" {
		o.Next = next(o.Kind, j.name)
	}
	return o, nil
}

func (j job) notStarted(ctx context.Context, err error) (Outcome, error) {
	var start *sandbox.StartError
	switch {
	case ctx.Err() != nil:
		return Outcome{Kind: Timeout, Detail: "it was stopped before it started"}, nil
	case errors.As(err, &start):
		return Outcome{Kind: RefusedStart, Detail: printable(start.Error(), detailMax), Next: next(RefusedStart, j.name)}, nil
	}
	return Outcome{}, fmt.Errorf("run agent %s: %w", j.name, err)
}

// judge turns a reading and an ending into an outcome. Structure comes first: a result that was told
// stands, whatever happened to the process after it.
func judge(s *stream, end ending) Outcome {
	r := s.reading()
	o := Outcome{
		Usage: r.usage, Session: r.session, Skipped: s.skipped, Denied: r.denied, Warnings: r.warnings,
		Final: r.result,
	}
	if s.skipped > 0 {
		o.Warnings = append(o.Warnings, "bad_line")
	}
	if len(r.denied) > 0 {
		o.Warnings = append(o.Warnings, "permission_denials")
	}
	if o.Final == "" && !(r.terminal && r.failed) {
		o.Final = r.last
	}
	switch {
	case r.terminal:
		o.Kind = OK
		if r.failed {
			o.Kind, o.Detail, o.Lasting, o.RetryIn, o.ResetAt = r.kind, r.detail, r.lasting, r.retryIn, r.resetAt
		}
		if end.lateByUs || end.TimedOut || end.cancelled {
			o.Warnings = append(o.Warnings, "killed_after_result")
		}
	default:
		o.Kind, o.Detail = unfinished(end, s.events == 0 && s.skipped == 0)
		o.Lasting = o.Kind == RefusedStart
	}
	return o
}

// unfinished says how a process ended that told no result. silent: it printed nothing at all.
func unfinished(end ending, silent bool) (Kind, string) {
	switch {
	case end.Exceeded != "":
		return AgentError, end.Excess()
	case end.TimedOut:
		return Timeout, fmt.Sprintf("it was ended after %s, before it had told a result", end.Duration.Round(time.Second))
	case end.Cancelled:
		return Timeout, "it was stopped before it had told a result"
	case end.Signal != "":
		return Incomplete, "it ended by a signal (" + end.Signal + ") without telling a result"
	case silent && end.ExitCode != 0 && end.stderr != "":
		return RefusedStart, lastOf(end.stderr)
	}
	return Incomplete, fmt.Sprintf("it ended with exit code %d without telling a result", end.ExitCode)
}

// lastOf is the end of a text, at the beginning of a line: the reason stands behind the warnings.
func lastOf(text string) string {
	text = strings.TrimSpace(text)
	if len(text) <= detailMax {
		return text
	}
	text = text[len(text)-detailMax:]
	return text[strings.IndexByte(text, '\n')+1:]
}

// terminalSoFar is what quiet asks a stream.
type terminalSoFar interface{ told() bool }

func (s *stream) told() bool { return s.reading().terminal }

// quiet ends a process that stays silent for the grace after its result. Reading goes on to the end,
// because a later result of the same process decides.
type quiet struct {
	out   io.Writer
	grace time.Duration
	stop  func()

	mu    sync.Mutex
	timer *time.Timer
	fired bool
	done  bool
}

func (q *quiet) Write(p []byte) (int, error) {
	n, err := q.out.Write(p)
	t, ok := q.out.(terminalSoFar)
	if !ok || !t.told() {
		return n, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.timer == nil {
		q.timer = time.AfterFunc(q.grace, q.fire)
	} else if !q.fired {
		q.timer.Reset(q.grace)
	}
	return n, err
}

func (q *quiet) fire() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.done {
		q.fired = true
		q.stop()
	}
}

// end stops watching and says whether the process was ended by the watch.
func (q *quiet) end() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.done = true
	if q.timer != nil {
		q.timer.Stop()
	}
	return q.fired
}
