// Package linediff owns how two texts differ, line by line. It must never start a process, nor ask what a
// line means: attributes, encodings and line ends are its callers' matter.
package linediff

import (
	"bytes"
	"slices"
)

// Split cuts a text after each line feed; the last line may have none.
func Split(text []byte) [][]byte {
	if len(text) == 0 {
		return nil
	}
	lines := bytes.SplitAfter(text, []byte{'\n'})
	if len(lines[len(lines)-1]) == 0 {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// Edit replaces lines A to AEnd of the old text by lines B to BEnd of the new one, ends excluded, from 0.
type Edit struct{ A, AEnd, B, BEnd int }

// How far the shortest script is searched for. Edits keeps a trace that grows with the square of it
// (4 MB at its bound), Count does not.
const (
	maxTraced  = 1000
	maxCounted = 3000
)

// Edits lists what differs, in order. It is the shortest script up to 1,000 added and removed lines; beyond,
// the stretch between the common beginning and end is replaced whole, which is longer and just as true.
func Edits(a, b [][]byte) []Edit {
	x, y, lead := differing(a, b)
	if len(x)+len(y) == 0 {
		return nil
	}
	edits := []Edit{{0, len(x), 0, len(y)}}
	var rounds [][]int32
	trace := func(round []int32) { rounds = append(rounds, slices.Clone(round)) }
	if _, ok := distance(x, y, maxTraced, trace); ok {
		edits = walk(rounds, len(x), len(y))
	}
	for i := range edits {
		edits[i].A += lead
		edits[i].AEnd += lead
		edits[i].B += lead
		edits[i].BEnd += lead
	}
	return edits
}

// Count tells how many lines a minimal diff adds and removes. It is exact up to 3,000 of them; beyond, each
// line counts by how often it stands on either side, which is exact unless lines were only moved.
func Count(a, b [][]byte) (added, removed int) {
	x, y, _ := differing(a, b)
	if len(x) == 0 || len(y) == 0 {
		return len(y), len(x)
	}
	if edits, ok := distance(x, y, maxCounted, nil); ok {
		// edits = added + removed and added − removed = len(y) − len(x).
		added = (edits + len(y) - len(x)) / 2
		return added, edits - added
	}
	count := map[int]int{}
	for _, l := range x {
		count[l]--
	}
	for _, l := range y {
		count[l]++
	}
	for _, n := range count {
		added += max(n, 0)
		removed += max(-n, 0)
	}
	return added, removed
}

// differing is the stretch between the common beginning, lead lines long, and the common end, with equal
// lines as equal numbers.
func differing(a, b [][]byte) (x, y []int, lead int) {
	for lead < len(a) && lead < len(b) && bytes.Equal(a[lead], b[lead]) {
		lead++
	}
	a, b = a[lead:], b[lead:]
	for len(a) > 0 && len(b) > 0 && bytes.Equal(a[len(a)-1], b[len(b)-1]) {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	ids := map[string]int{}
	number := func(lines [][]byte) []int {
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
	return number(a), number(b), lead
}
