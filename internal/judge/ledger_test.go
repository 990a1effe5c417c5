package judge

import (
	"encoding/json"
	"errors"
	"testing"
)

var (
	yes = Verdict{Approved: true}
	no  = Verdict{Findings: []Finding{{Category: Correctness, Severity: "high", Detail: "wrong"}}}
)

// INV-28: a rejected tree stays rejected. INV-10: over a resumption too.
func TestARejectedTreeStaysRejected(t *testing.T) {
	t.Parallel()
	in := Input{Goal: "g", Rubric: "r", BaseTree: "b", Tree: "t"}
	var l Ledger
	if err := l.Keep(in, no); err != nil {
		t.Fatal(err)
	}
	if err := l.Keep(in, yes); !errors.Is(err, ErrRejected) {
		t.Errorf("got %v, want ErrRejected", err)
	}
	raw, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	var resumed Ledger
	if err := json.Unmarshal(raw, &resumed); err != nil {
		t.Fatal(err)
	}
	if v, ok := resumed.Find(in); !ok || v.Approved {
		t.Errorf("after resuming: got %+v, %v; want the rejection", v, ok)
	}
	if err := resumed.Keep(in, yes); !errors.Is(err, ErrRejected) {
		t.Errorf("after resuming: got %v, want ErrRejected", err)
	}
	// The controls: another tree is approved, and an approval may become a rejection.
	other := in
	other.Tree = "t2"
	if err := l.Keep(other, yes); err != nil {
		t.Errorf("control: %v", err)
	}
	if v, ok := l.Find(other); !ok || !v.Approved {
		t.Error("control: the other tree is not approved")
	}
	if err := l.Keep(other, no); err != nil {
		t.Errorf("control: %v", err)
	}
}

// INV-10: a verdict on another goal, base or rubric is none.
func TestAVerdictAnswersOnlyItsOwnQuestion(t *testing.T) {
	t.Parallel()
	in := Input{Goal: "g", Rubric: "r", BaseTree: "b", Tree: "t"}
	var l Ledger
	if err := l.Keep(in, yes); err != nil {
		t.Fatal(err)
	}
	for name, other := range map[string]Input{
		"goal":             {Goal: "g2", Rubric: "r", BaseTree: "b", Tree: "t"},
		"rubric":           {Goal: "g", Rubric: "r2", BaseTree: "b", Tree: "t"},
		"base":             {Goal: "g", Rubric: "r", BaseTree: "b2", Tree: "t"},
		"moved boundaries": {Goal: "gr", Rubric: "", BaseTree: "b", Tree: "t"},
	} {
		if v, ok := l.Find(other); ok {
			t.Errorf("%s: got %+v, want none", name, v)
		}
	}
}

func TestALedgerTrustsNothingThatIsTornOrOld(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{`{"t":true}`, `{"t":`, `[]`, `{"t":{"review":{"approved":"true"}}}`} {
		var l Ledger
		if err := json.Unmarshal([]byte(raw), &l); err == nil {
			t.Errorf("%s is read", raw)
		}
	}
	var l Ledger
	if err := json.Unmarshal([]byte(`{"t":{"review":{"approved":true}}}`), &l); err != nil {
		t.Fatal(err)
	}
	if _, ok := l.Find(Input{Tree: "t"}); ok {
		t.Error("a verdict without its question counts")
	}
	if raw, err := json.Marshal(Ledger{}); err != nil || string(raw) != "{}" {
		t.Errorf("empty: %s, %v", raw, err)
	}
}

func TestVerdictsAreGivenPerQuestion(t *testing.T) {
	t.Parallel()
	one, other := Input{BaseTree: "b", Goal: "g", Tree: "t1"}, Input{BaseTree: "b", Goal: "another goal", Tree: "t2"}
	var l Ledger
	for in, approved := range map[*Input]bool{&one: false, &other: true} {
		if err := l.Keep(*in, Verdict{Approved: approved}); err != nil {
			t.Fatal(err)
		}
	}
	one.Tree = ""
	if got := l.On(one); len(got) != 1 || got["t1"] {
		t.Errorf("on the first question: %v", got)
	}
	other.Rubric = "a rubric"
	if got := l.On(other); len(got) != 0 {
		t.Errorf("INV-10 another rubric is another question: %v", got)
	}
}
