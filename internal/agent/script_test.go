package agent

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/proctor-ci/proctor/internal/agent/agenttest"
	"github.com/proctor-ci/proctor/internal/meter"
	"github.com/proctor-ci/proctor/internal/money"
	"github.com/proctor-ci/proctor/internal/sandbox"
)

const wholePlan = `
ticks:
  - - say: I look at it.
    - write: {path: sub/new.txt, content: "one\n"}
    - append: {path: sub/new.txt, content: "two\n"}
    - write: {path: tool.sh, content: "#!/bin/sh\n", mode: "0755"}
    - replace: {path: code.txt, old: wrong, new: right}
    - delete: old
    - symlink: {path: link, target: code.txt}
    - rename: {from: a.txt, to: deep/b.txt}
    - run: echo from a shell > run.txt; exit 3
    - sleep: 1ms
  - - write: {path: second.txt, content: "2"}
  -
`

func TestAScriptDoesEachOfItsSteps(t *testing.T) {
	t.Parallel()
	l := newLab(t, sandbox.Auto)
	l.file(t, "code.txt", "it is wrong\n")
	l.file(t, "old/x", "x")
	l.file(t, "a.txt", "a")
	o, events := l.run(t, "script", Options{Plan: []byte(wholePlan)})
	if o.Kind != OK || o.Final != "I look at it." {
		t.Fatalf("%+v", o)
	}
	got := map[string]string{}
	for _, name := range []string{"sub/new.txt", "code.txt", "link", "deep/b.txt", "run.txt"} {
		got[name] = l.read(t, name)
	}
	if diff := cmp.Diff(map[string]string{"sub/new.txt": "one\ntwo\n", "code.txt": "it is right\n", "link": "it is right\n", "deep/b.txt": "a", "run.txt": "from a shell\n"}, got); diff != "" {
		t.Error(diff)
	}
	if info, err := os.Stat(filepath.Join(l.task.Dir, "tool.sh")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("%v %v", info, err)
	}
	if _, err := os.Stat(filepath.Join(l.task.Dir, "old")); !os.IsNotExist(err) {
		t.Errorf("old is still there: %v", err)
	}
	var tools []string
	for _, e := range events {
		tools = append(tools, e.Kind+" "+e.Tool)
	}
	want := []string{"start ", "message ", "tool write", "tool append", "tool write", "tool replace", "tool delete", "tool symlink", "tool rename", "tool run", "result "}
	if diff := cmp.Diff(want, tools); diff != "" {
		t.Error(diff)
	}
	l.task.Tick = 2
	if o, _ = l.run(t, "script", Options{Plan: []byte(wholePlan)}); o.Kind != OK || l.read(t, "second.txt") != "2" {
		t.Errorf("tick 2: %+v", o)
	}
}

// INV-7: a script can end in every way that an agent can.
func TestAScriptCanEndInEveryWay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, steps string
		want        Outcome
	}{
		{"exits", "[exit: 3]", Outcome{Kind: Incomplete, ExitCode: 3}},
		{"crashes", "[crash: SEGV]", Outcome{Kind: Incomplete, ExitCode: -1, Signal: "segmentation fault"}},
		{"is killed", "[crash: KILL]", Outcome{Kind: Incomplete, ExitCode: -1, Signal: "killed"}},
		{"hangs", "[hang: true]", Outcome{Kind: Timeout, ExitCode: -1, Signal: "terminated"}},
		{"hangs and ignores TERM", "[hang: stubborn]", Outcome{Kind: Timeout, ExitCode: -1, Signal: "killed"}},
		{"finds no text to replace", "[replace: {path: x.txt, old: a, new: b}]", Outcome{Kind: AgentError, ExitCode: 1}},
		{"leaves a process behind", "[run: 'sleep 3600 & disown 2>/dev/null; true']", Outcome{Kind: OK, Survivors: 1}},
		{"has no gateway to spend at", "[spend: {input: 1, output: 1}]", Outcome{Kind: AgentError, ExitCode: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, sandbox.Auto)
			l.file(t, "x.txt", "nothing here")
			l.task.Timeout = time.Hour
			if strings.HasPrefix(c.name, "hangs") {
				l.task.Timeout = time.Second
			}
			o, _ := l.run(t, "script", Options{Plan: []byte("ticks: [" + c.steps + "]")})
			if diff := cmp.Diff(c.want, o, cmpopts.IgnoreFields(Outcome{}, "Duration", "Detail", "Stderr", "Usage", "Next")); diff != "" {
				t.Errorf("%s\n%+v", diff, o)
			}
		})
	}
}

// INV-38: a hostile script is confined like any agent. The control runs the same plan with the
// confinement off.
func TestAHostileScriptCannotWriteOutside(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mode sandbox.Mode
		want bool
	}{{sandbox.Auto, false}, {sandbox.Off, true}} {
		l := newLab(t, c.mode)
		outside := filepath.Join(filepath.Dir(l.task.Dir), "outside")
		if err := os.Mkdir(outside, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(outside, 0o777); err != nil {
			t.Fatal(err)
		}
		o, _ := l.run(t, "script", Options{Plan: []byte(`{"ticks": [[{"run": "echo x > ../outside/by-shell"}, {"write": {"path": "../outside/by-step", "content": "x"}}]]}`)})
		left, err := os.ReadDir(outside)
		if err != nil {
			t.Fatal(err)
		}
		if (len(left) == 2) != c.want || (o.Kind == OK) != c.want {
			t.Errorf("INV-38 mode %s: %d files came out: %+v", c.mode, len(left), o)
		}
	}
}

