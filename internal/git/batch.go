package git

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
)

// batch is one long-lived "cat-file --batch". Objects that appear later are found without a restart.
type batch struct {
	g    *Git
	call call
	mu   sync.Mutex
	proc *batchProcess
}

type batchProcess struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	errs *tail
}

func (b *batch) start() (*batchProcess, error) {
	// The process outlives any one call's context; close ends it.
	cmd := b.g.command(context.Background(), b.call)
	p := &batchProcess{cmd: cmd, errs: &tail{limit: 8 << 10}}
	cmd.Stderr = p.errs
	var err error
	if p.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReaderSize(out, 64<<10)
	b.g.started.Add(1)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("git %s: %w", b.call.args[0], err)
	}
	return p, nil
}

func (p *batchProcess) stop() error {
	p.in.Close()
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	return p.cmd.Wait()
}

func (b *batch) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.proc != nil {
		_ = b.proc.stop()
		b.proc = nil
	}
}

// ask sends one request and hands the answer's body to fn. Whatever fn leaves unread is skipped; after
// a failed or cancelled request the process is replaced, since its stream is out of step.
func (b *batch) ask(ctx context.Context, id ID, fn func(kind string, size int64, body io.Reader) error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if b.proc == nil {
		proc, err := b.start()
		if err != nil {
			return err
		}
		b.proc = proc
	}
	proc := b.proc
	stop := context.AfterFunc(ctx, func() { _ = syscall.Kill(-proc.cmd.Process.Pid, syscall.SIGKILL) })
	defer stop()
	_, err := io.WriteString(proc.in, string(id)+"\n")
	if err == nil {
		err = proc.answer(id, fn)
	}
	var missing *MissingObjectError
	var callback callbackError
	switch {
	case err == nil || errors.As(err, &missing):
	case errors.As(err, &callback):
		return callback.error
	default:
		_ = proc.stop()
		b.proc = nil
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("read object %s: %w: %s", id, err, strings.TrimSpace(proc.errs.String()))
	}
	return err
}

// callbackError tells fn's own error from a broken stream.
type callbackError struct{ error }

func (p *batchProcess) answer(id ID, fn func(kind string, size int64, body io.Reader) error) error {
	line, err := p.out.ReadString('\n')
	if err != nil {
		return err
	}
	words := strings.Fields(line)
	if len(words) == 2 && words[1] == "missing" {
		return &MissingObjectError{ID: id}
	}
	if len(words) != 3 || words[0] != string(id) {
		return fmt.Errorf("unexpected answer %q", strings.TrimSpace(line))
	}
	kind, size, err := parseHeader(words[1] + " " + words[2])
	if err != nil {
		return err
	}
	body := io.LimitReader(p.out, size)
	failed := fn(kind, size, body)
	if _, err := io.Copy(io.Discard, body); err != nil {
		return err
	}
	if end, err := p.out.ReadByte(); err != nil || end != '\n' {
		return fmt.Errorf("object %s: the answer does not end where it should", id)
	}
	if failed != nil {
		return callbackError{failed}
	}
	return nil
}

// size asks a "cat-file --batch-check", whose answers have no body.
func (b *batch) size(ctx context.Context, id ID, explain func(error) error) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.proc == nil {
		proc, err := b.start()
		if err != nil {
			return 0, err
		}
		b.proc = proc
	}
	proc := b.proc
	stop := context.AfterFunc(ctx, func() { _ = syscall.Kill(-proc.cmd.Process.Pid, syscall.SIGKILL) })
	defer stop()
	_, err := io.WriteString(proc.in, string(id)+"\n")
	var line string
	if err == nil {
		line, err = proc.out.ReadString('\n')
	}
	if err != nil {
		_ = proc.stop()
		b.proc = nil
		return 0, fmt.Errorf("size of object %s: %w", id, err)
	}
	words := strings.Fields(line)
	if len(words) == 2 && words[1] == "missing" {
		return 0, explain(&MissingObjectError{ID: id})
	}
	if len(words) != 3 || words[1] != "blob" {
		return 0, fmt.Errorf("size of object %s: it is no file", id)
	}
	_, n, err := parseHeader("blob " + words[2])
	return n, err
}
