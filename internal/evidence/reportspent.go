package evidence

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/proctor-ci/proctor/internal/money"
)

// reportSpent is what the run spent over its time, and on what in each tick. Its chart is 1000 wide and 200 high.
type reportSpent struct {
	Line, Area, Agent, Review string // path data
	Ceiling                   string // where it is near enough to be drawn, at CeilingAt from above
	CeilingAt                 int64
	Top, Half                 string
	Axis                      []string
	Said, Note                string
	Rows                      []spentRow
	Left                      string
	Total                     spentRow
}

// spentRow is the calls of one tick. Bars are the shares of its tokens in 1000 units, of which the tick with most takes all.
type spentRow struct {
	Tick, Cost, Sum                      string
	Calls                                int
	Input, Output, CacheRead, CacheWrite int64
	Bars                                 []bar
}

func (w spentRow) tokens() int64 { return w.Input + w.Output + w.CacheRead + w.CacheWrite }

func (w *spentRow) add(c Call) {
	w.Calls++
	w.Input += c.Input
	w.Output += c.Output
	w.CacheRead += c.CacheRead
	w.CacheWrite += c.CacheWrite
}

// spent is nil where no model was called.
func (r Record) spent(rows int) *reportSpent {
	if len(r.Calls) == 0 {
		return nil
	}
	v := &reportSpent{}
	v.draw(r)
	var all []spentRow
	var costs []money.USD
	total, sum := spentRow{}, money.USD(0)
	byTick := slices.Clone(r.Calls)
	slices.SortStableFunc(byTick, func(a, b Call) int { return cmp.Compare(a.Tick, b.Tick) })
	for i, c := range byTick {
		if i == 0 || c.Tick != byTick[i-1].Tick {
			name := fmt.Sprint(c.Tick)
			if c.Tick == 0 {
				name = "before the first"
			}
			all, costs = append(all, spentRow{Tick: name}), append(costs, 0)
		}
		all[len(all)-1].add(c)
		total.add(c)
		costs[len(costs)-1] = costs[len(costs)-1].Add(c.CostUSD)
	}
	most := int64(1)
	for _, w := range all {
		most = max(most, w.tokens())
	}
	for i := range all {
		sum = sum.Add(costs[i])
		all[i].Cost, all[i].Sum = costs[i].String(), sum.String()
		all[i].Bars = all[i].bars(most)
	}
	total.Tick, total.Cost, total.Sum = "all", sum.String(), sum.String()
	v.Total = total
	v.Rows = top(all, rows, "tick", &v.Left)
	return v
}

func (w spentRow) bars(most int64) []bar {
	b := newBars(most, 0, 8)
	from := int64(0)
	for _, k := range []struct {
		class string
		n     int64
	}{{"in", w.Input}, {"out", w.Output}, {"read", w.CacheRead}, {"write", w.CacheWrite}} {
		if k.n > 0 {
			b.add(k.class, from, k.n)
		}
		from += max(k.n, 0)
	}
	return b.list()
}

// draw makes the chart: the sum of the costs over time, each call where it ended.
func (v *reportSpent) draw(r Record) {
	calls, at, whole, timed := r.placed()
	var sum money.USD
	for _, c := range calls {
		sum = sum.Add(c.CostUSD)
	}
	upper, ceiling := sum, r.Ceilings.CostUSD
	// A ceiling far above what was spent would press the line flat.
	near := ceiling > 0 && sum >= ceiling/4
	if near {
		upper = max(sum, ceiling)
	}
	v.Top, v.Half = upper.String(), (upper / 2).String()
	var line, agent, review strings.Builder
	line.WriteString("M0 200")
	high := func(c money.USD) int64 { return 200 - int64(float64(c)/float64(max(upper, 1))*200) }
	across := func(at int64) int64 { return min(max(at, 0)*1000/max(whole, 1), 1000) }
	if near {
		v.Ceiling, v.CeilingAt = ceiling.String(), high(ceiling)
	}
	var so money.USD
	drawn := map[string]int64{}
	for i, c := range calls {
		x := across(at[i])
		so = so.Add(c.CostUSD)
		if i == len(calls)-1 || across(at[i+1]) != x {
			fmt.Fprintf(&line, "H%dV%d", x, high(so))
		}
		class := callClass(c)
		if seen, ok := drawn[class]; ok && seen == x {
			continue
		}
		drawn[class] = x
		mark := &agent
		if class == "review" {
			mark = &review
		}
		fmt.Fprintf(mark, "M%d 200v-12", x)
	}
	line.WriteString("H1000")
	v.Line, v.Area, v.Agent, v.Review = line.String(), line.String()+"V200z", agent.String(), review.String()
	v.Said = fmt.Sprintf("The cost grows to %s over %s; the table below says it tick by tick.", sum, count(len(calls), "model call"))
	if ceiling > 0 && !near {
		v.Note = fmt.Sprintf("The ceiling of %s lies above this chart: %.1f %% of it was spent.", ceiling, float64(sum)*100/float64(ceiling))
	}
	if !timed {
		v.Axis = []string{"first call", "last call"}
		v.Note = strings.TrimSpace("The calls stand in their order: when they began is not in this record. " + v.Note)
		return
	}
	v.Axis = []string{"0", took(whole / 4), took(whole / 2), took(whole * 3 / 4), took(whole)}
}

// placed are the calls in the order of their ends, where each ended, and how long the whole is: in milliseconds of
// the run, or by their number where the record does not say when they began.
func (r Record) placed() (calls []Call, at []int64, whole int64, timed bool) {
	calls = slices.Clone(r.Calls)
	if slices.ContainsFunc(calls, func(c Call) bool { return c.At == 0 }) {
		for i := range calls {
			at = append(at, int64(i+1))
		}
		return calls, at, int64(len(calls)), false
	}
	slices.SortStableFunc(calls, func(a, b Call) int { return cmp.Compare(a.At+a.Millis, b.At+b.Millis) })
	for _, c := range calls {
		at = append(at, c.At+c.Millis)
	}
	return calls, at, r.Totals.Millis, true
}
