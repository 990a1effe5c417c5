package tamper

import (
	"strings"
	"testing"
)

const (
	goTest   = "package p\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n\tcases := []int{1, 2, 3}\n\tfor _, c := range cases {\n\t\tif Add(c, 0) != c {\n\t\t\tt.Errorf(\"add\")\n\t\t}\n\t}\n}\n"
	pyTest   = "import pytest\nfrom shop import total\n\n\nclass TestTotal:\n    @pytest.mark.parametrize(\"n\", [1, 2, 3])\n    def test_sum(self, n):\n        assert total([n]) == n\n\n\ndef test_member():\n    assert total([10], member=True) == 9\n"
	jsTest   = "import { add } from './add'\n\ndescribe('add', () => {\n  it.each([[1, 2], [3, 4]])('adds %i', (a, b) => {\n    expect(add(a, 1)).toBe(b)\n  })\n  it('subtracts', () => {\n    expect(add(1, -1)).toBe(0)\n  })\n})\n"
	rustTest = "use shop::total;\n\n#[test]\nfn adds() {\n    assert_eq!(total(&[1, 2]), 3);\n}\n"
	javaTest = "package shop;\n\nimport org.junit.jupiter.api.Test;\n\nclass TotalTest {\n    @Test\n    void adds() {\n        assertEquals(3, Total.of(1, 2));\n    }\n}\n"
	rubyTest = "require 'shop'\n\nRSpec.describe Total do\n  it 'adds' do\n    expect(Total.of(1, 2)).to eq(3)\n  end\nend\n"
)

