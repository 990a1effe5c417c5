package guard

import "bytes"

// maxEdits bounds the exact count; a change with more edits than that is counted by its multiset of
// lines, which is exact unless lines were only moved.
const maxEdits = 3000

// countLines tells how many lines a minimal diff adds and removes. A binary side counts as no lines.
func countLines(before, after []byte) (added, removed int) {
	if isBinary(before) || isBinary(after) {
		return 0, 0
	}
	a, b := splitLines(before), splitLines(after)
	for len(a) > 0 && len(b) > 0 && bytes.Equal(a[0], b[0]) {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && bytes.Equal(a[len(a)-1], b[len(b)-1]) {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if len(a) == 0 || len(b) == 0 {
		return len(b), len(a)
	}
	if edits, ok := editDistance(number(a, b)); ok {
		// edits = added + removed and added − removed = len(b) − len(a).
		added = (edits + len(b) - len(a)) / 2
		return added, edits - added
	}
	return multisetDiff(a, b)
}

// isBinary is git's own test: a NUL in the first 8,000 bytes. Attributes are not asked.
func isBinary(b []byte) bool { return bytes.IndexByte(b[:min(len(b), 8000)], 0) >= 0 }

func splitLines(b []byte) [][]byte {
	if len(b) == 0 {
		return nil
	}
	lines := bytes.SplitAfter(b, []byte{'\n'})
	if len(lines[len(lines)-1]) == 0 {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// number replaces equal lines by equal numbers, so that comparing is cheap.
func number(a, b [][]byte) ([]int, []int) {
	ids := map[string]int{}
	of := func(lines [][]byte) []int {
		out := make([]int, len(lines))
		for i, l := range lines {
			id, ok := ids[string(l)]
			if !ok {
				id = len(ids)
				ids[string(l)] = id
			}
			out[i] = id
		}
		return out
	}
	return of(a), of(b)
}

// editDistance is the greedy algorithm of Myers, "An O(ND) difference algorithm" (1986), without the trace.
func editDistance(a, b []int) (int, bool) {
	limit := min(len(a)+len(b), maxEdits)
	furthest := make([]int, 2*limit+2)
	for d := 0; d <= limit; d++ {
		for k := -d; k <= d; k += 2 {
			var x int
			if k == -d || k != d && furthest[limit+k-1] < furthest[limit+k+1] {
				x = furthest[limit+k+1]
			} else {
				x = furthest[limit+k-1] + 1
			}
			for x < len(a) && x-k < len(b) && a[x] == b[x-k] {
				x++
			}
			furthest[limit+k] = x
			if x >= len(a) && x-k >= len(b) {
				return d, true
			}
		}
	}
	return 0, false
}

func multisetDiff(a, b [][]byte) (added, removed int) {
	count := map[string]int{}
	for _, l := range a {
		count[string(l)]--
	}
	for _, l := range b {
		count[string(l)]++
	}
	for _, n := range count {
		if n > 0 {
			added += n
		} else {
			removed -= n
		}
	}
	return added, removed
}
