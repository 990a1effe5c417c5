package agent

import "bytes"

// lineMax caps the memory of one line of a stream. A longer line is skipped to its end and counted.
const lineMax = 16 << 20

// lines splits a stream at line feeds, and at nothing else: U+2028, U+0085 and lone carriage returns
// stand inside JSON strings. It is written by one goroutine.
type lines struct {
	each     func(line []byte) // without its line feed; not kept by the callee
	long     func()            // a line that was too long
	buf      []byte
	skipping bool
}

func (l *lines) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			l.keep(p)
			return n, nil
		}
		if len(l.buf) == 0 && !l.skipping {
			l.each(p[:i])
		} else {
			l.keep(p[:i])
			l.end()
		}
		p = p[i+1:]
	}
	return n, nil
}

func (l *lines) keep(p []byte) {
	if l.skipping {
		return
	}
	if len(l.buf)+len(p) > lineMax {
		l.skipping, l.buf = true, nil
		return
	}
	l.buf = append(l.buf, p...)
}

// end closes the current line: at a line feed, and once at the end of the stream.
func (l *lines) end() {
	switch {
	case l.skipping:
		l.skipping = false
		l.long()
	case len(l.buf) > 0:
		l.each(l.buf)
	}
	l.buf = l.buf[:0]
}
