package git

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
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
