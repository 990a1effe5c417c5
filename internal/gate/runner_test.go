package gate_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/proctor-ci/proctor/internal/gate"
	"github.com/proctor-ci/proctor/internal/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Child()
	os.Exit(m.Run())
}

func newRunner(t *testing.T) (gate.Runner, gate.Place) {
	t.Helper()
	box, err := sandbox.New(sandbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	p := gate.Place{Dir: root + "/tree", Home: root + "/home", Tmp: root + "/tmp", KeepOutput: true}
	for _, d := range []string{p.Dir, p.Home, p.Tmp} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return gate.Runner{Box: box, Grace: 200 * time.Millisecond}, p
}

func put(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func spec(argv ...string) gate.Spec {
	return gate.Spec{Class: gate.Iteration, Name: "unit", Argv: argv, Timeout: time.Minute}
}

func TestAnExitCodeDecides(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		argv   []string
		limit  time.Duration
		want   gate.Result
		detail string
	}{
		{"zero passes", line("echo ok"), 0, gate.Result{Status: gate.Passed, Output: []byte("ok\n")}, ""},
		{"what it prints is no verdict", line("echo PASS; exit 3"), 0, gate.Result{Status: gate.Failed, ExitCode: 3, Output: []byte("PASS\n")}, ""},
		{"nor is what it says of failure", line("echo FAIL"), 0, gate.Result{Status: gate.Passed, Output: []byte("FAIL\n")}, ""},
		{"a signal fails", line("kill -SEGV $$"), 0, gate.Result{Status: gate.Failed, ExitCode: -1, Signal: "segmentation fault", Output: []byte{}}, "signal"},
		{"a missing program is broken", []string{"no-such-tool"}, 0, gate.Result{Status: gate.Broken, ExitCode: 127, Output: []byte{}}, "is in no directory of PATH"},
		{"a missing command in a line is broken", line("exec 2>/dev/null; no-such-tool"), 0, gate.Result{Status: gate.Broken, ExitCode: 127, Output: []byte{}}, "does not exist"},
		{"a file that is no program is broken", []string{"./plain"}, 0, gate.Result{Status: gate.Broken, ExitCode: 126, Output: []byte{}}, "chmod +x"},
		{"time runs out", line("echo started; sleep 300"), 500 * time.Millisecond, gate.Result{Status: gate.TimedOut, ExitCode: -1, Signal: "terminated", Output: []byte("started\n")}, "not finished after"},
		{"a timed-out gate that exits with zero has not passed", line("trap 'exit 0' TERM; while :; do :; done"), 300 * time.Millisecond, gate.Result{Status: gate.TimedOut, Output: []byte{}}, "not finished"},
		{"both streams are kept in order", line("echo a; echo b >&2; echo c"), 0, gate.Result{Status: gate.Passed, Output: []byte("a\nb\nc\n")}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, p := newRunner(t)
			put(t, p.Dir+"/plain", "no program\n", 0o644)
			s := spec(c.argv...)
			if c.limit > 0 {
				s.Timeout = c.limit
			}
			got, err := r.Run(context.Background(), s, p)
			if err != nil {
				t.Fatal(err)
			}
			c.want.Class, c.want.Name, c.want.Argv, c.want.Bytes = s.Class, s.Name, s.Argv, int64(len(c.want.Output))
			sum := sha256.Sum256(c.want.Output)
			c.want.Digest = "sha256:" + hex.EncodeToString(sum[:])
			if diff := cmp.Diff(c.want, got, cmpopts.IgnoreFields(gate.Result{}, "Duration", "Detail")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !strings.Contains(got.Detail, c.detail) || (c.detail == "") != (got.Detail == "") {
				t.Errorf("detail %q, want %q", got.Detail, c.detail)
			}
		})
	}
}

func TestBrokenSaysWhichCommand(t *testing.T) {
	t.Parallel()
	r, p := newRunner(t)
	got, err := r.Run(context.Background(), spec(line("no-such-tool --flag")...), p)
	if err != nil || got.Status != gate.Broken || !strings.Contains(got.Detail, "no-such-tool") {
		t.Errorf("%+v %v", got, err)
	}
}

// TestASealedGateLeavesADigestOnly is INV-27 as far as gates go.
func TestASealedGateLeavesADigestOnly(t *testing.T) {
	t.Parallel()
	r, p := newRunner(t)
	for _, l := range []string{"echo canary; exit 1", "echo canary >&2; exit 127", "canary-tool", "echo canary; kill -9 $$"} {
		p.Sealed = false
		open, err := r.Run(context.Background(), spec(line(l)...), p)
		if err != nil {
			t.Fatal(err)
		}
		p.Sealed = true
		sealed, err := r.Run(context.Background(), spec(line(l)...), p)
		if err != nil {
			t.Fatal(err)
		}
		if sealed.Output != nil || !sealed.Sealed || strings.Contains(sealed.Detail, "canary") {
			t.Errorf("INV-27: %q left output %q, detail %q", l, sealed.Output, sealed.Detail)
		}
		if sealed.Digest != open.Digest || sealed.Bytes != open.Bytes || sealed.Status != open.Status {
			t.Errorf("%q: sealed %+v, open %+v", l, sealed, open)
		}
		if !bytes.Contains(open.Output, []byte("canary")) {
			t.Errorf("positive control: the open output is %q", open.Output)
		}
	}
}

func TestALongOutputKeepsItsEndsAndItsWholeDigest(t *testing.T) {
	t.Parallel()
	r, p := newRunner(t)
	got, err := r.Run(context.Background(), spec(line("echo FIRST; head -c 40000000 /dev/zero | tr '\\0' x; echo; echo LAST")...), p)
	if err != nil {
		t.Fatal(err)
	}
	whole := "FIRST\n" + strings.Repeat("x", 40_000_000) + "\nLAST\n"
	sum := sha256.Sum256([]byte(whole))
	if got.Digest != "sha256:"+hex.EncodeToString(sum[:]) || got.Bytes != int64(len(whole)) {
		t.Errorf("digest %s of %d bytes", got.Digest, got.Bytes)
	}
	const mib = 1 << 20
	if n := len(got.Output); n < 16*mib || n > 16*mib+100 {
		t.Errorf("%d bytes kept", n)
	}
	if !bytes.HasPrefix(got.Output, []byte("FIRST\n")) || !bytes.HasSuffix(got.Output, []byte("\nLAST\n")) || !bytes.Contains(got.Output, []byte("bytes left out here]")) {
		t.Error("an end or the mark is missing")
	}
}

func TestWhatAGateLeavesRunningIsKilledAndTold(t *testing.T) {
	t.Parallel()
	r, p := newRunner(t)
	got, err := r.Run(context.Background(), spec(line("setsid sleep 300 & exit 0")...), p)
	if err != nil || got.Survivors != 1 || got.Status != gate.Passed {
		t.Errorf("INV-23: %+v %v", got, err)
	}
}

func TestLimitsAreTold(t *testing.T) {
	t.Parallel()
	r, p := newRunner(t)
	r.Limits.Output = 1 << 20
	got, err := r.Run(context.Background(), spec("yes"), p)
	if err != nil || got.Status != gate.Failed || !strings.Contains(got.Detail, "it printed more than 1 MiB") {
		t.Errorf("%s %q %v", got.Status, got.Detail, err)
	}
}

func TestACancelledRunStops(t *testing.T) {
	t.Parallel()
	r, p := newRunner(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if got, err := r.Run(ctx, spec("true"), p); err != nil || got.Status != gate.Stopped {
		t.Errorf("%+v %v", got, err)
	}
}

func TestAGateThatCannotBeAskedIsAnError(t *testing.T) {
	t.Parallel()
	r, p := newRunner(t)
	box, err := sandbox.New(sandbox.Config{Mode: sandbox.Strict, Pretend: sandbox.Capability{MaxLandlock: -1}})
	if err != nil {
		t.Fatal(err)
	}
	strict := gate.Runner{Box: box}
	var unenforced *sandbox.UnenforcedError
	if got, err := strict.Run(context.Background(), spec("true"), p); !errors.As(err, &unenforced) {
		t.Errorf("strict without Landlock: %+v %v", got, err)
	}
	for _, c := range []struct {
		name   string
		spec   gate.Spec
		change func(*gate.Place)
		text   string
	}{
		{"no command", gate.Spec{Name: "unit"}, func(*gate.Place) {}, "its command is empty"},
		{"no HOME", spec("true"), func(p *gate.Place) { p.Home = "" }, "HOME"},
		{"INV-33 a forge token", spec("true"), func(p *gate.Place) { p.Env = []string{"GITHUB_TOKEN=x"} }, "credential"},
		{"INV-33 an OIDC request token", spec("true"), func(p *gate.Place) { p.Env = []string{"ACTIONS_ID_TOKEN_REQUEST_TOKEN=x"} }, "credential"},
		{"INV-33 a model key", spec("true"), func(p *gate.Place) { p.Env = []string{"ANTHROPIC_API_KEY=x"} }, "credential"},
		{"no value", spec("true"), func(p *gate.Place) { p.Env = []string{"X"} }, "NAME=value"},
	} {
		place := p
		c.change(&place)
		if _, err := r.Run(context.Background(), c.spec, place); err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want an error with %q", c.name, err, c.text)
		}
	}
}

func TestTheEnvironmentIsMinimal(t *testing.T) {
	t.Setenv("PROCTOR_TEST_CANARY", "canary") // not parallel: the harness's own environment
	r, p := newRunner(t)
	p.Env = []string{"LANG=C", "EXTRA=1"}
	got, err := r.Run(context.Background(), spec("env"), p)
	if err != nil {
		t.Fatal(err)
	}
	env := strings.Split(strings.TrimSpace(string(got.Output)), "\n")
	for _, kv := range env {
		if strings.Contains(kv, "canary") {
			t.Errorf("INV-33: %s reached the gate", kv)
		}
	}
	all := "\n" + strings.Join(env, "\n") + "\n"
	for _, want := range []string{"LANG=C", "EXTRA=1", "HOME=" + p.Home, "TMPDIR=" + p.Tmp, "CI=true"} {
		if !strings.Contains(all, "\n"+want+"\n") {
			t.Errorf("%s is missing in %q", want, env)
		}
	}
	if strings.Contains(all, "LANG=C.UTF-8\nLANG") || strings.Count(all, "\nLANG=") != 1 {
		t.Errorf("LANG stands twice in %q", env)
	}
}

// TestRepositoryFilesDoNotShadow is INV-32: a file that the agent wrote must not stand for a program or
// get into one. Each case names the variable (or none, for the working directory) that would let it, and
// shows under control that it would.
func TestRepositoryFilesDoNotShadow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		files   map[string]string
		argv    []string
		env     func(dir string) []string // what would open the door
		refused string                    // by which error the door stays shut when the caller opens it
	}{
		{"PATH", map[string]string{"bin/printf": "#!/bin/sh\necho shadow\n"}, []string{"env", "printf", "real"}, func(d string) []string { return []string{"PATH=" + d + "/bin:/usr/bin:/bin"} }, "put programs elsewhere"},
		{"the working directory by PATH", map[string]string{"printf": "#!/bin/sh\necho shadow\n"}, []string{"env", "printf", "real"}, func(string) []string { return []string{"PATH=.:/usr/bin:/bin"} }, "relative entry"},
		{"the working directory itself", map[string]string{"printf": "#!/bin/sh\necho shadow\n"}, []string{"printf", "real"}, nil, ""},
		{"BASH_ENV", map[string]string{"rc": "echo shadow\n"}, []string{"bash", "-c", "echo real"}, func(d string) []string { return []string{"BASH_ENV=" + d + "/rc"} }, "load further code"},
		{"PYTHONPATH", map[string]string{"mod/json.py": "print('shadow')\n"}, []string{"/usr/bin/python3", "-Ic", "import json; print('real')"}, nil, ""},
		{"PYTHONPATH set", map[string]string{"mod/sitecustomize.py": "print('shadow')\n"}, []string{"/usr/bin/python3", "-c", "print('real')"}, func(d string) []string { return []string{"PYTHONPATH=" + d + "/mod"} }, "load further code"},
		{"NODE_OPTIONS", map[string]string{"hook.js": "console.log('shadow')\n"}, []string{"/usr/bin/node", "-e", "console.log('real')"}, func(d string) []string { return []string{"NODE_OPTIONS=--require " + d + "/hook.js"} }, "load further code"},
		{"LD_PRELOAD", map[string]string{"evil.so": "not a library"}, []string{"sh", "-c", "echo real"}, func(d string) []string { return []string{"LD_PRELOAD=" + d + "/evil.so"} }, "load further code"},
		{"MAKEFLAGS", map[string]string{"Makefile": "all:\n\t@echo real\n", "evil.mk": "$(info shadow)\n"}, []string{"make"}, func(d string) []string { return []string{"MAKEFILES=" + d + "/evil.mk"} }, "load further code"},
	} {
		t.Run("INV-32 "+c.name, func(t *testing.T) {
			t.Parallel()
			if p := c.argv[0]; filepath.IsAbs(p) {
				if _, err := os.Stat(p); err != nil {
					t.Skipf("needs %s: apt-get install python3 nodejs", p)
				}
			}
			r, p := newRunner(t)
			for name, text := range c.files {
				put(t, p.Dir+"/"+name, text, 0o755)
			}
			got, err := r.Run(context.Background(), spec(c.argv...), p)
			if err != nil {
				t.Fatal(err)
			}
			if out := strings.TrimSpace(string(got.Output)); out != "real" {
				t.Errorf("the gate printed %q, want real", out)
			}
			if c.env == nil {
				return
			}
			opened := p
			opened.Env = c.env(p.Dir)
			if _, err := r.Run(context.Background(), spec(c.argv...), opened); err == nil || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("a place that opens the door: %v, want %q", err, c.refused)
			}
			wantControl(t, p, c.argv, opened.Env)
		})
	}
}

