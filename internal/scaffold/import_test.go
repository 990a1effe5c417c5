package scaffold

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/config"
)

// everyLoopkitKey has each key of that tool's file once.
const everyLoopkitKey = `goal = "do it"
repo = "."
branch = "loopkit/run"
[agent]
adapter = "claude-api"
model = "claude-opus-4-8"
max_cost_usd = 7.5
max_tool_calls = 9
args = ["-x"]
use_api_key = true
[prompt]
anchors = ["PROMPT.md"]
[plan]
file = "PLAN.md"
[gate]
iteration = "pytest -q \"tests/unit\""
acceptance = "pytest held"
regression = "pytest"
[stops]
max_iter = 12
no_progress_after = 4
plan_stall_after = 5
[safety]
protected_paths = ["tests/", "LICENSE", "*.lock"]
require_clean_tree = true
allow_branches = ["x/*"]
forbid_branches = ["main"]
gate_stability_runs = 3
[remote]
enabled = true
name = "origin"
push = true
open_pr = true
provider = "auto"
pr_base = "develop"
draft = true
[review]
enabled = false
command = "./review"
[trace]
enabled = false
project = "p"
`

func imported(t *testing.T, name, text string) Imported {
	t.Helper()
	all, err := Import(fstest.MapFS{name: {Data: []byte(text)}})
	if err != nil || len(all) != 1 {
		t.Fatalf("%v, %v", all, err)
	}
	return all[0]
}

func TestEveryKeyOfAnImportedFileIsTakenOrListed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		keys map[string]rule
		want string
	}{
		"loopkit.toml": {everyLoopkitKey, loopkitKeys(), `version: 1
agent: {name: anthropic, model: claude-opus-4-8}
prompt: {anchors: [PROMPT.md]}
gates: {iteration: 'pytest -q "tests/unit"', acceptance: {run: pytest held}, regression: pytest, stability: 3}
plan: {from: file, file: PLAN.md}
review: {enabled: false}
stops: {max_ticks: 12, max_cost_usd: 7.5, no_progress_after: 4, plan_stall_after: 5}
policy: {protected: [tests/**, LICENSE, LICENSE/**]}
publish: {base: develop}
`},
		"autoloop.toml": {`repo = "a/b"
impl_model = "claude-sonnet-4-5"
impl_timeout = 600
test_timeout = 90
verify_cmd = "make check"
pr_reviewer = "maya"
lint_command = "ruff"
max_retries = 3
triage_model = "haiku"
triage_timeout = 90
triage_labels = ["ready"]
max_story_points = 5
tree_truncation = 1
spec_truncation = 1
diff_truncation = 1
error_truncation = 1
`, autoloopKeys(), `version: 1
agent: {model: claude-sonnet-4-5, timeout: 10m}
gates: {iteration: make check, timeout: 90s}
publish: {reviewers: [maya]}
`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := imported(t, name, c.text)
			want, err := config.Load("want", []byte(c.want))
			if err != nil {
				t.Fatal(err)
			}
			have, err := config.Load("have", Starter(got.Settings, nil))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, have); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			for key := range c.keys {
				taken := slices.ContainsFunc(got.Settings, func(s Setting) bool { return s.From == name+": "+key })
				left := slices.ContainsFunc(got.Left, func(l string) bool { return strings.HasPrefix(l, name+": "+key+" ") })
				if !taken && !left {
					t.Errorf("nothing is said of %s", key)
				}
			}
		})
	}
}

func TestWhatCannotBeTakenOverIsListedWithWhy(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"[agent]\nadapter = \"mock\"":                          `names the agent "mock"`,
		"[gate]\niteration = 3":                                "another kind",
		"[agent]\nmax_cost_usd = 0":                            "no amount above zero",
		"[stops]\nmax_iter = 100000":                           "does not fit here",
		"[safety]\nprotected_paths = [\"a*\"]":                 `the pattern "a*"`,
		"[new]\nthing = 1":                                     "new.thing is not known here",
		"[safety]\nprotected_paths = [\"../up\"]\n":            "does not fit here",
		"[prompt]\nanchors = [\"/etc/passwd\", \"AGENTS.md\"]": "does not fit here",
	} {
		got := imported(t, "loopkit.toml", text)
		if len(got.Settings) != 0 || !strings.Contains(strings.Join(got.Left, "\n"), want) {
			t.Errorf("%s: taken %v, left %q, want %q", text, got.Settings, got.Left, want)
		}
	}
	if got := imported(t, "autoloop.toml", `impl_model = "opus"`); len(got.Settings) != 0 || !strings.Contains(got.Left[0], "no full id") {
		t.Errorf("an alias: %+v", got)
	}
	_, err := Import(fstest.MapFS{"loopkit.toml": {Data: []byte("a = 1\nb = = 2\n")}})
	if err == nil || !strings.Contains(err.Error(), "loopkit.toml:2:") {
		t.Errorf("broken TOML: %v", err)
	}
}