// fund puts a real meter in front of a scripted model.
func fund(t testing.TB, l *lab, script agenttest.Script, ceiling money.USD) (*meter.Meter, *agenttest.Model) {
	t.Helper()
	return fundAPI(t, l, meter.Anthropic, script, ceiling)
}

func fundAPI(t testing.TB, l *lab, api meter.API, script agenttest.Script, ceiling money.USD) (*meter.Meter, *agenttest.Model) {
	t.Helper()
	model := agenttest.NewModel(script)
	url, err := model.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(model.Close)
	if api == meter.OpenAI {
		url += "/v1" // its base URLs end so
	}
	m, err := meter.Start(t.Context(), meter.Config{API: api, Upstream: url, Key: meter.Credential{Kind: meter.APIKey, Value: "the-real-key"}, Ceiling: ceiling})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	ep := m.Endpoint()
	l.task.Gateway = Gateway{BaseURL: ep.BaseURL, Nonce: ep.Nonce, Port: ep.Port}
	return m, model
}

// INV-35: what a script spends is really metered, from inside the confinement, and refused beyond the
// ceiling. The control has a larger purse.
func TestAScriptSpendsRealMeteredMoney(t *testing.T) {
	t.Parallel()
	plan := []byte("ticks: [[spend: {input: 20000, output: 1000}, spend: {input: 20000, output: 1000}, spend: {input: 20000, output: 1000}]]")
	for _, c := range []struct {
		ceiling money.USD
		calls   int
		kind    Kind
	}{{60_000_000, 2, LimitBudget}, {money.Dollar, 3, OK}} {
		l := newLab(t, sandbox.Auto)
		m, model := fund(t, &l, nil, c.ceiling)
		o, _ := l.run(t, "script", Options{Plan: plan})
		if err := m.Quiet(t.Context()); err != nil {
			t.Fatal(err)
		}
		each := money.USD(20000*1000 + 1000*5000) // haiku 4.5: $1 and $5 per million
		if o.Kind != c.kind || len(m.Calls()) != c.calls || m.Spent() != money.USD(c.calls)*each {
			t.Errorf("INV-35 ceiling %s: %s (%s) after %d calls, spent %s, want %s", c.ceiling, o.Kind, o.Detail, len(m.Calls()), m.Spent(), money.USD(c.calls)*each)
		}
		if o.Usage.InputTokens != int64(c.calls)*20000 || o.Usage.Turns != c.calls {
			t.Errorf("it claims %+v", o.Usage)
		}
		for _, r := range model.Calls() {
			if r.Key() != "the-real-key" {
				t.Errorf("the provider was shown %q", r.Key())
			}
		}
	}
}

func TestPlansTellWhatIsWrongWithLineAndStep(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, plan, want string }{
		{"no YAML", "ticks: [", "plan: "},
		{"empty", "", "plan: want one document"},
		{"a list", "- a", "line 1"},
		{"unknown key", "ticks: [[say: x]]\nafter: idle\n", "line 2: unknown key \"after\""},
		{"unknown action", "ticks:\n  - - say: x\n    - dance: y\n", "line 3 (tick 1, step 2): dance:"},
		{"unknown member", "ticks:\n  - - write: {path: a, contents: b}\n", "line 2 (tick 1, step 1): write:"},
		{"two actions", "ticks:\n  - - {say: x, exit: 1}\n", "(tick 1, step 1): want one action"},
		{"no steps", "ticks:\n  - say: x\n", "line 2 (tick 1): want a list of steps"},
		{"no path", "ticks: [[write: {content: x}]]", "write: needs a path"},
		{"odd mode", "ticks: [[write: {path: x, mode: \"rwx\"}]]", "mode \"rwx\""},
		{"odd duration", "ticks: [[sleep: soon]]", "sleep: \"soon\" is no duration"},
		{"odd signal", "ticks: [[crash: BOOM]]", "crash: \"BOOM\" is no signal"},
		{"odd then", "ticks: [[say: x]]\nthen: stop\n", "line 2: then: want repeat or idle"},
		{"odd hang", "ticks: [[hang: politely]]", "hang: want"},
		{"no value", "ticks:\n  - - say:\n", "no value"},
		{"nothing", "then: idle", "no ticks"},
	} {
		_, err := ParsePlan([]byte(c.plan))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestTicksBeyondThePlanRepeatOrIdle(t *testing.T) {
	t.Parallel()
	for then, want := range map[string]int{"repeat": 1, "idle": 0} {
		p, err := ParsePlan([]byte("ticks: [[{say: a}, {say: b}], [{say: c}]]\nthen: " + then))
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Tick(1)) != 2 || len(p.Tick(2)) != 1 || len(p.Tick(3)) != want || len(p.Tick(99)) != want || p.Tick(0) != nil {
			t.Errorf("%s: %v %v %v", then, p.Tick(1), p.Tick(2), p.Tick(3))
		}
	}
}

func FuzzPlan(f *testing.F) {
	f.Add([]byte(wholePlan))
	f.Add([]byte(`{"ticks": [[{"say": "x"}, {"hang": true}]], "then": "idle"}`))
	f.Add([]byte("ticks:\n- - *a\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := ParsePlan(b)
		if err == nil && p == nil {
			t.Fatal("neither a plan nor an error")
		}
	})
}
