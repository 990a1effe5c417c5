package tamper

import (
	"fmt"
	"strings"
	"testing"
)

// pair is one changed file.
type pair struct{ path, before, after string }

func compare(files ...pair) []Sign {
	c := New()
	for _, f := range files {
		c.Add(File{Path: f.path, Before: []byte(f.before), After: []byte(f.after), Was: f.before != "", Is: f.after != "", BeforeID: "b" + f.before, AfterID: "b" + f.after})
	}
	return c.Signs()
}

func strong(signs []Sign) []Sign {
	var out []Sign
	for _, s := range signs {
		if !s.Weak {
			out = append(out, s)
		}
	}
	return out
}

// language is a small test file and what may and may not be done to it. Edits are pairs of old and new text.
type language struct {
	name, path, text string
	wrong            map[string][]string // must be held against the change; an edit to nothing takes the rest of the text
	right            map[string][]string
	moved            string // another path where the same tests would run
}

// edit applies pairs of old and new text. An empty replacement of one pair alone takes away everything from there.
func edit(t *testing.T, text string, pairs []string) string {
	t.Helper()
	for i := 0; i+1 < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("%q is not in the text", pairs[i])
		}
		if pairs[i] == "func TestSub" && pairs[i+1] == "" {
			text = text[:strings.Index(text, pairs[i])]
			continue
		}
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	return text
}

// INV-31: right and wrong cases of every ecosystem. The right ones are the positive control: the same file may change.
func TestTamperingInEveryLanguage(t *testing.T) {
	t.Parallel()
	for _, l := range languages {
		for name, pairs := range l.wrong {
			t.Run(l.name+" wrong: "+name, func(t *testing.T) {
				t.Parallel()
				if got := strong(compare(pair{l.path, l.text, edit(t, l.text, pairs)})); len(got) == 0 {
					t.Errorf("nothing is held against\n%s", edit(t, l.text, pairs))
				}
			})
		}
		for name, pairs := range l.right {
			t.Run(l.name+" right: "+name, func(t *testing.T) {
				t.Parallel()
				if got := strong(compare(pair{l.path, l.text, edit(t, l.text, pairs)})); len(got) != 0 {
					t.Errorf("held against it: %+v", got)
				}
			})
		}
		t.Run(l.name+" right: a new test file", func(t *testing.T) {
			t.Parallel()
			if got := strong(compare(pair{l.path, "", l.text})); len(got) != 0 {
				t.Errorf("held against it: %+v", got)
			}
		})
		t.Run(l.name+" wrong: the whole file deleted", func(t *testing.T) {
			t.Parallel()
			if got := strong(compare(pair{l.path, l.text, ""})); len(got) == 0 {
				t.Error("nothing is held against it")
			}
		})
		t.Run(l.name+" right: moved to another file", func(t *testing.T) {
			t.Parallel()
			if got := strong(compare(pair{l.path, l.text, ""}, pair{l.moved, "", l.text})); len(got) != 0 {
				t.Errorf("held against it: %+v", got)
			}
		})
		t.Run(l.name+" wrong: moved out of sight", func(t *testing.T) {
			t.Parallel()
			if got := strong(compare(pair{l.path, l.text, ""}, pair{"old/" + l.name + ".bak", "", l.text})); len(got) == 0 {
				t.Error("nothing is held against it")
			}
		})
		t.Run(l.name+" wrong: emptied", func(t *testing.T) {
			t.Parallel()
			if got := strong(compare(pair{l.path, l.text, "\n"})); len(got) == 0 {
				t.Error("nothing is held against it")
			}
		})
	}
}

// INV-31: deleting a test never counts as adding one.
func TestANewTestDoesNotStandForADeletedOne(t *testing.T) {
	t.Parallel()
	before := "package p\n\nfunc TestHard(t *testing.T) {\n\tif f() != 1 {\n\t\tt.Fatal(1)\n\t}\n}\n"
	after := "package p\n\nfunc TestEasy(t *testing.T) {\n\tif g() != 1 {\n\t\tt.Fatal(1)\n\t}\n}\n\nfunc TestEasier(t *testing.T) {\n\tt.Log(1)\n}\n"
	got := strong(compare(pair{"p_test.go", before, after}))
	if len(got) != 1 || !strings.Contains(got[0].Detail, `test "TestHard" is gone`) {
		t.Errorf("got %+v", got)
	}
	if got := strong(compare(pair{"p_test.go", before, before + after[10:]})); len(got) != 0 {
		t.Errorf("control: held against it: %+v", got)
	}
}

