package wire

import (
	"bytes"
	"strings"
	"testing"
	"testing/iotest"
)

func TestOfALogItsEndIsKept(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 9, 10, 11, 29, 30, 31, 1000} {
		text := strings.Repeat("abcdefg", size/7+1)[:size]
		got, err := Tail(iotest.HalfReader(strings.NewReader(text)), 10)
		if want := text[max(size-10, 0):]; err != nil || !bytes.Equal(got, []byte(want)) {
			t.Errorf("of %d bytes: %q, %v, want %q", size, got, err, want)
		}
	}
	if _, err := Tail(iotest.TimeoutReader(strings.NewReader(strings.Repeat("x", 100))), 10); err == nil {
		t.Error("a log that breaks off is whole")
	}
}
