package gate_test

import (
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/proctor-ci/proctor/internal/gate"
)

func failed(output string) gate.Result {
	return gate.Result{Class: gate.Iteration, Name: "unit", Argv: line("npm test"), Status: gate.Failed, ExitCode: 1, Duration: 1234 * time.Millisecond, Output: []byte(output)}
}

func TestFeedbackKeepsWhatMatters(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("HEAD of the output\n")
	for range 3000 {
		b.WriteString("ok  a line of no interest\n")
	}
	b.WriteString("--- FAIL: TestFirst\n    first_test.go:10: want 1, got 2\n")
	for range 3000 {
		b.WriteString("ok  a line of no interest\n")
	}
	b.WriteString("--- FAIL: TestLast\n    last_test.go:20: want 3, got 4\n")
	for range 3000 {
		b.WriteString("ok  a line of no interest\n")
	}
	b.WriteString("TAIL of the output\n")
	for _, most := range []int{800, 2000, 10_000, 100_000} {
		got := gate.Feedback(failed(b.String()), most)
		for _, want := range []string{`gate "unit"`, "npm test", "exit code 1", "1.23s", "HEAD of the output", "--- FAIL: TestFirst", "want 1, got 2", "--- FAIL: TestLast", "want 3, got 4", "TAIL of the output", "left out"} {
			if !strings.Contains(got, want) {
				t.Errorf("at most %d bytes: %q is missing in:\n%.3000s", most, want, got)
			}
		}
		if len(got) > most {
			t.Errorf("%d bytes, want at most %d", len(got), most)
		}
	}
}

func TestFeedbackIsWholeWhenItFits(t *testing.T) {
	t.Parallel()
	got := gate.Feedback(failed("one\ntwo\n"), 10_000)
	if !strings.HasSuffix(got, "\none\ntwo") || strings.Contains(got, "left out") {
		t.Errorf("%q", got)
	}
	if got := gate.Feedback(failed(""), 1000); !strings.HasSuffix(got, "It printed nothing.") {
		t.Errorf("%q", got)
	}
}

