package guard

import (
	"bytes"

	"github.com/proctor-ci/proctor/internal/linediff"
)

// countLines tells how many lines a minimal diff adds and removes. A binary side counts as no lines.
func countLines(before, after []byte) (added, removed int) {
	if isBinary(before) || isBinary(after) {
		return 0, 0
	}
	return linediff.Count(linediff.Split(before), linediff.Split(after))
}

// isBinary is git's own test: a NUL in the first 8,000 bytes. Attributes are not asked.
func isBinary(b []byte) bool { return bytes.IndexByte(b[:min(len(b), 8000)], 0) >= 0 }
