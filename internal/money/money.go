// Package money owns amounts of US dollars as whole nano-dollars. It must never hold a price,
// a rate or a floating-point sum: totals that are compared with a ceiling are exact.
package money

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// USD is an amount in nano-dollars (1e-9 USD): one token of the cheapest cached input is still a
// whole number, and the largest amount is about nine billion dollars.
type USD int64

// Dollar is one US dollar.
const Dollar USD = 1_000_000_000

// Max is the largest amount that can be told; sums saturate there instead of wrapping.
const Max USD = math.MaxInt64

var errFormat = errors.New("want dollars like 5, 0.25 or 12.000001")

// Parse reads a decimal number of dollars, at most nine digits after the point. It takes no sign,
// exponent or currency mark.
func Parse(s string) (USD, error) {
	whole, frac, _ := strings.Cut(strings.TrimSpace(s), ".")
	if whole == "" || len(frac) > 9 || strings.ContainsAny(whole+frac, "+-_eE") {
		return 0, fmt.Errorf("amount %q: %w", s, errFormat)
	}
	w, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || w > int64(Max/Dollar)-1 {
		return 0, fmt.Errorf("amount %q: %w", s, errFormat)
	}
	f, err := strconv.ParseInt((frac + "000000000")[:9], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("amount %q: %w", s, errFormat)
	}
	return USD(w)*Dollar + USD(f), nil
}

// Add returns a+b and saturates at Max.
func (a USD) Add(b USD) USD {
	if b > 0 && a > Max-b {
		return Max
	}
	return a + b
}

// String prints dollars for people: "$0.0312"; four digits after the point, rounded up so that a
// cost is never shown as less than it was.
func (a USD) String() string {
	const step = Dollar / 10_000
	sign := ""
	if a < 0 {
		sign, a = "-", -a
	}
	q := a / step
	if a%step != 0 {
		q++
	}
	return fmt.Sprintf("%s$%d.%04d", sign, q/10_000, q%10_000)
}

// Decimal prints the exact amount without a currency mark and without trailing zeros: "0.03125".
func (a USD) Decimal() string {
	sign := ""
	if a < 0 {
		sign, a = "-", -a
	}
	s := fmt.Sprintf("%s%d.%09d", sign, a/Dollar, a%Dollar)
	return strings.TrimRight(strings.TrimRight(s, "0"), ".")
}

// MarshalJSON writes a JSON number of dollars, exact.
func (a USD) MarshalJSON() ([]byte, error) { return []byte(a.Decimal()), nil }

// UnmarshalJSON reads what MarshalJSON wrote.
func (a *USD) UnmarshalJSON(b []byte) error {
	var n json.Number
	if err := json.Unmarshal(b, &n); err != nil {
		return err
	}
	v, err := Parse(strings.TrimPrefix(n.String(), "-"))
	if err != nil {
		return err
	}
	if strings.HasPrefix(n.String(), "-") {
		v = -v
	}
	*a = v
	return nil
}
