package git

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
)

// MissingObjectError says that an object which the run needs is not in the checkout.
type MissingObjectError struct {
	ID   ID
	Next string // what brings it
}

func (e *MissingObjectError) Error() string {
	return fmt.Sprintf("object %s is missing from the checkout: %s", e.ID, e.Next)
}

// Is makes a missing object an fs.ErrNotExist.
func (e *MissingObjectError) Is(target error) bool { return target == fs.ErrNotExist }

// TooLargeError says that an object is larger than the caller would read. It is never cut instead.
type TooLargeError struct {
	What      string
	Size, Max int64
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s has %d bytes, more than the %d that are read", e.What, e.Size, e.Max)
}

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

// bulkFrom is the number of objects from which a process of its own, with buffered answers, pays off.
const bulkFrom = 256

// readMany hands the blobs to fn in the order of ids, in one pipelined pass.
func (s *Store) readMany(ctx context.Context, ids []ID, fn func(i int, size int64, body io.Reader) error) error {
	if len(ids) < bulkFrom {
		for i, id := range ids {
			err := s.read(ctx, id, "blob", func(size int64, body io.Reader) error { return fn(i, size, body) })
			if err != nil {
				return err
			}
		}
		return nil
	}
	b := &batch{g: s.git, call: call{args: []string{"cat-file", "--batch", "--buffer"}, dir: s.dir, gitDir: s.dir}}
	proc, err := b.start()
	if err != nil {
		return err
	}
	defer func() { _ = proc.stop() }()
	stop := context.AfterFunc(ctx, func() { _ = syscall.Kill(-proc.cmd.Process.Pid, syscall.SIGKILL) })
	defer stop()
	go func() {
		w := bufio.NewWriter(proc.in)
		for _, id := range ids {
			_, _ = w.WriteString(string(id))
			_ = w.WriteByte('\n')
		}
		_ = w.Flush() // a broken pipe shows as a short answer
		_ = proc.in.Close()
	}()
	for i, id := range ids {
		err := proc.answer(id, func(kind string, size int64, body io.Reader) error {
			if kind != "blob" {
				return fmt.Errorf("object %s is a %s where a file was expected", id, kind)
			}
			return fn(i, size, body)
		})
		if err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return s.explain(err)
		}
	}
	return nil
}

// read hands one object of the wanted kind to fn: our own loose objects natively, all else through
// the long-lived process.
func (s *Store) read(ctx context.Context, id ID, want string, fn func(size int64, body io.Reader) error) error {
	check := func(kind string, size int64, body io.Reader) error {
		if kind != want {
			return fmt.Errorf("object %s is a %s where a %s was expected", id, kind, want)
		}
		return fn(size, body)
	}
	if _, err := s.fmt.objectID(string(id)); err != nil {
		return err
	}
	kind, size, body, err := s.loose.open(id)
	if err == nil {
		defer body.Close()
		return check(kind, size, body)
	}
	if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return s.explain(s.batch.ask(ctx, id, check))
}

// bytes reads a whole object of at most max bytes (0: no bound).
func (s *Store) bytes(ctx context.Context, id ID, kind string, max int64) ([]byte, error) {
	var content []byte
	err := s.read(ctx, id, kind, func(size int64, body io.Reader) error {
		if max > 0 && size > max {
			return &TooLargeError{What: kind + " " + string(id), Size: size, Max: max}
		}
		content = make([]byte, size)
		_, err := io.ReadFull(body, content)
		return err
	})
	return content, err
}

// ReadBlob reads a blob. More than max bytes (0: no bound) is a *TooLargeError, never a cut.
func (s *Store) ReadBlob(ctx context.Context, id ID, max int64) ([]byte, error) {
	return s.bytes(ctx, id, "blob", max)
}

// Size is a blob's length in bytes.
func (s *Store) Size(ctx context.Context, id ID) (int64, error) {
	var n int64
	if err := s.checkID(id); err != nil {
		return 0, err
	}
	kind, n, body, err := s.loose.open(id)
	if err == nil {
		body.Close()
		if kind != "blob" {
			return 0, fmt.Errorf("object %s is a %s where a file was expected", id, kind)
		}
		return n, nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return 0, err
	}
	return s.sizes.size(ctx, id, s.explain)
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
