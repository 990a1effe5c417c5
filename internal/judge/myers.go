package judge

// edit replaces lines a..aEnd of the old text by lines b..bEnd of the new one.
type edit struct{ a, aEnd, b, bEnd int }

// maxEdits bounds the search for the shortest script; beyond it the stretch between the common beginning
// and end is shown as replaced whole, which is longer and just as true.
const maxEdits = 1000

// compare lists what differs between two sequences of lines.
func compare(a, b [][]byte) []edit {
	x, y := number(a, b)
	lead := 0
	for lead < len(x) && lead < len(y) && x[lead] == y[lead] {
		lead++
	}
	trail := 0
	for trail < len(x)-lead && trail < len(y)-lead && x[len(x)-1-trail] == y[len(y)-1-trail] {
		trail++
	}
	x, y = x[lead:len(x)-trail], y[lead:len(y)-trail]
	if len(x) == 0 && len(y) == 0 {
		return nil
	}
	edits := script(x, y)
	for i := range edits {
		edits[i].a += lead
		edits[i].aEnd += lead
		edits[i].b += lead
		edits[i].bEnd += lead
	}
	return edits
}

// number gives equal lines equal numbers.
func number(a, b [][]byte) (x, y []int) {
	ids := map[string]int{}
	of := func(ls [][]byte) []int {
		out := make([]int, len(ls))
		for i, l := range ls {
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

// script is the greedy algorithm of Myers, "An O(ND) difference algorithm and its variations" (1986). The furthest
// points of every round are kept to walk back along.
func script(x, y []int) []edit {
	whole := []edit{{0, len(x), 0, len(y)}}
	limit := min(len(x)+len(y), maxEdits)
	furthest := make([]int32, 2*limit+2)
	var rounds [][]int32
	for d := 0; d <= limit; d++ {
		rounds = append(rounds, append([]int32(nil), furthest[limit-d:limit+d+2]...))
		for k := -d; k <= d; k += 2 {
			at := int(furthest[max(limit+k-1, 0)]) + 1
			if k == -d || k != d && furthest[limit+k-1] < furthest[limit+k+1] {
				at = int(furthest[limit+k+1])
			}
			for at < len(x) && at-k < len(y) && x[at] == y[at-k] {
				at++
			}
			furthest[limit+k] = int32(at)
			if at >= len(x) && at-k >= len(y) {
				return walk(rounds, len(x), len(y))
			}
		}
	}
	return whole
}

// walk goes back from the end and joins single steps into edits.
func walk(rounds [][]int32, i, j int) []edit {
	var back []edit
	for d := len(rounds) - 1; d > 0; d-- {
		v := rounds[d] // diagonal k stands at k + d
		k := i - j
		down := k == -d || k != d && v[k-1+d] < v[k+1+d]
		if down {
			k++
		} else {
			k--
		}
		pi := int(v[k+d])
		pj := pi - k
		e := edit{pi, pi + 1, pj, pj}
		if down {
			e = edit{pi, pi, pj, pj + 1}
		}
		if n := len(back); n > 0 && back[n-1].a == e.aEnd && back[n-1].b == e.bEnd {
			back[n-1].a, back[n-1].b = e.a, e.b
		} else {
			back = append(back, e)
		}
		i, j = pi, pj
	}
	for l, r := 0, len(back)-1; l < r; l, r = l+1, r-1 {
		back[l], back[r] = back[r], back[l]
	}
	return back
}