// wantControl shows that the door is one: without our checks the file of the repository is used.
func wantControl(t *testing.T, p gate.Place, argv, env []string) {
	t.Helper()
	// PATH of a box may not hold such a place, so the control is a plain process.
	out := plain(t, p.Dir, argv, env)
	if out == "real" {
		t.Errorf("positive control: with %q it printed %q", env, out)
	}
}

func TestStability(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		line  string
		n     int
		want  gate.Status
		flaky bool
		runs  int
	}{
		{"a stable green", "true", 3, gate.Passed, false, 3},
		{"INV-25 a stable red is fine", "exit 1", 3, gate.Failed, false, 3},
		{"INV-25 green, then red", "[ $(wc -l < $HOME/runs) = 1 ]", 3, gate.Passed, true, 2},
		{"INV-25 red, then green", "[ $(wc -l < $HOME/runs) != 1 ]", 3, gate.Failed, true, 2},
		{"a late disagreement", "[ $(wc -l < $HOME/runs) != 3 ]", 5, gate.Passed, true, 3},
		{"once is once", "[ $(wc -l < $HOME/runs) = 1 ]", 1, gate.Passed, false, 1},
		{"zero is once", "[ $(wc -l < $HOME/runs) = 1 ]", 0, gate.Passed, false, 1},
		{"a broken gate is not repeated", "no-such-tool", 3, gate.Broken, false, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, p := newRunner(t)
			fresh := 0
			got, err := r.Stable(context.Background(), spec(line("echo run >> $HOME/runs; "+c.line)...), p, c.n, func(context.Context) error { fresh++; return nil })
			if got.Status != c.want || fresh != c.runs {
				t.Errorf("status %s after %d runs, want %s after %d", got.Status, fresh, c.want, c.runs)
			}
			var flaky *gate.FlakyError
			if errors.As(err, &flaky) != c.flaky || errors.Is(err, gate.ErrFlaky) != c.flaky {
				t.Fatalf("error %v", err)
			}
			if c.flaky && (flaky.First.Status == flaky.Second.Status || flaky.Runs != c.runs || !strings.Contains(err.Error(), "gate unit: run 1")) {
				t.Errorf("%+v", flaky)
			}
			if !c.flaky && err != nil {
				t.Error(err)
			}
		})
	}
}
