package secrets

import (
	"math"
	"strings"
)

// entropy is Shannon's, in bits per byte.
func entropy(s string) float64 {
	if s == "" {
		return 0
	}
	var count [256]int
	for i := range len(s) {
		count[s[i]]++
	}
	bits := 0.0
	for _, n := range count {
		if n > 0 {
			p := float64(n) / float64(len(s))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}

// isPlaceholder knows values that stand for a secret without being one: references to variables, masks, and
// runs that a person types when asked for something long.
func isPlaceholder(value string) bool {
	for _, mark := range []string{"${", "{{", "$(", "<", "%(", "***", "...", "xxxxxx", "XXXXXX"} {
		if strings.Contains(value, mark) {
			return true
		}
	}
	if strings.HasPrefix(value, "$") && !strings.HasPrefix(value, "$2") && !strings.HasPrefix(value, "$apr1$") && !strings.HasPrefix(value, "$5$") && !strings.HasPrefix(value, "$6$") {
		return true
	}
	for _, run := range []string{"0123456789abcdef", "1234567890abcdef", "abcdefghijkl", "00000000000000"} {
		if strings.Contains(strings.ToLower(value), run) {
			return true
		}
	}
	return false
}
