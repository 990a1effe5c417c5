package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
)

// Of a long output the first and the last part are kept.
const (
	keepHead = 8 << 20
	keepTail = 8 << 20
)

// capture digests a stream whole and keeps its ends. One goroutine writes; reading comes after.
type capture struct {
	keep       bool
	sum        hash.Hash
	bytes      int64
	head, tail []byte
}

func newCapture(keep bool) *capture { return &capture{keep: keep, sum: sha256.New()} }

// Write never fails.
func (c *capture) Write(p []byte) (int, error) {
	n := len(p)
	_, _ = c.sum.Write(p) // a hash never fails
	c.bytes += int64(n)
	if !c.keep {
		return n, nil
	}
	if room := keepHead - len(c.head); room > 0 {
		part := min(room, len(p))
		c.head = append(c.head, p[:part]...)
		p = p[part:]
	}
	c.tail = append(c.tail, p...)
	if len(c.tail) > 2*keepTail { // moved seldom, so each byte is copied about once
		c.tail = append(c.tail[:0], c.tail[len(c.tail)-keepTail:]...)
	}
	return n, nil
}

// digest is "sha256:" and the hash of everything written, kept or not.
func (c *capture) digest() string { return "sha256:" + hex.EncodeToString(c.sum.Sum(nil)) }

// kept is the output, with one line of ours in place of what is missing in the middle; nil when nothing
// was to be kept.
func (c *capture) kept() []byte {
	if !c.keep {
		return nil
	}
	tail := c.tail
	if len(tail) > keepTail {
		tail = tail[len(tail)-keepTail:]
	}
	missing := c.bytes - int64(len(c.head)) - int64(len(tail))
	out := append(make([]byte, 0, len(c.head)+len(tail)+64), c.head...)
	if missing > 0 {
		out = fmt.Appendf(out, "\n[%d bytes left out here]\n", missing)
	}
	return append(out, tail...)
}
