package wire

import (
	"fmt"
	"io"
)

// maxTailed is how much is read at most to find an end; a longer text's end is not known.
const maxTailed = 64 << 20

// Tail reads all of r and keeps the last n bytes.
func Tail(r io.Reader, n int) ([]byte, error) {
	r = io.LimitReader(r, maxTailed)
	buf := make([]byte, 0, 3*n)
	for {
		if len(buf) == cap(buf) {
			buf = append(buf[:0], buf[len(buf)-n:]...)
		}
		m, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+m]
		switch {
		case err == io.EOF:
			return buf[max(len(buf)-n, 0):], nil
		case err != nil:
			return nil, fmt.Errorf("read a log: %w", err)
		}
	}
}