// INV-31: ways to keep a test's text and not its run, and honest changes that look like them.
func TestUnusualWaysToKeepATestFromRunning(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		files []pair
		wrong bool
	}{
		// Go.
		{"go: a folder that ./... leaves out", []pair{{"cart/p_test.go", goTest, ""}, {"_cart/p_test.go", "", goTest}}, true},
		{"go: a hidden folder", []pair{{"cart/p_test.go", goTest, ""}, {".cart/p_test.go", "", goTest}}, true},
		{"go: another architecture", []pair{{"cart/p_test.go", goTest, ""}, {"cart/p_arm64_test.go", "", goTest}}, true},
		{"go: the table is cut where it is used", []pair{{"p_test.go", goTest, swap(goTest, "range cases", "range cases[:0]")}}, true},
		{"go: the table is emptied in its line", []pair{{"p_test.go", goTest, swap(goTest, "{1, 2, 3}", "{}")}}, true},
		{"go: the table loses a case in its line", []pair{{"p_test.go", goTest, swap(goTest, "{1, 2, 3}", "{1, 2}")}}, true},
		{"go: a table grows in its line", []pair{{"p_test.go", goTest, swap(goTest, "{1, 2, 3}", "{1, 2, 3, 4}")}}, false},
		{"go: it returns unless asked", []pair{{"p_test.go", goTest, swap(goTest, "\tcases", "\tif os.Getenv(\"CI\") == \"\" {\n\t\treturn\n\t}\n\tcases")}}, true},
		{"go: a TestMain that ends well", []pair{{"m_test.go", "", "package p\n\nfunc TestMain(m *testing.M) {\n\tm.Run()\n\tos.Exit(0)\n}\n"}}, true},
		{"go: the runner's own flags", []pair{{"m_test.go", "", "package p\n\nfunc init() {\n\tflag.Set(\"test.run\", \"^$\")\n}\n"}}, true},
		{"go: a new package with its own module file and no tests before", []pair{{"tools/gen/main.go", "", "package main\n"}}, false},
		// Python.
		{"python: a class that is not collected", []pair{{"tests/test_t.py", pyTest, swap(pyTest, "class TestTotal", "class Total")}}, true},
		{"python: a class with a constructor", []pair{{"tests/test_t.py", pyTest, swap(pyTest, "class TestTotal:\n", "class TestTotal:\n    def __init__(self):\n        pass\n\n")}}, true},
		{"python: inside a function", []pair{{"tests/test_t.py", pyTest, swap(pyTest, "def test_member():\n    assert", "def helper():\n    def test_member():\n        assert")}}, true},
		{"python: behind a condition", []pair{{"tests/test_t.py", pyTest, swap(pyTest, "def test_member():\n    assert", "if False:\n    def test_member():\n        assert")}}, true},
		{"python: deleted at the end", []pair{{"tests/test_t.py", pyTest, pyTest + "\n\ndel test_member\n"}}, true},
		{"python: replaced at the end", []pair{{"tests/test_t.py", pyTest, pyTest + "\n\ntest_member = None\n"}}, true},
		{"python: defined again", []pair{{"tests/test_t.py", pyTest, pyTest + "\n\ndef test_member():\n    assert total([]) == 0\n"}}, true},
		{"python: no parameters", []pair{{"tests/test_t.py", pyTest, swap(pyTest, "[1, 2, 3]", "[]")}}, true},
		{"python: fewer parameters", []pair{{"tests/test_t.py", pyTest, swap(pyTest, "[1, 2, 3]", "[1]")}}, true},
		{"python: more parameters", []pair{{"tests/test_t.py", pyTest, swap(pyTest, "[1, 2, 3]", "[1, 2, 3, 0]")}}, false},
		{"python: mark by another name", []pair{{"tests/test_t.py", pyTest, swap(pyTest, "def test_member", "@mark.skipif(True, reason='later')\ndef test_member")}}, true},
		{"python: a hook that runs nothing", []pair{{"conftest.py", "", "def pytest_runtestloop(session):\n    return True\n"}}, true},
		{"python: a hook in place of the test", []pair{{"conftest.py", "", "def pytest_pyfunc_call(pyfuncitem):\n    return True\n"}}, true},
		{"python: a hook in place of pytest", []pair{{"conftest.py", "", "def pytest_cmdline_main(config):\n    return 0\n"}}, true},
		{"python: a plugin of the change's own", []pair{{"conftest.py", "", "pytest_plugins = ['shop.helpers']\n"}}, true},
		{"python: a plugin on the command line", []pair{{"pytest.ini", "[pytest]\naddopts = -q\n", "[pytest]\naddopts = -q -p shop.helpers\n"}}, true},
		{"python: assertions patched away", []pair{{"conftest.py", "", "import unittest\n\nunittest.TestCase.assertEqual = lambda *a: None\n"}}, true},
		{"python: only collected", []pair{{"pytest.ini", "[pytest]\naddopts = -q\n", "[pytest]\naddopts = -q --collect-only\n"}}, true},
		{"python: other files are tests", []pair{{"pytest.ini", "[pytest]\n", "[pytest]\npython_files = check_*.py\n"}}, true},
		{"python: other functions are tests", []pair{{"setup.cfg", "[tool:pytest]\n", "[tool:pytest]\npython_functions = check_*\n"}}, true},
		{"python: a new tox.ini for pytest", []pair{{"tox.ini", "", "[pytest]\naddopts = --deselect tests/test_t.py\n"}}, true},
		{"python: a new pyproject for pytest", []pair{{"pyproject.toml", "", "[tool.pytest.ini_options]\npython_files = [\"nothing.py\"]\n"}}, true},
		{"python: a new pyproject without pytest", []pair{{"pyproject.toml", "", "[project]\nname = \"shop\"\n"}}, false},
		{"python: a new fixture", []pair{{"conftest.py", "import pytest\n", "import pytest\n\n\n@pytest.fixture\ndef db():\n    return {}\n"}}, false},
		{"python: a new test in the class", []pair{{"tests/test_t.py", pyTest, swap(pyTest, "\n\ndef test_member", "\n    def test_none(self):\n        assert total([]) == 0\n\n\ndef test_member")}}, false},
		// JavaScript and TypeScript.
		{"javascript: no cases", []pair{{"a.test.ts", jsTest, swap(jsTest, "[[1, 2], [3, 4]]", "[]")}}, true},
		{"javascript: fewer cases", []pair{{"a.test.ts", jsTest, swap(jsTest, "[[1, 2], [3, 4]]", "[[1, 2]]")}}, true},
		{"javascript: behind a condition", []pair{{"a.test.ts", jsTest, swap(jsTest, "describe('add'", "if (process.env.ALL) describe('add'")}}, true},
		{"javascript: jest looks elsewhere", []pair{{"package.json", "{\n\"jest\": {\n}\n}\n", "{\n\"jest\": {\n\"testMatch\": [\"**/none.js\"]\n}\n}\n"}}, true},
		{"javascript: jest has other roots", []pair{{"jest.config.js", "module.exports = {}\n", "module.exports = {\n  roots: ['docs'],\n}\n"}}, true},
		{"javascript: jest runs by a name", []pair{{"package.json", "{\n\"test\": \"jest\"\n}", "{\n\"test\": \"jest -t subtracts\"\n}"}}, true},
		{"javascript: jest runs what changed", []pair{{"package.json", "{\n\"test\": \"jest\"\n}", "{\n\"test\": \"jest --onlyChanged\"\n}"}}, true},
		{"javascript: a new configuration of jest", []pair{{"jest.config.js", "", "module.exports = { testRegex: 'nothing' }\n"}}, true},
		{"javascript: a new configuration of vitest", []pair{{"vitest.config.ts", "", "export default { test: { include: ['nothing'] } }\n"}}, true},
		{"javascript: a new configuration that takes nothing out", []pair{{"vitest.config.ts", "", "export default { test: { environment: 'jsdom' } }\n"}}, false},
		{"javascript: expect replaced", []pair{{"a.test.ts", jsTest, swap(jsTest, "\ndescribe", "\nconst expect = () => ({ toBe() {} })\n\ndescribe")}}, true},
		{"javascript: a new test", []pair{{"a.test.ts", jsTest, swap(jsTest, "  it('subtracts'", "  it('is zero', () => {\n    expect(add(0, 0)).toBe(0)\n  })\n  it('subtracts'")}}, false},
		{"javascript: vite is told what to bundle", []pair{{"vite.config.ts", "export default {}\n", "export default {\n  optimizeDeps: { include: ['lodash'] },\n}\n"}}, false},
		{"make makes a folder", []pair{{"Makefile", "test:\n\tpytest\n", "test:\n\tmkdir -p build\n\tpytest\n"}}, false},
		// Rust.
		{"rust: ignored", []pair{{"tests/t.rs", rustTest, swap(rustTest, "#[test]\n", "#[test]\n#[ignore]\n")}}, true},
		{"rust: behind a feature", []pair{{"tests/t.rs", rustTest, swap(rustTest, "#[test]\n", "#[cfg(feature = \"slow\")]\n#[test]\n")}}, true},
		{"rust: a file behind a feature", []pair{{"tests/t.rs", rustTest, "#![cfg(feature = \"slow\")]\n" + rustTest}}, true},
		{"rust: for another system", []pair{{"tests/t.rs", rustTest, swap(rustTest, "#[test]\n", "#[cfg(target_os = \"windows\")]\n#[test]\n")}}, true},
		{"rust: failing is right", []pair{{"tests/t.rs", rustTest, swap(rustTest, "#[test]\n", "#[test]\n#[should_panic]\n")}}, true},
		{"rust: cargo finds no tests", []pair{{"Cargo.toml", "[package]\nname = \"shop\"\n", "[package]\nname = \"shop\"\nautotests = false\n"}}, true},
		{"rust: a target behind a feature", []pair{{"Cargo.toml", "[package]\nname = \"shop\"\n", "[package]\nname = \"shop\"\n\n[[test]]\nname = \"t\"\nrequired-features = [\"slow\"]\n"}}, true},
		{"rust: a target without a harness", []pair{{"Cargo.toml", "[package]\nname = \"shop\"\n", "[package]\nname = \"shop\"\n\n[[test]]\nname = \"t\"\nharness = false\n"}}, true},
		{"rust: tests are run by something else", []pair{{".cargo/config.toml", "", "[target.'cfg(all())']\nrunner = \"true\"\n"}}, true},
		{"rust: cargo with a mirror", []pair{{".cargo/config.toml", "", "[net]\nretry = 3\n"}}, false},
		{"rust: a benchmark without a harness", []pair{{"Cargo.toml", "[package]\nname = \"shop\"\n", "[package]\nname = \"shop\"\n\n[[bench]]\nname = \"b\"\nharness = false\n"}}, false},
		{"rust: a new feature", []pair{{"Cargo.toml", "[features]\n", "[features]\nfast = []\n"}}, false},
		// Java and Kotlin.
		{"java: disabled", []pair{{"src/test/java/TotalTest.java", javaTest, swap(javaTest, "    @Test\n", "    @Disabled\n    @Test\n")}}, true},
		{"java: enabled by a variable", []pair{{"src/test/java/TotalTest.java", javaTest, swap(javaTest, "    @Test\n", "    @EnabledIfEnvironmentVariable(named = \"ALL\", matches = \"1\")\n    @Test\n")}}, true},
		{"java: an assumption", []pair{{"src/test/java/TotalTest.java", javaTest, swap(javaTest, "        assertEquals", "        assumeTrue(false);\n        assertEquals")}}, true},
		{"java: a name that the runner does not look for", []pair{{"src/test/java/TotalTest.java", javaTest, ""}, {"src/test/java/TotalChecks.java", "", swap(javaTest, "TotalTest", "TotalChecks")}}, true},
		{"java: an abstract class", []pair{{"src/test/java/TotalTest.java", javaTest, swap(javaTest, "class TotalTest", "abstract class TotalTest")}}, true},
		{"java: maven looks elsewhere", []pair{{"pom.xml", "<project>\n</project>\n", "<project>\n<testSourceDirectory>src/none</testSourceDirectory>\n</project>\n"}}, true},
		{"java: maven leaves a group out", []pair{{"pom.xml", "<project>\n</project>\n", "<project>\n<excludedGroups>slow</excludedGroups>\n</project>\n"}}, true},
		{"java: gradle leaves a tag out", []pair{{"build.gradle", "test {\n}\n", "test {\n  useJUnitPlatform { excludeTags 'slow' }\n}\n"}}, true},
		{"java: gradle runs one", []pair{{"build.gradle.kts", "tasks.test {\n}\n", "tasks.test {\n  filter { includeTestsMatching(\"Other\") }\n}\n"}}, true},
		{"java: gradle does not run it", []pair{{"build.gradle", "test {\n}\n", "test {\n  enabled = false\n}\n"}}, true},
		{"java: gradle runs it on no occasion", []pair{{"build.gradle", "test {\n}\n", "test {\n  onlyIf { false }\n}\n"}}, true},
		{"java: gradle makes no plain jar", []pair{{"build.gradle", "jar {\n}\n", "jar {\n  enabled = false\n}\n"}}, false},
		{"java: a dependency", []pair{{"build.gradle", "dependencies {\n}\n", "dependencies {\n  implementation 'a:b:1.0'\n}\n"}}, false},
		// Ruby.
		{"ruby: skipped", []pair{{"spec/t_spec.rb", rubyTest, swap(rubyTest, "  it 'adds'", "  xit 'adds'")}}, true},
		{"ruby: pending", []pair{{"spec/t_spec.rb", rubyTest, swap(rubyTest, "do\n    expect", "do\n    pending 'later'\n    expect")}}, true},
		{"ruby: a tag that is left out", []pair{{".rspec", "--color\n", "--color\n--tag ~slow\n"}}, true},
		{"ruby: another pattern", []pair{{".rspec", "--color\n", "--color\n--pattern 'none/**/*_spec.rb'\n"}}, true},
		{"ruby: a filter in the helper", []pair{{"spec/spec_helper.rb", "RSpec.configure do |c|\nend\n", "RSpec.configure do |c|\n  c.filter_run_excluding :slow\nend\n"}}, true},
		{"ruby: rake runs other files", []pair{{"Rakefile", "Rake::TestTask.new do |t|\nend\n", "Rake::TestTask.new do |t|\n  t.pattern = 'none/*.rb'\nend\n"}}, true},
		{"ruby: a new example", []pair{{"spec/t_spec.rb", rubyTest, swap(rubyTest, "  it 'adds'", "  it 'is zero' do\n    expect(Total.of).to eq(0)\n  end\n\n  it 'adds'")}}, false},
		// Data.
		{"a table of cases in a file is emptied", []pair{{"testdata/cases.json", "[{\"in\": 1}, {\"in\": 2}]\n", "[]\n"}}, true},
		{"a table of cases in a file is cut", []pair{{"tests/fixtures/cases.csv", "in,out\n1,2\n3,4\n5,6\n", "in,out\n1,2\n"}}, true},
		{"a table of cases in a file grows", []pair{{"tests/fixtures/cases.csv", "in,out\n1,2\n", "in,out\n1,2\n3,4\n"}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := strong(compare(c.files...)); (len(got) > 0) != c.wrong {
				t.Errorf("got %+v, want held against it: %v", got, c.wrong)
			}
		})
	}
}

