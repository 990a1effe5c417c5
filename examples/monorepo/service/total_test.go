package shop

import "testing"

func TestTotal(t *testing.T) {
	if got := Total(2, 150, 0); got != 300 {
		t.Errorf("Total = %d, want 300", got)
	}
}
