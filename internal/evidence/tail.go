package evidence

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
)

// maxLine bounds one line of an event log; a longer one is skipped and told.
const maxLine = 1 << 20

// Tail yields the events of a run's directory or event file as they are written, and ends after
// RunEnded. At the end of what is there it calls wait, which returns when it is time to look again;
// an error of wait ends the sequence (io.EOF: silently, so a wait that returns io.EOF at once reads
// what is there). A line that is not complete yet is waited for. A broken line yields an error and
// the sequence goes on.
func Tail(ctx context.Context, path string, wait func(context.Context) error) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if st, err := os.Stat(path); err == nil && st.IsDir() {
			path = filepath.Join(path, EventsFile)
		}
		f, err := os.Open(path)
		if err != nil {
			yield(Event{}, fmt.Errorf("read event log: %w", err))
			return
		}
		defer f.Close()
		r := bufio.NewReader(f)
		var line []byte
		for {
			part, err := r.ReadSlice('\n')
			if line = append(line, part...); len(line) > maxLine {
				line = append(line[:0], '!') // stays broken until its end
			}
			switch {
			case errors.Is(err, bufio.ErrBufferFull):
				continue
			case errors.Is(err, io.EOF):
				if err = wait(ctx); err == nil {
					continue
				}
				if !errors.Is(err, io.EOF) {
					yield(Event{}, err)
				}
				return
			case err != nil:
				yield(Event{}, fmt.Errorf("read event log %s: %w", path, err))
				return
			}
			ev, err := DecodeEvent(bytes.TrimSpace(line))
			line = line[:0]
			if !yield(ev, err) || err == nil && ev.Kind == RunEnded {
				return
			}
		}
	}
}