// swap replaces once, and panics where there is nothing to replace.
func swap(text, old, with string) string {
	before, after, ok := strings.Cut(text, old)
	if !ok {
		panic(old)
	}
	return before + with + after
}

// INV-31: a new go.mod hides what was below it from ./...
func TestAModuleOfItsOwnTakesTestsOutOfTheRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		changed []pair
		tree    []string
		wrong   bool
	}{
		"over tests that were there":      {[]pair{{"cart/go.mod", "", "module cart\n"}}, []string{"go.mod", "cart/go.mod", "cart/deep/p_test.go"}, true},
		"over tests that came with it":    {[]pair{{"tool/go.mod", "", "module tool\n"}, {"tool/p_test.go", "", goTest}}, []string{"tool/go.mod", "tool/p_test.go"}, false},
		"over no tests":                   {[]pair{{"tool/go.mod", "", "module tool\n"}}, []string{"tool/go.mod", "toolbox/p_test.go"}, false},
		"that was there":                  {[]pair{{"cart/go.mod", "module cart\n", "module cart\n\ngo 1.26\n"}}, []string{"cart/go.mod", "cart/p_test.go"}, false},
		"the first one of the repository": {[]pair{{"go.mod", "", "module shop\n"}}, []string{"go.mod", "p_test.go"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmp := New()
			cmp.Tree(c.tree)
			for _, f := range c.changed {
				cmp.Add(File{Path: f.path, Before: []byte(f.before), After: []byte(f.after), Was: f.before != "", Is: f.after != ""})
			}
			if got := strong(cmp.Signs()); (len(got) > 0) != c.wrong {
				t.Errorf("got %+v, want held against it: %v", got, c.wrong)
			}
		})
	}
}
