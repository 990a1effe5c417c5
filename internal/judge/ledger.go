package judge

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
)

// ErrRejected: the same tree was rejected on the same question, and stays so.
var ErrRejected = errors.New("this tree was rejected")

// Subject is what a verdict was about, besides the tree. A verdict on another goal, base or rubric answers another question.
func (in Input) Subject() string {
	h := sha256.New()
	for _, s := range []string{in.BaseTree, in.Goal, in.Rubric} {
		fmt.Fprintf(h, "%d\n%s\n", len(s), s)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Ledger keeps one verdict per tree over the ticks of a run and over its resumption, as JSON. The zero value is
// ready. It is not safe for concurrent use.
type Ledger struct {
	entries map[string]entry
}

type entry struct {
	Subject string  `json:"subject"`
	Verdict Verdict `json:"review"`
}

// Find gives the verdict on this tree for this question. A verdict on another question is none.
func (l *Ledger) Find(in Input) (Verdict, bool) {
	e, ok := l.entries[in.Tree]
	if !ok || e.Subject != in.Subject() {
		return Verdict{}, false
	}
	return e.Verdict, true
}

// On gives every tree's verdict on the question of in, approved or not.
func (l *Ledger) On(in Input) map[string]bool {
	out := map[string]bool{}
	for tree, e := range l.entries {
		if e.Subject == in.Subject() {
			out[tree] = e.Verdict.Approved
		}
	}
	return out
}

// Keep records a verdict. An approval never replaces a rejection of the same tree on the same question: that
// is ErrRejected, and the rejection stands.
func (l *Ledger) Keep(in Input, r Verdict) error {
	if in.Tree == "" {
		return errors.New("keep a verdict: the tree id is missing")
	}
	if old, ok := l.Find(in); ok && !old.Approved && r.Approved {
		return fmt.Errorf("keep a verdict on tree %s: %w", in.Tree, ErrRejected)
	}
	if l.entries == nil {
		l.entries = map[string]entry{}
	}
	l.entries[in.Tree] = entry{in.Subject(), r}
	return nil
}

// MarshalJSON writes tree id → verdict.
func (l Ledger) MarshalJSON() ([]byte, error) {
	if l.entries == nil {
		return []byte("{}"), nil
	}
	return json.Marshal(l.entries)
}

// UnmarshalJSON reads what MarshalJSON wrote. A verdict without its question counts for none.
func (l *Ledger) UnmarshalJSON(data []byte) error {
	var entries map[string]entry
	if err := json.Unmarshal(data, &entries); err != nil {
		return fmt.Errorf("read the verdicts of earlier ticks: %w", err)
	}
	maps.DeleteFunc(entries, func(tree string, e entry) bool { return tree == "" || e.Subject == "" })
	l.entries = entries
	return nil
}