func TestFeedbackOfAnEndlessLineIsCut(t *testing.T) {
	t.Parallel()
	got := gate.Feedback(failed("start\n"+strings.Repeat("x", 5_000_000)+"\nerror: the end"), 2000)
	if len(got) > 2000 || !strings.Contains(got, "bytes of this line left out") || !strings.Contains(got, "error: the end") {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}

func TestFeedbackIsPrintable(t *testing.T) {
	t.Parallel()
	raw := "\x1b[31mred\x1b[0m \x1b]0;title\x07plain \x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\ bell\x07 back\x08 nul\x00 c1\u0085 bidi\u202e zero\u200b tag\U000e0041 bad\xff\xfe\r\nprogress 1%\rprogress 99%\rdone\nünïcödé 日本 👩‍💻\x1b"
	want := "red plain link bell back nul c1 bidi zero tag bad\ufffd\ufffd\ndone\nünïcödé 日本 👩‍💻"
	if got := gate.Feedback(failed(raw), 10_000); !strings.HasSuffix(got, "\n"+want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestFeedbackOfASealedGateTellsNothing is INV-27 as far as gates go: name and status only.
func TestFeedbackOfASealedGateTellsNothing(t *testing.T) {
	t.Parallel()
	open := failed("SEALED canary")
	open.Detail, open.Bytes, open.ExitCode = "detail canary", 4711, 42
	sealed := open
	sealed.Sealed = true
	dropped := open
	dropped.Output = nil
	for _, r := range []gate.Result{sealed, dropped} {
		if got, want := gate.Feedback(r, 10_000), `The gate "unit" failed.`; got != want {
			t.Errorf("INV-27: %q, want %q", got, want)
		}
	}
	// The control: of an open gate all of it is told.
	got := gate.Feedback(open, 10_000)
	for _, want := range []string{"canary", "42", "1.23s"} {
		if !strings.Contains(got, want) {
			t.Errorf("positive control: %q is missing in %q", want, got)
		}
	}
}

func FuzzFeedback(f *testing.F) {
	f.Add([]byte("a\x1b[31mb\r\nc\rerror: x\n"), 300)
	f.Add([]byte("\x1b]8;;"), 200)
	f.Add([]byte(strings.Repeat("FAIL\n", 100)), 250)
	f.Fuzz(func(t *testing.T, raw []byte, most int) {
		most = 200 + max(most, -most)%5000
		got := gate.Feedback(failed(string(raw)), max(most, 200))
		if len(got) > most {
			t.Errorf("%d bytes, want at most %d", len(got), most)
		}
		if !utf8.ValidString(got) {
			t.Errorf("not valid UTF-8: %q", got)
		}
		for _, r := range got {
			if unicode.Is(unicode.Cc, r) && r != '\n' && r != '\t' {
				t.Errorf("control character %U", r)
			}
		}
	})
}

func TestFingerprintIsStableOverReruns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, a, b string }{
		{"durations", "--- FAIL: TestX (0.03s)\nFAIL pkg 1.204s", "--- FAIL: TestX (1.51s)\nFAIL pkg 0.9s"},
		{"cached", "ok  pkg (cached)", "ok  pkg 0.41s"},
		{"temporary paths", "open /tmp/TestX123/001/file: no such file", "open /tmp/TestX987/002/file: no such file"},
		{"macOS temporary paths", "open /var/folders/ab/c1/T/x1/f", "open /var/folders/zz/c9/T/x2/f"},
		{"times", "2026-01-02T03:04:05.678Z ERROR boom", "2026-11-30 13:14:15,999 ERROR boom"},
		{"log times", "2026/01/02 03:04:05 boom", "2026/01/03 13:24:35.123 boom"},
		{"addresses", "panic: nil (0xc000123456)", "panic: nil (0xc000abcdef)"},
		{"ports", "dial tcp 127.0.0.1:39211: connection refused", "dial tcp 127.0.0.1:40022: connection refused"},
		{"goroutines", "goroutine 17 [running]:", "goroutine 23 [running]:"},
		{"process numbers", "worker pid=4711 died", "worker pid=815 died"},
		{"order", "FAIL a\nFAIL b\nok c", "ok c\nFAIL b\nFAIL a"},
		{"lines moved by an edit", "x_test.go:10: want 1, got 2", "x_test.go:14: want 1, got 2"},
		{"lines and columns", "src/a.ts(3,7): error TS2322: boom", "src/a.ts(9,1): error TS2322: boom"},
		{"Python lines", `File "/app/x.py", line 12, in f`, `File "/app/x.py", line 15, in f`},
		{"seeds", "-test.shuffle 1712345678", "-test.shuffle 1798765432"},
		{"random seed", "Using --random-order-seed=123456", "Using --random-order-seed=654321"},
		{"colours", "\x1b[31mFAIL\x1b[0m x", "FAIL x"},
		{"progress", "1%\r50%\r100%\nFAIL", "3%\r100%\nFAIL"},
		{"uuids", "id 123e4567-e89b-12d3-a456-426614174000 missing", "id 00000000-1111-2222-3333-444455556666 missing"},
		{"hashes", "commit 0123456789abcdef0123456789abcdef01234567", "commit fedcba9876543210fedcba9876543210fedcba98"},
		{"blanks", "FAIL   x\n\n\n", "FAIL x"},
		{"repeats", "warn\nwarn\nFAIL", "warn\nFAIL"},
		{"pytest summary", "=== 1 failed, 3 passed in 0.12s ===", "=== 1 failed, 3 passed in 2.50s ==="},
		{"jest summary", "Time:        1.234 s, estimated 2 s", "Time:        0.9 s, estimated 1 s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if gate.Fingerprint(failed(c.a)) != gate.Fingerprint(failed(c.b)) {
				t.Errorf("%q and %q differ", c.a, c.b)
			}
		})
	}
}

func TestFingerprintDiffersForAnotherFailure(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, a, b string }{
		{"another test", "--- FAIL: TestA (0.1s)", "--- FAIL: TestB (0.1s)"},
		{"another value", "want 1, got 2", "want 1, got 3"},
		{"another numbered test", "FAIL case 1", "FAIL case 2"},
		{"another file", "a_test.go:10: boom", "b_test.go:10: boom"},
		{"one failure less", "FAIL a\nFAIL b", "FAIL a"},
		{"another count", "3 failed, 1 passed", "2 failed, 2 passed"},
		{"another error", "TypeError: x is undefined", "TypeError: y is undefined"},
		{"another path", "open config/a.yml: no such file", "open config/b.yml: no such file"},
		{"another version", "need v1.2.3", "need v1.2.4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if gate.Fingerprint(failed(c.a)) == gate.Fingerprint(failed(c.b)) {
				t.Errorf("%q and %q are the same", c.a, c.b)
			}
		})
	}
	a, b := failed("same"), failed("same")
	b.ExitCode = 2
	if gate.Fingerprint(a) == gate.Fingerprint(b) {
		t.Error("another exit code is the same")
	}
	a.Sealed, b.Sealed = true, true
	a.Output, b.Output, b.Digest = nil, nil, "sha256:other"
	if gate.Fingerprint(a) != gate.Fingerprint(b) {
		t.Error("a sealed result is known by more than its status")
	}
}
