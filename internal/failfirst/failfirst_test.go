package failfirst_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/failfirst"
)

// runnerOf is whose output a file of testdata is.
func runnerOf(file string) string {
	for _, r := range []struct{ prefix, name string }{
		{"go-test", "go test"}, {"node-test", "node:test"}, {"pytest", "pytest"}, {"unittest", "unittest"}, {"cargo", "cargo test"}, {"maven", "maven"},
		{"gradle", "gradle"}, {"rspec", "rspec"}, {"minitest", "minitest"}, {"vitest", "vitest"}, {"jest", "jest"}, {"mocha", "mocha"},
	} {
		if strings.HasPrefix(file, r.prefix) {
			return r.name
		}
	}
	return ""
}

func TestWhatRunnersPrintIsReadAsItIs(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 40 {
		t.Fatalf("%d recordings, %v", len(files), err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".txt")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			_, kind, _ := strings.Cut(name, ".")
			got := failfirst.Read(string(b))
			if string(got.Kind) != kind || got.Runner != runnerOf(name) {
				t.Errorf("read as %s of %s, want %s of %s; failed %q\n%s", got.Kind, got.Runner, kind, runnerOf(name), got.Failed, b)
			}
		})
	}
}

func TestFailedTestsAreFoundByTheNamesThatTheirFilesGiveThem(t *testing.T) {
	t.Parallel()
	for file, names := range map[string][]string{
		"go-test.assertion": {"TestTotal"}, "go-test-v.assertion": {"TestTotal"}, "go-test-json.assertion": {"TestTotal"},
		"pytest.assertion": {"test_total", "test_raises"}, "pytest-q.assertion": {"test_total"}, "unittest.assertion": {"test_total"},
		"cargo.assertion": {"sums", "refuses"}, "jest.assertion": {"sums all"}, "vitest.assertion": {"sums all"}, "mocha.assertion": {"sums all"},
		"node-test.assertion": {"sums all"}, "node-test-tap.assertion": {"sums all"}, "rspec.assertion": {"sums all"}, "minitest.assertion": {"test_total"},
		"maven.assertion": {"sumsAll"}, "maven-old.assertion": {"sumsAll"}, "gradle.assertion": {"sumsAll"},
	} {
		b, err := os.ReadFile("testdata/" + file + ".txt")
		if err != nil {
			t.Error(err)
			continue
		}
		r := failfirst.Read(string(b))
		if diff := cmp.Diff(names, r.Names(append(names, "another"))); diff != "" {
			t.Errorf("%s, %q (-want +got):\n%s", file, r.Failed, diff)
		}
	}
}

// What is not recognised is never a proof.
func TestOtherOutputIsUnknown(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"nothing": "", "a script": "the answer is not right\n", "the word fail": "FAIL\n", "the words of an assertion": "AssertionError: 1 != 2\nassertion failed\n",
		"a build tool": "make: *** [Makefile:3: test] Error 1\n", "a crash": "Segmentation fault (core dumped)\n", "a summary without failures": "3 passed in 0.01s\n",
		"go without a failed test": "ok  \ttill\t0.01s\nFAIL\n", "tap without assertions": "not ok 1 - x\n",
	} {
		if got := failfirst.Read(text); got.Kind != failfirst.Unknown {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestColoursDoNotHideAFailure(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("testdata/pytest.assertion.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for line := range strings.Lines(string(b)) {
		out.WriteString("\x1b[31m" + strings.TrimSuffix(line, "\n") + "\x1b[0m\r\n")
	}
	if got := failfirst.Read(out.String()); got.Kind != failfirst.Assertion {
		t.Errorf("%+v", got)
	}
}

func TestTestFilesBringNoCodeAlong(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"till_test.go": true, "internal/x/x_test.go": true, "test_till.py": true, "till_test.py": true, "tests/conftest.py": true, "tests/data/in.json": true,
		"src/till.test.ts": true, "src/till.spec.jsx": true, "src/__tests__/till.js": true, "tests/it.rs": true,
		"src/test/java/acme/TillTest.java": true, "app/TillTest.kt": true, "app/TillIT.java": true, "spec/till_spec.rb": true, "test/till_test.rb": true, "testdata/a.golden": true,
		"till.go": false, "src/lib.rs": false, "latest.py": false, "audit.py": false, "commit.go": false, "src/split.ts": false, "Split.java": false, "Audit.java": false,
		"contest.py": false, "src/contest/rules.py": false, "README.md": false, "src/main/java/acme/Latest.java": false,
	} {
		if got := failfirst.TestFile(path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}

const (
	rustBase = "pub fn total() -> i64 {\n    -1\n}\n\n#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn old() {}\n}\n"
	rustNow  = "pub fn total() -> i64 {\n    1\n}\n\n#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn old() {}\n\n    #[test]\n    fn new() {\n        assert_eq!(total(), 1);\n    }\n}\n"
)

func TestRustTestsAreCutFromTheirCode(t *testing.T) {
	t.Parallel()
	got, ok := failfirst.SpliceRust(rustBase, rustNow)
	if !ok || !strings.Contains(got, "-1") || !strings.Contains(got, "fn new") || strings.Contains(got, "    1\n}") || strings.Count(got, "mod tests") != 1 {
		t.Errorf("%v\n%s", ok, got)
	}
	if got, ok := failfirst.SpliceRust("pub fn total() -> i64 {\n    -1\n}\n", rustNow); !ok || !strings.Contains(got, "-1") || !strings.Contains(got, "fn new") {
		t.Errorf("into a file without tests: %v\n%s", ok, got)
	}
	for name, now := range map[string]string{
		"code behind the tests": rustNow + "\npub fn more() {}\n",
		"two modules":           rustNow + "\n#[cfg(test)]\nmod more {\n}\n",
		"tests beside the code": "#[test]\nfn here() {}\n" + rustNow,
		"no tests":              "pub fn total() -> i64 {\n    1\n}\n",
	} {
		if got, ok := failfirst.SpliceRust(rustBase, now); ok {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func FuzzRead(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.txt")
	for _, name := range files {
		if b, err := os.ReadFile(name); err == nil && len(b) < 4<<10 {
			f.Add(string(b))
		}
	}
	f.Fuzz(func(t *testing.T, s string) {
		r := failfirst.Read(s)
		if r.Kind == failfirst.Assertion && r.Runner == "" {
			t.Errorf("an assertion of no runner: %+v", r)
		}
	})
}
