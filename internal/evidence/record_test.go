package evidence

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestARecordThatContradictsItselfIsNamed(t *testing.T) {
	t.Parallel()
	if err := Validate(sample()); err != nil {
		t.Fatalf("control: %v", err)
	}
	for name, c := range map[string]struct {
		change func(*Record)
		want   string
	}{
		"INV-54 calls":              {func(r *Record) { r.Totals.Calls++ }, "totals say 5 calls, the record has 4"},
		"INV-54 ticks":              {func(r *Record) { r.Totals.Ticks = 1 }, "totals say 1 ticks"},
		"INV-54 dollars":            {func(r *Record) { r.Totals.CostUSD++ }, "totals say 0.077600001"},
		"INV-54 dollars of a call":  {func(r *Record) { r.Calls[0].CostUSD++ }, "the calls"},
		"INV-54 dollars of a tick":  {func(r *Record) { r.Ticks[0].CostUSD++ }, "tick 1 says it cost"},
		"INV-54 issue":              {func(r *Record) { r.Totals.IssueUSD = 1 }, "the issue cost"},
		"INV-54 negative":           {func(r *Record) { r.Calls[0].CostUSD = -1 }, "costs -$"},
		"INV-54 duration":           {func(r *Record) { r.Totals.Millis++ }, "ms, the times"},
		"INV-54 ticks too long":     {func(r *Record) { r.Ticks[0].Millis = 1e9 }, "the whole run"},
		"INV-54 call of no tick":    {func(r *Record) { r.Calls[0].Tick = 9 }, "belongs to tick 9"},
		"exit code":                 {func(r *Record) { r.ExitCode = 2 }, "terminal done has exit code 2, want 0"},
		"terminal":                  {func(r *Record) { r.Terminal = "great" }, `"great" is not one`},
		"reason":                    {func(r *Record) { r.Reason = "" }, "every ending is told"},
		"tick numbers":              {func(r *Record) { r.Ticks[1].N = 3 }, "tick 3 follows tick 1"},
		"first tick":                {func(r *Record) { r.Ticks[0].N, r.Ticks[1].N = 4, 5 }, "first tick is 4"},
		"head":                      {func(r *Record) { r.Head = commit("3") }, "the head is not the last tick's commit"},
		"published elsewhere":       {func(r *Record) { r.Published.Commit = hexid("9", 40) }, "is not the head"},
		"published in a dry run":    {func(r *Record) { r.DryRun = true }, "a dry run published"},
		"no proof":                  {func(r *Record) { r.Ticks[1].Proof = nil }, "done without a proof"},
		"red proof":                 {func(r *Record) { r.Ticks[1].Proof[2].Status = "failed" }, "of the proof is failed"},
		"empty change":              {func(r *Record) { r.Ticks[1].Files = nil }, "done with an empty change"},
		"no tick":                   {func(r *Record) { r.Ticks, r.Calls = nil, nil; r.Settle(0) }, "done without a tick"},
		"commit id":                 {func(r *Record) { r.Base.ID = "main" }, `base commit "main"`},
		"run id":                    {func(r *Record) { r.Run = "../x" }, `run id "../x"`},
		"digest":                    {func(r *Record) { r.Ticks[0].Gates[0].Digest = "md5:1" }, "want SHA-256"},
		"log elsewhere":             {func(r *Record) { r.Ticks[0].Gates[0].Log = "../../x.log.gz" }, "is not a file beside"},
		"INV-27 log of the proof":   {func(r *Record) { r.Ticks[0].Proof[0].Log = "gate-01-a.log.gz" }, "held out and has a log"},
		"INV-27 log of acceptance":  {func(r *Record) { r.Baseline[1].Log = "gate-00-a.log.gz" }, "held out and has a log"},
		"INV-27 time of the proof":  {func(r *Record) { r.Ticks[0].Proof[0].At = 40_000 }, "held out and says when it began"},
		"passed with an exit code":  {func(r *Record) { r.Ticks[0].Gates[0].ExitCode = 3 }, "passed with exit code 3"},
		"proof elsewhere":           {func(r *Record) { r.Ticks[0].Proof[0].Where = "gate" }, `ran in "gate"`},
		"times":                     {func(r *Record) { r.Ended = r.Started.Add(-time.Hour) }, "want two times in order"},
		"reproduced without a look": {func(r *Record) { r.Finish(Reproduced, "x", "") }, "what was compared is []"},
		"reproduced and differs":    {func(r *Record) { looked(r, Reproduced, false) }, "reproduced, and what was compared is"},
		"differs and is the same":   {func(r *Record) { looked(r, Differs, true) }, "nothing that was compared does"},
		"not repeated":              {func(r *Record) { r.Finish(NotRepeated, "x", "") }, "no pull request is named"},
		"INV-29 approved":           {func(r *Record) { looked(r, Approved, true); r.Ticks[1].Review = nil }, "approved, and the review is"},
		"INV-29 approved by a no":   {func(r *Record) { looked(r, Approved, true); r.Ticks[1].Review = &Review{} }, "approved, and the review is"},
		"rejected by a yes":         {func(r *Record) { looked(r, Rejected, true); r.Ticks[1].Review = &Review{Approved: true} }, "rejected, and the review is"},
		"looked and published":      {func(r *Record) { looked(r, Reproduced, true); r.Published = sample().Published }, "a command that looks"},
		"schema":                    {func(r *Record) { r.Schema = 0 }, "schema is 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := sample()
			c.change(&r)
			err := Validate(r)
			if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// looked makes a record one of a command that looked at a pull request.
func looked(r *Record, terminal string, same bool) {
	r.Published = nil
	r.Inspection = &Inspection{Number: 7, Compared: []Compared{{"tree", "a", "b", same}}}
	r.Finish(terminal, "because", "")
}

func TestSettleMakesTotalsReconcile(t *testing.T) {
	t.Parallel()
	r := sample()
	r.Totals = Totals{}
	r.Ticks[0].CostUSD = 77
	r.Settle(5)
	if err := Validate(r); err != nil {
		t.Errorf("INV-54: %v", err)
	}
	if want := (Totals{Ticks: 2, Calls: 4, CostUSD: 77_600_000, Millis: 94000, IssueUSD: 77_600_005}); r.Totals != want {
		t.Errorf("got %+v, want %+v", r.Totals, want)
	}
}

func TestAClockThatIsSetBackDuringTheRunDoesNotSpoilTheRecord(t *testing.T) {
	t.Parallel()
	r := sample()
	start := time.Now() // carries the monotonic clock, as a real run's times do
	r.Started, r.Ended = start, start.Add(94*time.Second+999*time.Microsecond+999)
	r.Settle(0)
	got, err := Write(t.TempDir(), r, nil)
	if err != nil || got.Totals.Millis != 94000 {
		t.Errorf("INV-54: %d ms, %v", got.Totals.Millis, err)
	}
	r.Started, r.Ended = start.Round(0), start.Round(0).Add(-time.Hour)
	r.Ticks, r.Calls, r.Published = nil, nil, nil
	r.Finish(Cancelled, "the job was cancelled", "")
	r.Settle(0)
	if err := Validate(r); err != nil {
		t.Errorf("INV-54: %v", err)
	}
}

func TestTheTableOfTerminalsIsTheOneThatIsDocumented(t *testing.T) {
	t.Parallel()
	want := map[string]int{
		"done": 0, "already_satisfied": 0, "answered": 0, "reproduced": 0, "differs": 2, "not_repeated": 5, "approved": 0, "rejected": 2, "stopped_budget": 3, "stopped_time": 3, "no_progress": 2, "review_stall": 2, "plan_stall": 2,
		"overfit": 2, "tick_cap": 2, "not_reproduced": 2, "safety_halt": 4, "gate_broken": 5, "gate_flaky": 5, "judge_unavailable": 5, "agent_unavailable": 5,
		"internal_error": 5, "publish_failed": 6, "refused": 7, "cancelled": 130, "usage_error": 1,
	}
	got := map[string]int{}
	for _, term := range Terminals() {
		got[term.Name] = term.Exit
		if term.Title == "" || term.Meaning == "" || term.Next == "" {
			t.Errorf("%s does not say what it means or what to do", term.Name)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	var r Record
	r.Finish("exploded", "boom", "")
	if r.Terminal != InternalError || r.ExitCode != 5 || !strings.Contains(r.Reason, "exploded") {
		t.Errorf("unknown ending became %+v", r)
	}
}

func TestARecordSurvivesTheDisk(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "runs", "1")
	want, err := Write(dir, sample(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, filepath.Join(dir, RecordFile)} {
		got, err := Read(path)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("-written +read:\n%s", d)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	b, err := os.ReadFile(filepath.Join(dir, RecordFile))
	if err != nil || strings.Contains(string(b), "null") {
		t.Errorf("a list is null: %v", err)
	}
}

func TestAFlawedRecordIsWrittenAndSaysSo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := sample()
	r.Totals.Calls = 99
	if _, err := Write(dir, r, nil); !errors.Is(err, ErrInvalid) {
		t.Fatalf("INV-54: %v", err)
	}
	got, err := Read(dir)
	if !errors.Is(err, ErrInvalid) || got.Run != r.Run || !strings.Contains(strings.Join(got.Notes, "\n"), "totals say 99 calls") {
		t.Errorf("%v, notes %q", err, got.Notes)
	}
}

func TestSecretsDoNotReachTheRecord(t *testing.T) {
	t.Parallel()
	const secret = "canary-secret-value-1"
	r := sample()
	r.Reason += " " + secret
	r.Ticks[1].Review.Findings[0].Detail = "see " + secret
	r.Head.Tree += "" // ids stay as they are
	dir := t.TempDir()
	got, err := Write(dir, r, NewRedactor(secret))
	if err != nil {
		t.Fatal(err)
	}
	b, _ := os.ReadFile(filepath.Join(dir, RecordFile))
	if strings.Contains(string(b), secret) || strings.Count(string(b), Redacted) != 2 || *got.Head != *r.Head {
		t.Errorf("INV-34: %s", b)
	}
	if !strings.Contains(r.Reason, secret) {
		t.Error("the caller's record was changed")
	}
	control := t.TempDir()
	if _, err := Write(control, r, nil); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(filepath.Join(control, RecordFile)); strings.Count(string(b), secret) != 2 {
		t.Error("control: the secret does not reach the record without the redactor")
	}
}

func TestWhatIsNoRecordIsRefusedByName(t *testing.T) {
	t.Parallel()
	newer, _ := json.Marshal(map[string]any{"schema": SchemaVersion + 1, "ticks": "a new shape"})
	for text, want := range map[string]string{
		string(newer):                  "it has schema 2 and this program knows up to 1: use a newer proctor",
		`{"a": 1}`:                     "no schema number",
		`not json`:                     "not a run record",
		`{"schema": 1, "ticks": 5}`:    "not a run record",
		`{"schema": 1, "started": ""}`: "not a run record",
	} {
		path := filepath.Join(t.TempDir(), "r.json")
		if err := WriteFile(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(path); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
}
