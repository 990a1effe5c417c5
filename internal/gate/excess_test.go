package gate

import (
	"context"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/sandbox"
)

// broke is a sandbox in which every tree breaks the same limit.
type broke string

func (b broke) Run(_ context.Context, c sandbox.Command) (sandbox.Result, error) {
	_, _ = c.Stdout.Write([]byte("the program's own words\n"))
	return sandbox.Result{ExitCode: -1, Signal: "killed", Exceeded: string(b), Limits: sandbox.Limits{Processes: 50, DiskBytes: 60 << 20, Output: 3 << 20}}, nil
}

func TestALimitThatEndsAGateIsToldInWords(t *testing.T) {
	t.Parallel()
	for limit, want := range map[string]string{
		"processes": "more than 50 processes at a time, as a fork bomb has",
		"disk":      "more than 60 MiB of disk",
		"output":    "printed more than 3 MiB",
		"":          "",
	} {
		t.Run("INV-39 "+limit, func(t *testing.T) {
			t.Parallel()
			r, err := Runner{Box: broke(limit)}.Run(t.Context(), Spec{Name: "iteration", Argv: []string{"x"}}, Place{Dir: "/a", Home: "/b", Tmp: "/c", KeepOutput: true})
			if err != nil || r.Status != Failed {
				t.Fatalf("%+v, %v", r, err)
			}
			if (r.Excess == "") != (want == "") || !strings.Contains(r.Excess, want) || !strings.Contains(Feedback(r, 1000), want) {
				t.Errorf("INV-39 it is told %q, the agent hears %q", r.Excess, Feedback(r, 1000))
			}
			sealed, err := Runner{Box: broke(limit)}.Run(t.Context(), Spec{Name: "acceptance", Argv: []string{"x"}}, Place{Dir: "/a", Home: "/b", Tmp: "/c", Sealed: true})
			if err != nil || sealed.Excess != "" || want != "" && strings.Contains(Feedback(sealed, 1000), want) {
				t.Errorf("INV-27 of a sealed gate it is told %+v, %v", sealed, err)
			}
		})
	}
}
