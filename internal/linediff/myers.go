package linediff

import "slices"

// distance is the number of lines that a shortest script adds and removes, by the greedy algorithm of Myers,
// "An O(ND) difference algorithm and its variations" (1986); false when it is more than limit. trace, when it
// is not nil, sees the furthest points before each round: diagonal k of round d stands at k + d.
func distance(x, y []int, limit int, trace func([]int32)) (int, bool) {
	limit = min(len(x)+len(y), limit)
	furthest := make([]int32, 2*limit+2)
	for d := 0; d <= limit; d++ {
		if trace != nil {
			trace(furthest[limit-d : limit+d+2])
		}
		for k := -d; k <= d; k += 2 {
			at := 0
			if down(furthest, limit, k, d) {
				at = int(furthest[limit+k+1])
			} else {
				at = int(furthest[limit+k-1]) + 1
			}
			for at < len(x) && at-k < len(y) && x[at] == y[at-k] {
				at++
			}
			furthest[limit+k] = int32(at)
			if at >= len(x) && at-k >= len(y) {
				return d, true
			}
		}
	}
	return 0, false
}

// down says whether the best way onto diagonal k in round d adds a line; the other one removes one. zero is
// where diagonal 0 stands.
func down(furthest []int32, zero, k, d int) bool {
	return k == -d || k != d && furthest[zero+k-1] < furthest[zero+k+1]
}

// walk goes back from the end and joins single steps into edits.
func walk(rounds [][]int32, i, j int) []Edit {
	var back []Edit
	for d := len(rounds) - 1; d > 0; d-- {
		v := rounds[d]
		k := i - j
		added := down(v, d, k, d)
		if added {
			k++
		} else {
			k--
		}
		pi := int(v[k+d])
		pj := pi - k
		e := Edit{pi, pi + 1, pj, pj}
		if added {
			e = Edit{pi, pi, pj, pj + 1}
		}
		if n := len(back); n > 0 && back[n-1].A == e.AEnd && back[n-1].B == e.BEnd {
			back[n-1].A, back[n-1].B = e.A, e.B
		} else {
			back = append(back, e)
		}
		i, j = pi, pj
	}
	slices.Reverse(back)
	return back
}
