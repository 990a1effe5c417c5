package evidence

import "slices"

// automaton finds many strings in one pass (Aho and Corasick). Edges lie in one map, because a node
// with a full table each would cost tens of megabytes for a private key in all its forms.
type automaton struct {
	root  [256]int32
	edge  map[uint64]int32
	fail  []int32
	depth []int32
	out   []int32 // length of the longest string that ends at the node, 0 for none
}

func newAutomaton(words map[string]bool) *automaton {
	a := &automaton{edge: map[uint64]int32{}, fail: []int32{0}, depth: []int32{0}, out: []int32{0}}
	type link struct {
		parent int32
		b      byte
		node   int32
	}
	var links []link
	for w := range words {
		at := int32(0)
		for i := range len(w) {
			next, ok := a.child(at, w[i])
			if !ok {
				next = int32(len(a.fail))
				a.fail, a.depth, a.out = append(a.fail, 0), append(a.depth, int32(i+1)), append(a.out, 0)
				a.edge[edgeKey(at, w[i])] = next
				if at == 0 {
					a.root[w[i]] = next
				}
				links = append(links, link{at, w[i], next})
			}
			at = next
		}
		if at != 0 {
			a.out[at] = int32(len(w))
		}
	}
	// A node's failure link is shallower than the node, so parents come before children.
	slices.SortStableFunc(links, func(x, y link) int { return int(a.depth[x.node] - a.depth[y.node]) })
	for _, l := range links {
		if l.parent != 0 {
			a.fail[l.node] = a.step(a.fail[l.parent], l.b)
		}
		if a.out[l.node] == 0 {
			a.out[l.node] = a.out[a.fail[l.node]]
		}
	}
	return a
}

func edgeKey(node int32, b byte) uint64 { return uint64(node)<<8 | uint64(b) }

func (a *automaton) child(node int32, b byte) (int32, bool) {
	if node == 0 {
		return a.root[b], a.root[b] != 0
	}
	next, ok := a.edge[edgeKey(node, b)]
	return next, ok
}

func (a *automaton) step(node int32, b byte) int32 {
	for node != 0 {
		if next, ok := a.edge[edgeKey(node, b)]; ok {
			return next
		}
		node = a.fail[node]
	}
	return a.root[b]
}

// span is a stretch of bytes, from inclusive, to exclusive.
type span struct{ from, to int }

// matches appends the spans of every word in b, and returns where the longest word that b may have
// begun starts: len(b) when there is none.
func (a *automaton) matches(spans []span, b []byte) ([]span, int) {
	at := int32(0)
	for i, c := range b {
		at = a.step(at, c)
		if n := a.out[at]; n != 0 {
			spans = append(spans, span{i + 1 - int(n), i + 1})
		}
	}
	return spans, len(b) - int(a.depth[at])
}

// maxGap is the white space that may stand between two digits of an encoded value: a line end and
// an indentation. More of it ends the value, so that what is held back stays bounded.
const maxGap = 40

// spacedMatches is matches over b without its white space, in positions of b.
func (a *automaton) spacedMatches(spans []span, b []byte) ([]span, int) {
	at, gap := int32(0), 0
	var pos []int // positions of the bytes that were read since the state was last reset
	for i, c := range b {
		if c == ' ' || c == '\n' || c == '\r' || c == '\t' {
			if gap++; gap > maxGap {
				at, pos = 0, pos[:0]
			}
			continue
		}
		gap = 0
		if at = a.step(at, c); at == 0 {
			pos = pos[:0]
			continue
		}
		pos = append(pos, i)
		if n := int(a.out[at]); n != 0 {
			spans = append(spans, span{pos[len(pos)-n], i + 1})
		}
	}
	if at == 0 {
		return spans, len(b)
	}
	return spans, pos[len(pos)-int(a.depth[at])]
}

// stream redacts text that arrives in pieces. buf holds what may still matter: bytes that are not
// passed on yet and, before them, as much of what was as a later match may reach back to.
type stream struct {
	r    *Redactor
	buf  []byte
	done int // bytes of buf that were passed on, or masked
}

// feed appends to out what can be passed on after p has arrived.
func (s *stream) feed(out, p []byte, final bool) []byte {
	s.buf = append(s.buf, p...)
	var spans []span
	hold := len(s.buf)
	if s.r != nil {
		var h int
		spans, h = s.r.plain.matches(spans, s.buf)
		hold = min(hold, h)
		spans, h = s.r.encoded.spacedMatches(spans, s.buf)
		hold = min(hold, h)
	}
	spans, h := shapeSpans(spans, s.buf, final)
	hold = min(hold, h)
	release := hold
	if final {
		release = len(s.buf)
	}
	spans = merge(spans)
	for _, m := range spans {
		// What is masked already hides whatever may still follow from inside it.
		if m.from <= release && release < m.to {
			release = m.to
		}
	}
	out = s.pass(out, spans, release)
	keep := max(0, min(hold, release-1)) // one byte of context: a token's shape starts at a word's start
	s.buf = append(s.buf[:0], s.buf[keep:]...)
	s.done = max(s.done, release) - keep
	return out
}

// pass appends buf[done:release] with each span replaced by one marker.
func (s *stream) pass(out []byte, spans []span, release int) []byte {
	at := s.done
	for _, m := range spans {
		if m.to <= at {
			continue
		}
		if m.from >= release {
			break
		}
		if m.from >= at { // else its marker has been passed on already
			out = append(out, s.buf[at:m.from]...)
			out = append(out, Redacted...)
		}
		at = m.to
	}
	if at < release {
		out = append(out, s.buf[at:release]...)
	}
	return out
}

// merge orders spans and joins those that overlap.
func merge(spans []span) []span {
	slices.SortFunc(spans, func(x, y span) int { return x.from - y.from })
	n := 0
	for _, m := range spans {
		if n > 0 && m.from < spans[n-1].to {
			spans[n-1].to = max(spans[n-1].to, m.to)
			continue
		}
		spans[n] = m
		n++
	}
	return spans[:n]
}