func TestRunnersAndThresholds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, path, before, after string
		wrong                     bool
	}{
		{"npm test does nothing", "package.json", `{"scripts":{` + "\n" + `"test": "jest"` + "\n}}", `{"scripts":{` + "\n" + `"test": "exit 0"` + "\n}}", true},
		{"npm test echoes", "package.json", "{\n\"test\": \"jest\"\n}", "{\n\"test\": \"echo ok\"\n}", true},
		{"npm test forgives", "package.json", "{\n\"test\": \"jest\"\n}", "{\n\"test\": \"jest || true\"\n}", true},
		{"npm test passes without tests", "package.json", "{\n\"test\": \"jest\"\n}", "{\n\"test\": \"jest --passWithNoTests\"\n}", true},
		{"a new dependency", "package.json", "{\n\"a\": \"1.0.0\"\n}", "{\n\"a\": \"1.0.0\",\n\"b\": \"2.0.0\"\n}", false},
		{"a lower version", "package.json", "{\n\"a\": \"1.5.0\"\n}", "{\n\"a\": \"1.4.0\"\n}", false},
		{"jest leaves files out", "jest.config.js", "module.exports = {}\n", "module.exports = {\n  testPathIgnorePatterns: ['sum'],\n}\n", true},
		{"coverage lowered", "jest.config.js", "coverageThreshold: {\n  branches: 90,\n}\n", "coverageThreshold: {\n  branches: 10,\n}\n", true},
		{"coverage raised", "jest.config.js", "coverageThreshold: {\n  branches: 80,\n}\n", "coverageThreshold: {\n  branches: 90,\n}\n", false},
		{"coverage no longer asked for", "jest.config.js", "coverageThreshold: {\n  branches: 90,\n}\n", "\n", true},
		{"pytest deselects", "pytest.ini", "[pytest]\naddopts = -q\n", "[pytest]\naddopts = -q --deselect tests/test_sum.py::test_add\n", true},
		{"pytest leaves out by name", "pyproject.toml", "[tool.pytest.ini_options]\naddopts = \"-q\"\n", "[tool.pytest.ini_options]\naddopts = \"-q -k 'not add'\"\n", true},
		{"fail_under lowered", ".coveragerc", "[report]\nfail_under = 90\n", "[report]\nfail_under = 9\n", true},
		{"conftest hook", "conftest.py", "import pytest\n", "import pytest\n\ndef pytest_runtest_makereport(item, call):\n    return None\n", true},
		{"a new conftest with a hook", "tests/conftest.py", "", "def pytest_collection_modifyitems(items):\n    items.clear()\n", true},
		{"a new conftest with a fixture", "tests/conftest.py", "", "import pytest\n\n@pytest.fixture\ndef db():\n    return 1\n", false},
		{"make forgives", "Makefile", "test:\n\tgo test ./...\n", "test:\n\tgo test ./... || true\n", true},
		{"make ignores with a dash", "Makefile", "test:\n\tgo test ./...\n", "test:\n\t-go test ./...\n", true},
		{"make skips", "Makefile", "test:\n\tgo test ./...\n", "test:\n\tgo test -skip TestAdd ./...\n", true},
		{"make builds too", "Makefile", "test:\n\tgo test ./...\n", "build:\n\tgo build ./...\n\ntest:\n\tgo test ./...\n", false},
		{"maven skips", "pom.xml", "<project>\n</project>\n", "<project>\n<skipTests>true</skipTests>\n</project>\n", true},
		{"gradle forgives", "build.gradle", "test {\n}\n", "test {\n  ignoreFailures = true\n}\n", true},
		{"cargo leaves a target out", "Cargo.toml", "[lib]\nname = \"x\"\n", "[lib]\nname = \"x\"\ntest = false\n", true},
		{"a job may fail", ".gitlab-ci.yml", "test:\n  script: make test\n", "test:\n  script: make test\n  allow_failure: true\n", true},
		{"a script forgives", "scripts/test.sh", "set -e\ngo test ./...\n", "set -e\ngo test ./... || true\n", true},
		{"a script does more", "scripts/test.sh", "set -e\ngo test ./...\n", "set -e\ngo vet ./...\ngo test ./...\n", false},
		{"a deadline in a test", "a.test.js", "it('x', () => { expect(f()).toBe(1) }, 1000)\n// timeout\n", "it('x', () => { expect(f()).toBe(1) }, 1000)\n// timeout 5\n", false},
		{"a longer deadline", "p_test.go", "package p\n\nfunc TestFast(t *testing.T) {\n\ttimeout := 100 * time.Millisecond\n\tif slow(timeout) {\n\t\tt.Fatal(1)\n\t}\n}\n", "package p\n\nfunc TestFast(t *testing.T) {\n\ttimeout := 9000 * time.Millisecond\n\tif slow(timeout) {\n\t\tt.Fatal(1)\n\t}\n}\n", true},
		{"a golden file deleted", "testdata/out.golden", "a\n", "", true},
		{"a snapshot deleted", "src/__snapshots__/a.test.js.snap", "a\n", "", true},
		{"a test file in another language deleted", "tests/sum_test.exs", "test\n", "", true},
		{"a document deleted", "docs/a.md", "a\n", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := strong(compare(pair{c.path, c.before, c.after})); (len(got) > 0) != c.wrong {
				t.Errorf("got %+v, want held against it: %v", got, c.wrong)
			}
		})
	}
}

