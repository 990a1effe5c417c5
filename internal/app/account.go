package app

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/proctor-ci/proctor/internal/evidence"
)

// account tells a run to a person as it happens, one line an event: plain, or with colour and a line that moves
// where there is a terminal. It says no more than the events do.
type account struct {
	mu     sync.Mutex
	w      io.Writer
	live   bool // a terminal: colour, and a last line that is rewritten
	line   func(string)
	tick   int
	doing  string
	since  time.Time
	frame  int
	drawn  bool
	now    func() time.Time
	indent string
	kept   map[string]bool // hosts that were shown as kept from a run
}

// newAccount writes whole lines through line. live adds colour; now times what is being done.
func newAccount(w io.Writer, live bool, now func() time.Time) *account {
	a := &account{w: w, live: live, now: now}
	a.line = func(s string) { fmt.Fprintln(w, s) }
	return a
}

const (
	dim, bold, red, green, yellow, reset = "\x1b[2m", "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"
)

func (a *account) paint(code, s string) string {
	if !a.live || s == "" {
		return s
	}
	return code + s + reset
}

// mark colours a word by what it means.
func (a *account) mark(word string) string {
	switch word {
	case "passed", "ok", "approved", "done", "pass", "already_satisfied":
		return a.paint(green, word)
	case "flag", "stopped", "cancelled":
		return a.paint(yellow, word)
	}
	return a.paint(red, word)
}

// say prints one line above the moving one.
func (a *account) say(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wipe()
	a.line(a.indent + fmt.Sprintf(format, args...))
}

func (a *account) wipe() {
	if a.drawn {
		fmt.Fprint(a.w, "\r\x1b[2K")
		a.drawn = false
	}
}

// step prints a station of a tick; the tick's number stands only at its first line.
func (a *account) step(tick int, name, text string) {
	head := ""
	if tick != a.tick {
		a.tick = tick
		if tick > 0 {
			head = fmt.Sprintf("tick %d", tick)
		}
	}
	a.say("%s  %s %s", a.paint(bold, fmt.Sprintf("%-7s", head)), a.paint(dim, fmt.Sprintf("%-11s", name)), text)
}

func took(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	if d < 10*time.Second {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// Event prints e.
func (a *account) Event(e evidence.Event) {
	a.doingNow(e)
	switch e.Kind {
	case evidence.RunStarted:
		a.step(0, "run", fmt.Sprintf("%s on %s at %s, at most %d ticks and %s", e.Text(evidence.KeyAgent), e.Text(evidence.KeyRepo), short(e.Text(evidence.KeyBase)), e.Int(evidence.KeyMaxTicks), e.USD(evidence.KeyMaxCost)))
	case evidence.AgentEnded:
		text := a.mark(e.Text(evidence.KeyOutcome)) + " after " + took(e.Int(evidence.KeyMillis))
		if n := e.Int(evidence.KeyTurns); n > 0 {
			text += ", " + plural(n, "turn")
		}
		a.step(e.Tick, "agent", text)
	case evidence.Snapshot:
		a.step(e.Tick, "snapshot", fmt.Sprintf("%s, %s, +%d -%d", short(e.Text(evidence.KeyCommit)), plural(e.Int(evidence.KeyFiles), "file"), e.Int(evidence.KeyAdded), e.Int(evidence.KeyRemoved)))
	case evidence.Guard:
		text := a.mark("passed")
		switch level := e.Text(evidence.KeyLevel); level {
		case "halt", "block":
			text = a.mark(level) + ": " + e.Text(evidence.KeyRule) + " " + e.Text(evidence.KeyPath)
		case "flag":
			text += ", " + plural(e.Int(evidence.KeyFindings), "remark")
		}
		a.step(e.Tick, "guard", text)
	case evidence.GateEnded:
		a.gate(e)
	case evidence.ReviewEvent:
		word := "rejected"
		if e.Bool(evidence.KeyApproved) {
			word = "approved"
		}
		a.step(e.Tick, "review", a.mark(word)+" by "+e.Text(evidence.KeyModel))
	case evidence.PlanProgress:
		a.step(e.Tick, fmt.Sprintf("item %d", e.Int(evidence.KeyNumber)), a.mark(e.Text(evidence.KeyStatus)))
	case evidence.ProofStarted:
		a.step(e.Tick, "proof", "a pristine checkout of "+short(e.Text(evidence.KeyCommit)))
	case evidence.EgressEvent:
		a.egress(e)
	case evidence.Note:
		a.step(e.Tick, "note", a.paint(yellow, e.Text(evidence.KeyNote)))
	case evidence.TickEnded:
		if text := lesson(e.Text(evidence.KeyVerdict)); text != "" {
			a.step(e.Tick, "so", a.paint(dim, text))
		}
	case evidence.Ended:
		a.step(0, "end", a.mark(e.Text(evidence.KeyTerminal))+": "+e.Text(evidence.KeyReason))
	case evidence.PublishedPR:
		what := "draft opened"
		if e.Bool(evidence.KeyUpdated) {
			what = "draft updated"
		}
		a.step(0, "publish", what+": "+e.Text(evidence.KeyURL))
	}
}

// lesson says what a tick's verdict means where it is not plain from its lines.
func lesson(verdict string) string {
	switch verdict {
	case "acceptance_failed":
		return "the visible gates pass, the held-out one does not: not done, and the agent hears no more than that"
	case "item_done":
		return "the item is ticked off; the plan goes on"
	case "no_change":
		return "nothing was changed: a green gate over an empty diff proves nothing"
	}
	return ""
}

func (a *account) gate(e evidence.Event) {
	text := a.mark(e.Text(evidence.KeyStatus))
	if ms := e.Int(evidence.KeyMillis); ms > 0 {
		text += " after " + took(ms)
	}
	switch e.Text(evidence.KeyWhere) {
	case "base":
		text += " on the base commit"
	case "proof":
		text += " in the proof"
	}
	if e.Text(evidence.KeyClass) == "acceptance" {
		text += ", held out"
	}
	a.step(e.Tick, e.Text(evidence.KeyGate), text)
}

func (a *account) doingNow(e evidence.Event) {
	var p evidence.Progress
	p.Apply(e)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.doing, a.since = p.Now, a.now()
}

// Spin redraws the moving line until stop is closed. It does nothing without a terminal.
func (a *account) Spin(tick <-chan time.Time, stop <-chan struct{}) {
	if !a.live {
		return
	}
	for {
		select {
		case <-stop:
			a.mu.Lock()
			a.wipe()
			a.mu.Unlock()
			return
		case <-tick:
			a.draw()
		}
	}
}

func (a *account) draw() {
	const frames = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wipe()
	if a.doing == "" {
		return
	}
	f := []rune(frames)
	a.frame = (a.frame + 1) % len(f)
	fmt.Fprintf(a.w, "%s         %s %s %s", a.indent, string(f[a.frame]), a.doing, a.paint(dim, a.now().Sub(a.since).Round(time.Second).String()))
	a.drawn = true
}

func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "s") {
		return fmt.Sprintf("%d %ses", n, noun)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func short(id string) string { return id[:min(len(id), 10)] }

// oneOf joins words for a sentence.
func oneOf(words []string) string { return strings.Join(words, ", ") }
