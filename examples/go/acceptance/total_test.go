// Package acceptance is held out: what a customer would check, from outside.
package acceptance

import (
	"testing"

	"example.com/shop"
)

func TestHalvesAreRoundedUp(t *testing.T) {
	if got := shop.Total(1, 5, 10); got != 5 {
		t.Errorf("Total = %d, want 5", got)
	}
}