func TestWhatMayBeHonestIsShownAndNotHeldAgainstTheChange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, path, before, after, want string }{
		{"an expectation", "p_test.go", "func TestA(t *testing.T) {\n\tassert.Equal(t, 1, f())\n}\n", "func TestA(t *testing.T) {\n\tassert.Equal(t, 2, f())\n}\n", "what it expects was changed"},
		{"a snapshot", "a/__snapshots__/x.snap", "a", "b", "made anew"},
		{"a skip in a new test", "p_test.go", "package p\n", "package p\n\nfunc TestA(t *testing.T) {\n\tt.Skip(\"needs docker\")\n}\n", "is skipped"},
		{"the test command", "Makefile", "test:\n\tgo test ./...\n", "test:\n\tgo test -race ./...\n", "the test command was changed"},
		{"where pytest looks", "pyproject.toml", "[tool.pytest.ini_options]\n", "[tool.pytest.ini_options]\ntestpaths = [\"docs\"]\n", "looks for other tests"},
		{"what jest puts in a module's place", "jest.config.js", "module.exports = {}\n", "module.exports = {\n  moduleNameMapper: { './add': '<rootDir>/stub.js' },\n}\n", "another module"},
		{"a hook that only sets up", "conftest.py", "", "def pytest_configure(config):\n    config.addinivalue_line('markers', 'slow')\n", "a hook runs"},
		{"test data", "testdata/in.json", "{}", "", "a file beside tests is gone"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := compare(pair{c.path, c.before, c.after})
			if len(strong(got)) != 0 || !strings.Contains(fmt.Sprint(got), c.want) {
				t.Errorf("got %+v, want only %q", got, c.want)
			}
		})
	}
}

// INV-31: one line that ends the process makes every other test pass.
func TestATestThatEndsTheProcessIsHeldAgainstTheChange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, path, before, after string
		wrong                     bool
	}{
		{"python, at import", "tests/test_b.py", "", "import os\nos._exit(0)\n", true},
		{"python, in conftest", "conftest.py", "", "import atexit, os\natexit.register(lambda: os._exit(0))\n", true},
		{"python, an exit that is an error", "tests/test_b.py", "", "import sys\ndef test_a():\n    sys.exit(3)\n", false},
		{"python, in the product", "app/main.py", "", "import sys\nsys.exit(0)\n", false},
		{"python, in a comment", "tests/test_b.py", "", "# os._exit(0) would be wrong\ndef test_a():\n    assert f()\n", false},
		{"javascript", "test/b.test.js", "", "process.exit(0)\n", true},
		{"javascript, at the end", "test/b.test.js", "", "process.on('exit', () => { process.exitCode = 0 })\n", true},
		{"go, in init", "b_test.go", "", "package p\n\nimport \"os\"\n\nfunc init() { os.Exit(0) }\n", true},
		{"go, a TestMain that runs nothing", "b_test.go", "", "package p\n\nfunc TestMain(m *testing.M) {\n\tfmt.Println(\"ok\")\n}\n", true},
		{"go, a TestMain that runs all", "b_test.go", "", "package p\n\nfunc TestMain(m *testing.M) {\n\tos.Exit(m.Run())\n}\n", false},
		{"go, a TestMain that no longer does", "b_test.go", "package p\n\nfunc TestMain(m *testing.M) {\n\tos.Exit(m.Run())\n}\n", "package p\n\nfunc TestMain(m *testing.M) {\n\tos.Exit(code())\n}\n", true},
		{"ruby", "spec/b_spec.rb", "", "at_exit { exit! 0 }\n", true},
		{"rust", "tests/b.rs", "", "#[test]\nfn a() { std::process::exit(0) }\n", true},
		{"java", "src/test/java/BTest.java", "", "class BTest { static { System.exit(0); } }\n", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := strong(compare(pair{c.path, c.before, c.after})); (len(got) > 0) != c.wrong {
				t.Errorf("got %+v, want held against it: %v", got, c.wrong)
			}
		})
	}
}

func TestATestFileThatAnotherPlatformRunsIsOutOfSight(t *testing.T) {
	t.Parallel()
	text := "package p\n\nfunc TestA(t *testing.T) {\n\tif f() != 1 {\n\t\tt.Fatal(1)\n\t}\n}\n"
	for path, wrong := range map[string]bool{"p_windows_test.go": true, "testdata/p_test.go": true, "_p_test.go": true, "q_test.go": false} {
		if got := strong(compare(pair{"p_test.go", text, ""}, pair{path, "", text})); (len(got) > 0) != wrong {
			t.Errorf("%s: got %+v, want held against it: %v", path, got, wrong)
		}
	}
}

func FuzzMaskKeepsLinesAndLength(f *testing.F) {
	for i, l := range languages {
		f.Add(i, l.text)
	}
	f.Add(0, "`")
	f.Add(1, "'''")
	f.Add(3, "'\"' r#\"")
	f.Fuzz(func(t *testing.T, i int, text string) {
		ds := dialects()
		d := ds[(i%len(ds)+len(ds))%len(ds)]
		code, bare := d.syntax.mask(text)
		for _, s := range []string{code, bare} {
			if len(s) != len(text) || strings.Count(s, "\n") != strings.Count(text, "\n") {
				t.Fatalf("%s: %q becomes %q", d.name, text, s)
			}
		}
		d.read("a", text)
		compare(pair{"tests/a" + d.exts[0], text, "x"}, pair{"Makefile", text, "x"})
	})
}
