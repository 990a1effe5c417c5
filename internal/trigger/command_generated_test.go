package trigger

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// fragments are lines and half lines that open, close and confuse Markdown's constructs.
var fragments = []string{
	"/proctor run", "/proctor run `", "text", "", "", "> q", ">", "> ```", "> - a", ">>> x", "- a", "-", "  - b", "- ```", "- > q", "1. a", "2) b", "   c", "  ", "    code",
	"```", "  ```", "````", "~~~", "   ~~~", "```go", "`` ` ``", "a `", "a ``", "<div>", "</div>", "<x>", "<x y='", "'>", "<!-- a", "-->", "<pre>", "</pre>", "<?", "?>",
	"# h", "===", "---", "***", "[a]: b", "[a]:", "\"t", "\"", "[x](y", "[x](y \"", "\")", ")", "[x", "]", "![i", "](u)", "\\`", "<https://a.b>", "a < b", "\tc", "-\ta", ">\tq",
}

// INV-48: over bodies put together from such lines, what is taken is what a full parser shows.
func TestGeneratedMarkdownNeverHidesACommandThatIsTaken(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	taken := 0
	for range 20_000 {
		lines := make([]string, 1+rng.IntN(8))
		for i := range lines {
			lines[i] = fragments[rng.IntN(len(fragments))]
		}
		lines = append(lines, "/proctor run", fragments[rng.IntN(len(fragments))])
		body := strings.Join(lines, "\n")
		line, bad := disagreement(body)
		if bad {
			t.Fatalf("%q: took %q, which CommonMark does not show as text", body, line)
		}
		if line != "" {
			taken++
		}
	}
	if taken < 5_000 {
		t.Errorf("only %d of 20000 bodies had a command: the reader refuses too much to be worth comparing", taken)
	}
}
