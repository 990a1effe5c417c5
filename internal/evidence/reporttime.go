package evidence

import (
	"fmt"
	"strings"
)

// reportTime is the whole run to scale.
type reportTime struct {
	Lanes []lane
	Axis  []string // from left to right, at equal distances
	Note  string
}

type lane struct {
	Name, Said string
	Bars       []bar
}

// bar is stretches of one kind as the data of an SVG path, in a box 1000 wide.
type bar struct{ Class, Path string }

// bars collects stretches of a whole, in milliseconds.
type bars struct {
	whole   int64
	y, high int
	order   []string
	paths   map[string]*strings.Builder
	ends    map[string]int64
}

func newBars(whole int64, y, high int) *bars {
	return &bars{whole: max(whole, 1), y: y, high: high, paths: map[string]*strings.Builder{}, ends: map[string]int64{}}
}

// add draws a stretch, two units wide at least. One that begins where another of its kind is drawn goes on with it
// or, where it adds nothing that can be seen, is in it.
func (b *bars) add(class string, from, length int64) {
	x := min(max(from, 0)*1000/b.whole, 998)
	end := min(max((max(from, 0)+max(length, 0))*1000/b.whole, x+2), 1000)
	p := b.paths[class]
	if p == nil {
		p = &strings.Builder{}
		b.paths[class], b.order = p, append(b.order, class)
	} else if x = max(x, b.ends[class]); end <= x {
		return
	}
	b.ends[class] = end
	fmt.Fprintf(p, "M%d %dh%dv%dh-%dz", x, b.y, end-x, b.high, end-x)
}

func (b *bars) list() []bar {
	var out []bar
	for _, class := range b.order {
		out = append(out, bar{class, b.paths[class].String()})
	}
	return out
}

// timed are the gate runs whose beginning is known. Those of a proof never are.
func timed(gates ...Gate) []Gate {
	var out []Gate
	for _, g := range gates {
		if g.At > 0 && g.Where != "proof" && !g.Sealed() {
			out = append(out, g)
		}
	}
	return out
}

// timed are the tick's gate runs whose beginning is known.
func (t Tick) timed() []Gate {
	all := append([]Gate{}, t.Gates...)
	if t.First != nil && t.First.Gate != nil {
		all = append(all, *t.First.Gate)
	}
	return timed(all...)
}

// began is when the tick began, in milliseconds of the run.
func (r Record) began(t Tick) int64 { return max(t.Started.Sub(r.Started).Milliseconds(), 0) }

// proving is the end of a tick that had a proof: from the last step whose time is known. It is told as one, for how long
// each gate of it took is nobody's to know.
func (r Record) proving(t Tick) (from, length int64) {
	if len(t.Proof) == 0 || len(t.timed()) == 0 {
		return 0, 0
	}
	from = r.began(t) + t.Agent.Millis
	for _, g := range t.timed() {
		from = max(from, g.At+g.Millis)
	}
	for _, c := range r.Calls {
		if c.Tick == t.N && c.At > 0 {
			from = max(from, c.At+c.Millis)
		}
	}
	return from, max(r.began(t)+t.Millis-from, 0)
}

func callClass(c Call) string {
	if c.Purpose == "agent" {
		return "agent"
	}
	return "review"
}

// timeline is the run to scale; nil where it took no time.
func (r Record) timeline() *reportTime {
	whole := r.Totals.Millis
	if whole <= 0 || len(r.Ticks) == 0 && len(timed(r.Baseline...)) == 0 {
		return nil
	}
	v := &reportTime{Axis: []string{"0", took(whole / 4), took(whole / 2), took(whole * 3 / 4), took(whole)}}
	ticks, agent, gates, proof, calls := newBars(whole, 0, 10), newBars(whole, 0, 10), newBars(whole, 0, 10), newBars(whole, 0, 10), newBars(whole, 0, 10)
	var inAgent, inGates, inProof, inCalls int64
	gateRuns, callRuns := 0, 0
	add := func(all []Gate) {
		for _, g := range all {
			gates.add(gateTone(g.Status), g.At, g.Millis)
			inGates += g.Millis
			gateRuns++
		}
	}
	add(timed(r.Baseline...))
	for i, t := range r.Ticks {
		ticks.add([...]string{"tick", "tock"}[i%2], r.began(t), t.Millis)
		agent.add("agent", r.began(t), t.Agent.Millis)
		inAgent += t.Agent.Millis
		add(t.timed())
		if from, length := r.proving(t); length > 0 {
			proof.add("proof", from, length)
			inProof += length
		}
	}
	for _, c := range r.Calls {
		if c.At > 0 {
			calls.add(callClass(c), c.At, c.Millis)
			inCalls += c.Millis
			callRuns++
		}
	}
	for _, l := range []lane{
		{"Ticks", count(len(r.Ticks), "tick"), ticks.list()},
		{"Agent", took(inAgent) + " in all", agent.list()},
		{"Model calls", fmt.Sprintf("%s, %s in all", count(callRuns, "call"), took(inCalls)), calls.list()},
		{"Gates", fmt.Sprintf("%s, %s in all", count(gateRuns, "run"), took(inGates)), gates.list()},
		{"Proof", took(inProof) + " in all", proof.list()},
	} {
		if len(l.Bars) > 0 {
			v.Lanes = append(v.Lanes, l)
		}
	}
	if gateRuns == 0 || callRuns == 0 && len(r.Calls) > 0 {
		v.Note = "When gates and model calls began is not in this record."
	}
	return v
}

// bars are the tick's own steps to its own scale: agent, gates, reviewer and proof above, its model calls below.
func (r Record) bars(t Tick) []bar {
	steps, calls := newBars(t.Millis, 0, 8), newBars(t.Millis, 10, 4)
	at := r.began(t)
	if t.Agent.Millis > 0 {
		steps.add("agent", 0, t.Agent.Millis)
	}
	for _, g := range t.timed() {
		steps.add(gateTone(g.Status), g.At-at, g.Millis)
	}
	for _, c := range r.Calls {
		if c.Tick != t.N || c.At == 0 {
			continue
		}
		if callClass(c) == "review" {
			steps.add("review", c.At-at, c.Millis)
		}
		calls.add(callClass(c), c.At-at, c.Millis)
	}
	if from, length := r.proving(t); length > 0 {
		steps.add("proof", from-at, length)
	}
	return append(steps.list(), calls.list()...)
}
