package evidence

import (
	"strings"
	"testing"
)

// Whoever reads a number of a split run reads whose word it is, in every long view; a run in one job says nothing of it.
func TestASplitRunSaysWhoVouchesForWhat(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		staged *Staged
		want   string
		not    string
	}{
		"one job":   {nil, "", "verify job"},
		"agent":     {&Staged{Stage: "agent", Agent: "r1"}, "its token can push nothing", "without secrets"},
		"verify":    {&Staged{Stage: "verify", Agent: "r1", Verified: true}, "its own findings", "word of"},
		"published": {&Staged{Stage: "publish", Agent: "r1", Verified: true}, "reviewer's verdict are the word of the agent's job", "No verify job"},
		"told":      {&Staged{Stage: "tell", Agent: "r1"}, "No verify job vouches", "findings of the verify job"},
	} {
		r := sample()
		r.Staged = c.staged
		if err := Validate(r); err != nil {
			t.Fatal(err)
		}
		page, err := Report(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		for view, text := range map[string]string{"pull request": PRBody(r, 0), "summary": JobSummary(r), "report": string(page)} {
			text = strings.NewReplacer("&#39;", "'", "’", "'").Replace(text)
			if !strings.Contains(text, c.want) || strings.Contains(text, c.not) {
				t.Errorf("%s, %s: want %q and not %q in\n%s", name, view, c.want, c.not, text)
			}
		}
	}
}
