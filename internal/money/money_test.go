package money

import (
	"encoding/json"
	"testing"
)

func TestAmountsAreReadAndPrintedExactly(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]USD{
		"0": 0, "5": 5 * Dollar, "0.25": Dollar / 4, "12.000001": 12*Dollar + 1000, "0.000000001": 1, " 1.50 ": Dollar * 3 / 2,
	} {
		got, err := Parse(in)
		if err != nil || got != want {
			t.Errorf("Parse(%q) = %d, %v; want %d", in, got, err, want)
		}
		back, err := Parse(got.Decimal())
		if err != nil || back != got {
			t.Errorf("Decimal(%d) = %q does not read back: %v", got, got.Decimal(), err)
		}
	}
	for _, in := range []string{"", "-1", "+1", "1e3", "1,5", "$5", ".5", "1.0000000001", "99999999999999", "0x10", "1_000", "1.-5", "NaN"} {
		if got, err := Parse(in); err == nil {
			t.Errorf("Parse(%q) = %d, want an error", in, got)
		}
	}
}

func TestACostIsNeverShownAsLessThanItWas(t *testing.T) {
	t.Parallel()
	for a, want := range map[USD]string{0: "$0.0000", 1: "$0.0001", Dollar: "$1.0000", Dollar/4 + 1: "$0.2501", -1: "-$0.0001"} {
		if got := a.String(); got != want {
			t.Errorf("String(%d) = %q, want %q", a, got, want)
		}
	}
}

func TestSumsSaturate(t *testing.T) {
	t.Parallel()
	if got := Max.Add(1); got != Max {
		t.Errorf("Max+1 = %d", got)
	}
	if got := Dollar.Add(Dollar); got != 2*Dollar {
		t.Errorf("1+1 = %d", got)
	}
}

func TestJSONKeepsEveryNanoDollar(t *testing.T) {
	t.Parallel()
	for _, a := range []USD{0, 1, -1, Dollar, 31_250_000, 4_999_999_999} {
		b, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		var back USD
		if err := json.Unmarshal(b, &back); err != nil || back != a {
			t.Errorf("%d became %s and then %d (%v)", a, b, back, err)
		}
	}
}
