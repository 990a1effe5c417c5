package config

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/money"
)

const file = ".github/proctor.yml"

func TestAnEmptyFileIsTheDefault(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]string{
		"nothing": "", "blank": "\n\n", "comments": "# later\n", "marker": "---\n", "bom": "\ufeff# x\n",
		"sections without keys": "gates:\n  # iteration: npm test\nstops:\n", "braces": "{}\n",
	} {
		got, err := Load(file, []byte(data))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(Default(), got); diff != "" {
			t.Errorf("%s (-default +got):\n%s", name, diff)
		}
	}
}

func TestTheFileOfTheDesignLoads(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/full.yml")
	if err != nil {
		t.Fatal(err)
	}
	got, err := Load(file, data)
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Agent.Model = "claude-opus-4-8"
	want.Agent.Args = []string{}
	want.Prompt.Anchors = []string{"AGENTS.md"}
	want.Setup = []Command{Shell("npm ci")}
	want.Workspace.Carry = []string{"node_modules"}
	want.Gates.Iteration = Shell("npm test")
	want.Gates.Acceptance.Run = Shell("npm run test:acceptance")
	want.Gates.Acceptance.Sealed = []string{"tests/acceptance/**"}
	want.Gates.Regression = Shell("npm run test:all")
	want.Review.Model = "claude-sonnet-4-5"
	want.Review.Criteria = []string{"docs/rubric.md"}
	want.Trigger.Bots = []int64{}
	want.Policy.Protected = []string{"tests/acceptance/**"}
	want.Policy.Deny = []string{"infra/**"}
	want.Policy.HighRisk = []string{"migrations/**"}
	want.Sandbox.Egress = []string{"registry.example.com:443"}
	want.Publish.Reviewers, want.Publish.Assignees, want.Publish.Labels = []string{}, []string{}, []string{}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestValuesAreReadAsWritten(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, yaml string
		got        func(Config) any
		want       any
	}{
		{"acceptance as one command", "gates:\n  acceptance: make acceptance\n", func(c Config) any { return c.Gates.Acceptance.Run }, Shell("make acceptance")},
		{"acceptance as arguments", "gates:\n  acceptance: [make, acceptance]\n", func(c Config) any { return c.Gates.Acceptance.Run }, Command{Argv: []string{"make", "acceptance"}}},
		{"gate as arguments", "gates: {iteration: [npm, test]}\n", func(c Config) any { return c.Gates.Iteration }, Command{Argv: []string{"npm", "test"}}},
		{"gate of several lines", "gates:\n  iteration: |\n    set -e\n    make\n", func(c Config) any { return c.Gates.Iteration.Argv }, []string{"sh", "-c", "set -e\nmake"}},
		{"setup with both", "setup:\n  - npm ci\n  - [make, deps]\n", func(c Config) any { return c.Setup }, []Command{Shell("npm ci"), {Argv: []string{"make", "deps"}}}},
		{"sandbox as one word", "sandbox: strict\n", func(c Config) any { return c.Sandbox.Mode }, "strict"},
		{"off is a word", "sandbox: {mode: off}\n", func(c Config) any { return c.Sandbox.Mode }, "off"},
		{"agent as one word", "agent: codex\n", func(c Config) any { return c.Agent.Name }, "codex"},
		{"money is exact", "stops: {max_cost_usd: 0.1}\n", func(c Config) any { return c.Stops.MaxCost }, money.USD(100_000_000)},
		{"duration", "stops: {max_duration: 1h30m}\n", func(c Config) any { return c.Stops.MaxDuration }, 90 * time.Minute},
		{"size with a unit", "policy: {max: {file_bytes: 2MiB}}\n", func(c Config) any { return c.Policy.Max.FileBytes }, int64(2 << 20)},
		{"size as a number", "policy: {max: {file_bytes: 512}}\n", func(c Config) any { return c.Policy.Max.FileBytes }, int64(512)},
		{"prices sorted", "budget: {price: {b: {input: 3, output: 15.5}, a: {input: 0, output: 0, cache_read: 0.3}}}\n", func(c Config) any { return c.Budget.Price },
			[]Price{{Model: "a", CacheRead: 300_000_000}, {Model: "b", Input: 3 * money.Dollar, Output: 15_500_000_000}}},
		{"anchor and alias", "policy:\n  protected: &p [docs/**]\n  deny: *p\n", func(c Config) any { return c.Policy.Deny }, []string{"docs/**"}},
		{"CRLF", "stops:\r\n  max_ticks: 3\r\n", func(c Config) any { return c.Stops.MaxTicks }, 3},
		{"quoted", "trigger: {label: \"run: this\"}\n", func(c Config) any { return c.Trigger.Label }, "run: this"},
		{"host and port without quotes", "sandbox:\n  egress: [a.example:443, \"b.example:80\"]\n", func(c Config) any { return c.Sandbox.Egress }, []string{"a.example:443", "b.example:80"}},
		{"host and port in a block", "sandbox:\n  egress:\n    - a.example:443\n", func(c Config) any { return c.Sandbox.Egress }, []string{"a.example:443"}},
		{"address and port without quotes", "sandbox:\n  egress: [203.0.113.7:443]\n", func(c Config) any { return c.Sandbox.Egress }, []string{"203.0.113.7:443"}},
		{"no check rounds", "fix: {max_rounds: 0}\n", func(c Config) any { return c.Fix.MaxRounds }, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := Load(file, []byte(c.yaml))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, c.got(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// INV-55: one line for each fault, as a person would read it.
func TestFaultsAreToldWithPlaceAndNextStep(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, yaml, want string }{
		{"misspelt", "stops:\n  max_tick: 3\n", `2:3: stops.max_tick: unknown key; did you mean "max_ticks"?`},
		{"other case", "stops:\n  maxTicks: 3\n", `2:3: stops.maxTicks: unknown key; did you mean "max_ticks"?`},
		{"misplaced", "iteration: npm test\n", `1:1: iteration: unknown key; "iteration" belongs under "gates"`},
		{"misplaced with two homes", "model: x\n", `1:1: model: unknown key; "model" belongs under "agent" or "review"`},
		{"misplaced section", "gates:\n  budget: {}\n", `2:3: gates.budget: unknown key; "budget" belongs under the top of the file`},
		{"misspelt and misplaced", "max_cost_us: 3\n", `1:1: max_cost_us: unknown key; did you mean "stops.max_cost_usd"?`},
		{"dotted", "stops.max_ticks: 3\n", `1:1: stops.max_ticks: unknown key; "max_ticks" belongs under "stops"`},
		{"unknown", "fix:\n  zzzzqqqq: 3\n", `2:3: fix.zzzzqqqq: unknown key; the keys here are max_rounds, stale_base, on_check_failure`},
		{"twice", "fix:\n  max_rounds: 1\n  max_rounds: 2\n", `3:3: fix.max_rounds: stands here twice; remove one of them`},
		{"no value", "agent:\n  model:\n", `2:3: agent.model: has no value; write a value like claude-opus-4-8, or remove the line`},
		{"minutes or seconds", "agent: {timeout: 45}\n", `1:18: agent.timeout: want a duration, got the number 45; write it with a unit, like 90s, 45m or 1h30m`},
		{"currency mark", "stops: {max_cost_usd: $5}\n", `1:23: stops.max_cost_usd: want an amount in US dollars, got the text "$5"; write dollars like 5 or 0.25`},
		{"negative money", "stops: {max_cost_usd: -5}\n", `1:23: stops.max_cost_usd: -5 is below zero; write dollars like 5 or 0.25`},
		{"negative cap", "stops: {max_ticks: -1}\n", `1:20: stops.max_ticks: -1 is too small; write 1 or more`},
		{"octal", "stops: {max_ticks: 010}\n", `1:20: stops.max_ticks: want a whole number, got 010; write plain digits`},
		{"word", "publish: {history: squashed}\n", `1:20: publish.history: "squashed" is not allowed here; did you mean "squash"? write one of ticks, squash`},
		{"yes is a text", "review: {enabled: yes}\n", `1:19: review.enabled: want true or false, got the text "yes"; write true or false`},
		{"scalar for a list", "policy: {deny: infra/**}\n", `1:16: policy.deny: want a list of texts, got the text "infra/**"; write it like [infra/**]`},
		{"list for a section", "gates: [npm test]\n", `1:8: gates: want a mapping, got a list; write keys under it: acceptance, iteration, regression, probes, timeout, stability`},
		{"list at the top", "- a\n", `1:1: want a mapping, got a list; `},
		{"number in a list", "policy:\n  deny:\n    - a/**\n    - 3\n", `4:7: policy.deny: want text, got the number 3; write it in quotes`},
		{"entry twice", "policy: {deny: [a, a]}\n", `1:20: policy.deny: "a" stands here twice; remove one of them`},
		{"glob of a folder", "policy: {deny: [infra/]}\n", `1:17: policy.deny: "infra/" matches no file; "infra/**" means the folder and all in it`},
		{"glob with a root", "policy: {deny: [/infra/**]}\n", `matches no file; write it from the root`},
		{"glob upwards", "policy: {deny: [../x]}\n", `matches no file; write it from the root`},
		{"broken glob", "policy: {deny: [\"a[\"]}\n", `"a[" is not a pattern; close every [ and {`},
		{"negated glob", "policy: {deny: [\"!a\"]}\n", `patterns cannot be negated`},
		{"pattern for a path", "review: {criteria: [docs/*.md]}\n", `is a pattern, a path is wanted`},
		{"egress URL", "sandbox: {egress: [\"https://a.example\"]}\n", `is a URL; write host:port`},
		{"egress without port", "sandbox: {egress: [a.example]}\n", `has no port`},
		{"egress port", "sandbox: {egress: [\"a.example:70000\"]}\n", `"70000" is not a port`},
		{"egress metadata address", "sandbox: {egress: [\"169.254.169.254:80\"]}\n", `is a private address`},
		{"egress localhost", "sandbox: {egress: [\"localhost:80\"]}\n", `is not the name of a host`},
		{"bot by login", "trigger: {bots: [\"dependabot[bot]\"]}\n", `want a whole number, got the text "dependabot[bot]"`},
		{"role", "trigger: {roles: [triage]}\n", `"triage" is not allowed here; write one of admin, maintain, write`},
		{"branch without number", "publish: {branch: proctor/fix}\n", `has no {number}: two issues would share a branch`},
		{"branch placeholder", "publish: {branch: \"p/{number}-{slug}\"}\n", `{number} is the only placeholder`},
		{"branch name", "publish: {base: \"a..b\"}\n", `is not a branch name git accepts`},
		{"mention", "publish: {reviewers: [\"@me\"]}\n", `is not an account or team; write the login without "@"`},
		{"empty argv", "gates: {iteration: []}\n", `the list names no program`},
		{"number in argv", "gates: {iteration: [make, -j, 4]}\n", `want an argument as text, got the number 4; write it in quotes`},
		{"empty setup entry", "setup: [\"\"]\n", `empty command`},
		{"half a price", "budget: {price: {m: {input: 3}}}\n", `half a price; write both input and output`},
		{"unknown part of a price", "budget: {price: {m: {input: 3, output: 1, cached: 1}}}\n", `unknown part of a price "cached"`},
		{"newer version", "version: 2\n", `1:10: version: this release reads version 1, not 2; write version: 1, or use the release of proctor that knows 2`},
		{"merge key", "fix: &f {max_rounds: 1}\npublish:\n  <<: *f\n", `3:3: publish: merge keys are not read here`},
		{"unknown alias", "fix: *f\n", `1:6: *f stands for nothing`},
		{"tag", "fix: {max_rounds: !!int 1}\n", `tags are not read here`},
		{"key that is no text", "1: 2\n", `1:1: a key must be text`},
		{"second document", "fix: {max_rounds: 1}\n---\nfix: {max_rounds: 2}\n", `3:1: a second document begins here`},
		{"tab", "fix:\n\tmax_rounds: 1\n", `2:1: found character`},
		{"unclosed", "setup: [npm ci\n", `; mend the YAML here`},
		{"not text", "fix:\n  a\xff: 1\n", `2:4: not readable as UTF-8 text`},
		{"NUL", "fix: \"\x00\"\n", `1:7: not readable as UTF-8 text`},
		{"deep", strings.Repeat("[", 50), `1:21: nested too deep or too long`},
		{"long", "# " + strings.Repeat("x", MaxBytes), `more than 65536`},

		{"acceptance is iteration", "gates:\n  iteration: npm test\n  acceptance:\n    run: npm  test\n",
			`4:5: gates.acceptance.run: is the same command as gates.iteration, so nothing would be held out; give the held-out gate a command of its own`},
		{"acceptance is iteration, short", "gates: {iteration: npm test, acceptance: [npm, test]}\n", `1:42: gates.acceptance.run: is the same command as gates.iteration`},
		{"acceptance is regression", "gates: {regression: make all, acceptance: make all}\n", `is the same command as gates.regression`},
		{"sealed without acceptance", "gates:\n  acceptance:\n    sealed: [t/**]\n", `3:5: gates.acceptance.sealed: means nothing without gates.acceptance.run`},
		{"everything sealed", "gates: {acceptance: {run: make a, sealed: [\"**\"]}}\n", `would hide the whole repository from the agent`},
		{"run above the issue", "stops:\n  max_cost_usd: 30\n", `2:3: stops.max_cost_usd: stops.max_cost_usd 30 is more than budget.per_issue_usd 20, so a run could never spend it; lower stops.max_cost_usd or raise budget.per_issue_usd`},
		{"day below the run", "budget:\n  per_day_usd: 4\n", `2:3: budget.per_day_usd: stops.max_cost_usd 5 is more than budget.per_day_usd 4, so a run could never spend it; lower stops.max_cost_usd or raise budget.per_day_usd`},
		{"nothing allowed", "policy: {allow: []}\n", `an empty list lets nothing change`},
		{"everything denied", "policy: {deny: [\"**\"]}\n", `covers the whole repository`},
		{"nobody", "trigger: {roles: []}\n", `an empty list lets nobody ask`},
		{"egress that nothing enforces", "sandbox: {mode: off, egress: [\"a.example:443\"]}\n", `nothing enforces it while sandbox.mode is off`},
		{"rounds that may not begin", "fix: {max_rounds: 0, on_check_failure: true}\n", `fix.on_check_failure: starts nothing while fix.max_rounds is 0; raise fix.max_rounds`},
		{"state label", "publish: {labels: [\"Proctor:review\"]}\n", `belongs to the loop itself`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := Load(file, []byte(c.yaml))
			if err == nil {
				t.Fatal("loaded without an error")
			}
			found := false
			for _, e := range All(err) {
				found = found || strings.Contains(e.Error(), c.want)
				if e.File != file || e.Msg == "" || e.Next == "" || strings.Contains(e.Error(), "\n") || (e.Line < 1 && c.name != "long") {
					t.Errorf("not one line with file, place, message and next step: %#v", e)
				}
			}
			if !found {
				t.Errorf("got:\n%v\nwant it to contain:\n%s", err, c.want)
			}
			if diff := cmp.Diff(Default(), got); diff != "" {
				t.Errorf("a file with faults left its mark:\n%s", diff)
			}
		})
	}
}

func TestSeveralFaultsComeAtOnceAndInOrder(t *testing.T) {
	t.Parallel()
	_, err := Load(file, []byte("stops:\n  max_ticks: many\nagnet: {}\nfix:\n  max_rounds: -1\n"))
	var lines []int
	for _, e := range All(err) {
		lines = append(lines, e.Line)
	}
	if diff := cmp.Diff([]int{2, 3, 5}, lines); diff != "" {
		t.Errorf("lines (-want +got):\n%s\n%v", diff, err)
	}
	var one *Error
	if !errors.As(err, &one) || one.Line != 2 {
		t.Errorf("errors.As finds %v", one)
	}
}

// INV-55, positive control: read leniently, the same slip is silence and the ceiling is not there.
func TestALenientReaderWouldLoseTheCeiling(t *testing.T) {
	t.Parallel()
	data := []byte("stops:\n  max_cost: 1\n")
	var lenient struct {
		Stops struct {
			MaxCost float64 `yaml:"max_cost_usd"`
		}
	}
	if err := yaml.Unmarshal(data, &lenient); err != nil || lenient.Stops.MaxCost != 0 {
		t.Fatalf("control: err %v, ceiling %v", err, lenient.Stops.MaxCost)
	}
	if _, err := Load(file, data); err == nil {
		t.Error("loaded without an error")
	}
}

func TestAnAliasOfAliasesCannotMultiply(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("policy:\n  protected: &a0 [x/**]\n")
	for i := range 20 {
		b.WriteString("  k" + string(rune('a'+i)) + ": &a" + string(rune('a'+i)) + " [*a0, *a0, *a0, *a0]\n")
	}
	if _, err := Load(file, []byte(b.String())); err == nil {
		t.Error("loaded without an error")
	}
	if _, err := Load(file, []byte("policy: &p\n  deny: *p\n")); err == nil {
		t.Error("an alias to what it stands in loaded without an error")
	}
}

func FuzzLoad(f *testing.F) {
	full, err := os.ReadFile("testdata/full.yml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(full)
	for _, s := range []string{
		"a: &x [*x]\n", "fix: &f\n  <<: *f\n", "? [a]\n: b\n", "setup:\n- - - x\n", "gates: {acceptance: [a, b]}\n", "budget: {price: {m: {input: 1, output: 1}}}\n",
		"stops: {max_cost_usd: .inf}\n", "version: 0x1\n", "a: |\n  b\n c", "\"\\x00\": 1\n", "---\n...\n---\n", "policy: {max: {file_bytes: 9999999999GiB}}\n", "%YAML 1.2\n---\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Load(file, data)
		if err == nil {
			if Digest(c) == "" || c.Stops.MaxCost <= 0 || c.Stops.MaxTicks < 1 || len(c.Policy.Allow) == 0 {
				t.Errorf("loaded without a ceiling: %+v", c)
			}
			return
		}
		if diff := cmp.Diff(Default(), c); diff != "" {
			t.Errorf("a file with faults left its mark:\n%s", diff)
		}
		for _, e := range All(err) {
			if e.Msg == "" || e.Next == "" || strings.ContainsAny(e.Error(), "\n\r\x00") {
				t.Errorf("not one printable line: %q", e.Error())
			}
		}
	})
}
