package app

import (
	"encoding/json"
	"strings"
	"testing"
)

// INV-43: what a file is called stays on its line.
func TestDetectTellsFactsWithWhatShowsThem(t *testing.T) {
	t.Parallel()
	top := freshRepository(t, "", map[string]string{
		"go.mod": "module example.com/shop\n\ngo 1.26\n", "total_test.go": "package shop\n", "acceptance/a\n::error::x\x1b[2J_test.go": "package acceptance\n",
	})
	out, code := proctorIn(t, top, nil, "detect")
	if code != 0 || strings.Contains(out, "\n::") || strings.Contains(out, "\x1b") {
		t.Errorf("%d %q", code, out)
	}
	for _, want := range []string{"stack", "go test ./...", "sure", "go.mod", "proctor init"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	out, code = proctorIn(t, top, nil, "detect", "--json")
	var got struct {
		Facts   []detectedFact
		Unknown []string
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 || len(got.Facts) < 2 || got.Facts[0].About != "stack" || got.Facts[0].Confidence != "sure" || got.Facts[0].Evidence[0] != "go.mod" {
		t.Errorf("%d %v %s", code, err, out)
	}
	out, code = proctorIn(t, freshRepository(t, "", map[string]string{"notes.txt": "x"}), nil, "detect")
	if code != 0 || !strings.Contains(out, "unknown: ") || strings.Contains(out, "gates.iteration  ") {
		t.Errorf("nothing to go by: %d %s", code, out)
	}
	if out, code = proctorIn(t, t.TempDir(), nil, "detect"); code != 1 || !strings.Contains(out, "Next:") {
		t.Errorf("no repository: %d %s", code, out)
	}
}
