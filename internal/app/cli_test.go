package app

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/judge"
)

// What people type wrong is answered in one line that says what to type.
func TestAMistypedCommandLineSaysWhatToType(t *testing.T) {
	t.Parallel()
	top := freshRepository(t, "", nil)
	for line, want := range map[string]string{
		"rum":                            `unknown command "rum" for "proctor". Next: proctor run, if you mean that; proctor --help lists the commands`,
		"label":                          `unknown command "label" for "proctor". Next: proctor --help lists the commands`,
		"run --issue abc":                `--issue is "abc", and has to be a whole number, such as 12. Next: proctor run --help lists the flags`,
		"run --goal x --max-duration 30": `--max-duration is "30", and has to be a time with its unit, such as 30m. Next: proctor run --help lists the flags`,
		"run --gaol x":                   `unknown flag: --gaol. Next: proctor run --help lists the flags`,
		"run":                            `nothing says what to work on. Next: give --issue N or --goal "what to do"`,
		"run --issue 1 --goal x":         `--issue and --goal are both given, and a run works on one. Next: leave one out`,
	} {
		out, code := proctorIn(t, top, nil, strings.Fields(line)...)
		if code != exitUsage || want != "" && out != "proctor: "+want+"\n" {
			t.Errorf("proctor %s: exit %d, says %q, want %q", line, code, out, want)
		}
	}
}

// The record, the comment and the log show a reason and a next step: what the text of a mistake says of both is told once.
func TestAUsageErrorTellsItsNextStepOnce(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]string{
		"a is wrong. Next: mend it":                    {"a is wrong", "mend it"},
		"a is wrong: 1:2: unknown key":                 {"a is wrong: 1:2: unknown key", ""},
		"a is wrong. Next: mend it. Next: not a third": {"a is wrong", "mend it. Next: not a third"},
	} {
		e := terminalOf(t.Context(), fmt.Errorf("open: %w", usage(errors.New(text))))
		if e.terminal != evidence.UsageError || e.reason != want[0] || e.next != want[1] {
			t.Errorf("%q: %q ends %q with the next step %q", text, e.terminal, e.reason, e.next)
		}
	}
}

// What the loop says already is not said again by what it was told.
func TestNoVerdictIsToldOnce(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("%w: two answers in a row were none: %w", judge.ErrUnavailable, judge.ErrUnreadable)
	if got := unheard(err); got.Approved || got.Rejected || strings.Contains(got.Detail, judge.ErrUnavailable.Error()) || !strings.Contains(got.Detail, "two answers") {
		t.Errorf("the loop hears %+v", got)
	}
}
