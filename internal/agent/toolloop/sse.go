package toolloop

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// eventMax bounds one event of a stream: a tool's input of some megabytes may come in one piece.
const eventMax = 32 << 20

var errEventTooLong = errors.New("an event of the stream is too long")

// events reads server-sent events and hands the data of each to each, until the stream ends or each returns an
// error. What a stream that is cut holds of an unfinished event is not an event.
// https://html.spec.whatwg.org/multipage/server-sent-events.html
func events(r io.Reader, each func(data []byte) error) error {
	br := bufio.NewReaderSize(r, 64<<10)
	var data []byte
	for {
		line, err := readLine(br)
		if err != nil {
			return err // io.EOF too: how a stream has to end, its protocol says
		}
		switch {
		case len(line) == 0:
			if len(data) > 0 {
				if err := each(bytes.TrimSuffix(data, []byte("\n"))); err != nil {
					return err
				}
			}
			data = data[:0]
		case bytes.HasPrefix(line, []byte("data:")):
			if len(data)+len(line) > eventMax {
				return errEventTooLong
			}
			data = append(append(data, bytes.TrimPrefix(line[len("data:"):], []byte(" "))...), '\n')
		}
		// Every other field (event, id, retry) and comments say nothing that the data does not.
	}
}

// readLine returns a line without its end, and at the end of the stream what stands behind the last line feed. The
// slice is valid until the next call.
func readLine(br *bufio.Reader) ([]byte, error) {
	var long []byte
	for {
		part, err := br.ReadSlice('\n')
		switch {
		case err == nil && long == nil:
			return bytes.TrimRight(part, "\r\n"), nil
		case err == nil:
			return bytes.TrimRight(append(long, part...), "\r\n"), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return append(long, part...), err
		case len(long)+len(part) > eventMax:
			return nil, errEventTooLong
		}
		long = append(long, part...)
	}
}
