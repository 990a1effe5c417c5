package tamper

import (
	"strings"
	"testing"
)

// INV-31: everyday edits of tests are not held against a change. The hostile rows that look like them stand in
// TestUnusualWaysToKeepATestFromRunning, and beside them here.
func TestEverydayEditsAreNotHeldAgainstTheChange(t *testing.T) {
	t.Parallel()
	cliTest := "package p\n\nfunc TestMainPrints(t *testing.T) {\n\told := os.Args\n\tdefer func() { os.Args = old }()\n\tos.Args = []string{\"app\", \"--verbose\"}\n\tmain()\n}\n"
	rustFile := "pub fn add(a: i32, b: i32) -> i32 {\n    a + b\n}\n"
	for _, c := range []struct {
		name  string
		files []pair
		wrong bool
	}{
		// Conditions, slices and names.
		{"python: a variable named like a test", []pair{{"tests/test_t.py", pyTest, swap(pyTest, "    assert total([10]", "    test_user = User()\n    assert total([10]")}}, false},
		{"python: a field named like a test", []pair{{"tests/test_t.py", pyTest, swap(pyTest, "    @pytest", "    def setUp(self):\n        self.test_dir = mkdtemp()\n\n    @pytest")}}, false},
		{"python: data named like a test", []pair{{"tests/test_t.py", pyTest, swap(pyTest, "\n\nclass", "\ntest_data = {1: 2}\n\n\nclass")}}, false},
		{"python: a setting of a module", []pair{{"conftest.py", "import app\n", "import app\n\napp.test_mode = True\nsetattr(app, \"test_dir\", 1)\n"}}, false},
		{"python: a method of a class of tests replaced", []pair{{"conftest.py", "import app\n", "import app\n\nTestTotal.test_sum = lambda self: None\n"}}, true},
		{"python: a test unset by its name", []pair{{"tests/test_t.py", pyTest, pyTest + "\n\nsetattr(TestTotal, \"test_sum\", None)\n"}}, true},
		{"python: the rows behind the header", []pair{{"tests/test_t.py", pyTest, swap(pyTest, "    assert total([10]", "    for row in rows[1:]:\n        assert row\n    assert total([10]")}}, false},
		{"python: none of the rows", []pair{{"tests/test_t.py", pyTest, swap(pyTest, "    assert total([10]", "    for row in rows[:0]:\n        assert row\n    assert total([10]")}}, true},
		{"python: a platform in conftest", []pair{{"conftest.py", "import sys\n", "import sys\n\nif sys.platform == \"win32\":\n    ENCODING = \"cp1252\"\n"}}, false},
		{"python: it returns on a platform", []pair{{"tests/test_t.py", pyTest, swap(pyTest, "    assert total([10]", "    if sys.platform == 'linux':\n        return\n    assert total([10]")}}, true},
		{"python: what it asserts is behind a variable", []pair{{"tests/test_t.py", pyTest, swap(pyTest, "    assert total([10]", "    if os.environ.get('ALL'):\n        assert total([10]")}}, true},
		{"go: the lines behind the header", []pair{{"p_test.go", goTest, swap(goTest, "\tcases", "\tfor _, l := range lines[1:] {\n\t\tt.Error(l)\n\t}\n\tcases")}}, false},
		{"go: a variable of the environment is checked", []pair{{"p_test.go", goTest, swap(goTest, "\tcases", "\tif got := os.Getenv(\"X\"); got != \"1\" {\n\t\tt.Error(got)\n\t}\n\tcases")}}, false},
		{"go: a helper that knows platforms", []pair{{"p_test.go", goTest, goTest + "\nfunc exe(name string) string {\n\tif runtime.GOOS == \"windows\" {\n\t\treturn name + \".exe\"\n\t}\n\treturn name\n}\n"}}, false},
		{"go: what it asserts is behind a variable", []pair{{"p_test.go", goTest, swap(swap(goTest, "\tfor", "\tif os.Getenv(\"ALL\") != \"\" {\n\tfor"), "\n\t}\n}\n", "\n\t}\n\t}\n}\n")}}, true},
		{"go: it logs and returns on a platform", []pair{{"p_test.go", goTest, swap(goTest, "\tcases", "\tif runtime.GOOS == \"linux\" {\n\t\tt.Log(\"no\")\n\t\treturn\n\t}\n\tcases")}}, true},
		{"javascript: a log on the CI", []pair{{"a.test.ts", jsTest, swap(jsTest, "    expect(add(1, -1))", "    if (process.env.CI) { log() }\n    expect(add(1, -1))")}}, false},
		{"javascript: it returns on the CI", []pair{{"a.test.ts", jsTest, swap(jsTest, "    expect(add(1, -1))", "    if (process.env.CI) return\n    expect(add(1, -1))")}}, true},
		{"javascript: all of it behind a variable", []pair{{"a.test.ts", jsTest, swap(jsTest, "describe('add'", "if (process.env.ALL) {\n  describe('add'") + "}\n"}}, true},
		{"javascript: an object named context", []pair{{"a.test.ts", jsTest, swap(jsTest, "    expect(add(1, -1))", "    if (x) { context.y = 1 }\n    expect(add(1, -1))")}}, false},
		{"javascript: assert of a helper", []pair{{"test/helper.js", "export const a = 1\n", "export const a = 1\nexport function assert(x) {\n  if (!x) throw new Error(x)\n}\n"}}, false},
		{"rust: the first tests of a file, for one platform", []pair{{"src/add.rs", rustFile, rustFile + "\n#[cfg(all(test, unix))]\nmod tests {\n    #[test]\n    fn adds() {\n        assert_eq!(super::add(1, 2), 3);\n    }\n}\n"}}, false},
		{"rust: tests move behind a condition", []pair{{"tests/t.rs", rustTest, ""}, {"src/add.rs", rustFile, rustFile + "\n#[cfg(all(test, windows))]\nmod tests {\n    #[test]\n    fn adds() {\n        assert_eq!(total(&[1, 2]), 3);\n    }\n}\n"}}, true},
		// Replaced assertions and arguments.
		{"go: a test of the command line", []pair{{"main_test.go", "", cliTest}}, false},
		{"go: the command line in a test that was there", []pair{{"p_test.go", goTest, swap(goTest, "\tcases", "\tos.Args = []string{\"app\"}\n\tcases")}}, false},
		{"go: the arguments of the runner", []pair{{"main_test.go", "", swap(cliTest, "\"--verbose\"", "\"-test.run=^$\"")}}, true},
		{"go: the arguments before the runner reads them", []pair{{"main_test.go", "", "package p\n\nfunc init() {\n\tos.Args = none\n}\n"}}, true},
		{"python: a field named like an assertion", []pair{{"tests/test_t.py", pyTest, swap(pyTest, "    assert total([10]", "    req.assertion = jwt()\n    m.assert_ready = Mock()\n    assert total([10]")}}, false},
		{"python: the assertions of mocks replaced", []pair{{"tests/test_t.py", pyTest, pyTest + "\nmock.Mock.assert_called_with = lambda *a: None\n"}}, true},
		{"python: an assertion of the instance replaced", []pair{{"tests/test_t.py", pyTest, swap(pyTest, "    assert total([10]", "    self.assertEqual = lambda *a: None\n    assert total([10]")}}, true},
		// Tables.
		{"python: a case more and wrapped", []pair{{"tests/test_t.py", pyTest, swap(pyTest, "(\"n\", [1, 2, 3])", "(\n        \"n\",\n        [\n            1,\n            2,\n            3,\n            4,\n        ],\n    )")}}, false},
		{"python: a case less and wrapped", []pair{{"tests/test_t.py", pyTest, swap(pyTest, "(\"n\", [1, 2, 3])", "(\n        \"n\",\n        [\n            1,\n            2,\n        ],\n    )")}}, true},
		{"python: the values in a variable", []pair{{"tests/test_t.py", swap(pyTest, "    assert total([10]", "    for x in [1, 2, 3]:\n        assert x\n    assert total([10]"), swap(pyTest, "    assert total([10]", "    xs = [1, 2, 3]\n    for x in xs:\n        assert x\n    assert total([10]")}}, false},
		{"python: fewer values in a loop", []pair{{"tests/test_t.py", swap(pyTest, "    assert total([10]", "    for x in [1, 2, 3]:\n        assert x\n    assert total([10]"), swap(pyTest, "    assert total([10]", "    for x in [1]:\n        assert x\n    assert total([10]")}}, true},
		{"python: a parameter of a request less", []pair{{"tests/test_t.py", swap(pyTest, "    assert total([10]", "    params = {\"q\": 1, \"page\": 2}\n    assert total([10]"), swap(pyTest, "    assert total([10]", "    params = {\"q\": 1}\n    assert total([10]")}}, false},
		{"python: a column less", []pair{{"tests/test_t.py", swap(pyTest, "\"n\", [1, 2, 3]", "\"n,m\", [(1, 2), (3, 4)]"), swap(pyTest, "\"n\", [1, 2, 3]", "\"n\", [(1,), (3,)]")}}, false},
		{"go: a map wrapped and grown", []pair{{"p_test.go", swap(goTest, "\tcases", "\ttests := map[string]int{\"a\": 1, \"b\": 2}\n\tcases"), swap(goTest, "\tcases", "\ttests := map[string]int{\n\t\t\"a\": 1,\n\t\t\"b\": 2,\n\t\t\"c\": 3,\n\t}\n\tcases")}}, false},
		{"go: a map wrapped and cut", []pair{{"p_test.go", swap(goTest, "\tcases", "\ttests := map[string]int{\"a\": 1, \"b\": 2}\n\tcases"), swap(goTest, "\tcases", "\ttests := map[string]int{\n\t\t\"a\": 1,\n\t}\n\tcases")}}, true},
		{"go: a field of the table less", []pair{{"p_test.go", swap(goTest, "[]int{1, 2, 3}", "[]struct{ a, b, c int }{{1, 2, 3}, {4, 5, 6}}"), swap(goTest, "[]int{1, 2, 3}", "[]struct{ a, b int }{{1, 2}, {4, 5}}")}}, false},
		{"go: a row of the table less", []pair{{"p_test.go", swap(goTest, "[]int{1, 2, 3}", "[]struct{ a, b, c int }{{1, 2, 3}, {4, 5, 6}}"), swap(goTest, "[]int{1, 2, 3}", "[]struct{ a, b, c int }{{1, 2, 3}}")}}, true},
		{"javascript: an object wrapped", []pair{{"a.test.ts", swap(jsTest, "expect(add(1, -1))", "call({ params: { id: 1, name: 'x' } })\n    expect(add(1, -1))"), swap(jsTest, "expect(add(1, -1))", "call({\n      params: {\n        id: 1,\n        name: 'x',\n      },\n    })\n    expect(add(1, -1))")}}, false},
		{"javascript: cases wrapped", []pair{{"a.test.ts", jsTest, swap(jsTest, "([[1, 2], [3, 4]])", "([\n    [1, 2],\n    [3, 4],\n    [5, 6],\n  ])")}}, false},
		{"javascript: cases wrapped and cut", []pair{{"a.test.ts", jsTest, swap(jsTest, "([[1, 2], [3, 4]])", "([\n    [1, 2]\n  ])")}}, true},
		{"javascript: an argument that no case needs", []pair{{"a.test.ts", jsTest, swap(swap(jsTest, "(a, b) =>", "(a) =>"), "toBe(b)", "toBe(2)")}}, false},
		{"rust: an attribute's case less", []pair{{"tests/t.rs", "#[rstest]\n#[case(1, 2)]\n#[case(3, 4)]\nfn adds(#[case] a: i32, #[case] b: i32) {\n    assert_eq!(a + 1, b);\n}\n", "#[rstest]\n#[case(1, 2)]\nfn adds(#[case] a: i32, #[case] b: i32) {\n    assert_eq!(a + 1, b);\n}\n"}}, true},
		{"java: fewer values of a source", []pair{{"src/test/java/TotalTest.java", swap(javaTest, "    @Test\n", "    @ParameterizedTest\n    @ValueSource(ints = {1, 2})\n"), swap(javaTest, "    @Test\n", "    @ParameterizedTest\n    @ValueSource(ints = {1})\n")}}, true},
		// Data.
		{"a requirement of the tests less", []pair{{"tests/requirements.txt", "pytest\nmock\n", "pytest\n"}}, false},
		{"a line of a document less", []pair{{"tests/README.md", "a\nb\n", "a\n"}}, false},
		{"a sum less", []pair{{"e2e/go.sum", "a\nb\n", "a\n"}}, false},
		{"a key of some data less", []pair{{"testdata/in.json", "{\n  \"legacy\": 2,\n  \"a\": 1\n}\n", "{\n  \"a\": 1\n}\n"}}, false},
		{"a user less in a fixture", []pair{{"tests/fixtures/users.json", "[{\"id\": 1}, {\"id\": 2}]\n", "[{\"id\": 1}]\n"}}, false},
		{"a case less in a list", []pair{{"testdata/cases.yaml", "- in: 1\n  out: 2\n- in: 3\n  out: 4\n", "- in: 1\n  out: 2\n"}}, true},
		{"all cases gone with their file", []pair{{"testdata/cases.yaml", "- in: 1\n  out: 2\n", ""}}, true},
		{"all cases in another file", []pair{{"testdata/cases.yaml", "- in: 1\n  out: 2\n", ""}, {"testdata/cases.json", "", "[{\"in\": 1, \"out\": 2}]\n"}}, false},
		// Settings.
		{"python: what a package leaves out", []pair{{"pyproject.toml", "", "[project]\nname = \"shop\"\n\n[tool.setuptools.packages.find]\nexclude = [\"tests*\"]\n"}}, false},
		{"python: what mypy leaves out", []pair{{"setup.cfg", "[mypy]\n", "[mypy]\nexclude = tests/data\n"}}, false},
		{"python: fixtures in modules of the tests", []pair{{"conftest.py", "import pytest\n", "import pytest\n\npytest_plugins = [\"tests.fixtures.db\"]\n"}}, false},
		{"python: fixtures in modules of the tests, line by line", []pair{{"conftest.py", "import pytest\n", "import pytest\n\npytest_plugins = [\n    \"tests.fixtures.db\",\n    \"tests.fixtures.web\",\n]\n"}}, false},
		{"python: fixtures in such a module and in another", []pair{{"conftest.py", "import pytest\n", "import pytest\n\npytest_plugins = [\"tests.fixtures.db\"] + [\"shop.helpers\"]\n"}}, true},
		{"python: a hook in such a module", []pair{{"tests/fixtures/db.py", "import pytest\n", "import pytest\n\n\ndef pytest_runtestloop(session):\n    return True\n"}}, true},
		{"python: a fixture in such a module", []pair{{"tests/fixtures/db.py", "import pytest\n", "import pytest\n\n\n@pytest.fixture\ndef db():\n    return {}\n"}}, false},
		{"javascript: what is measured", []pair{{"vitest.config.ts", "export default {\n  test: {\n  },\n}\n", "export default {\n  test: {\n    coverage: { include: ['src/**'], exclude: ['**/*.test.ts'] },\n  },\n}\n"}}, false},
		{"javascript: what is measured, line by line", []pair{{"vitest.config.ts", "export default {\n  test: {\n    coverage: {\n    },\n  },\n}\n", "export default {\n  test: {\n    coverage: {\n      include: ['src/**'],\n      exclude: ['**/*.test.ts'],\n    },\n  },\n}\n"}}, false},
		{"javascript: what is run beside what is measured", []pair{{"vitest.config.ts", "export default {\n  test: {\n  },\n}\n", "export default {\n  test: {\n    coverage: { all: true }, include: ['nothing'],\n  },\n}\n"}}, true},
		{"javascript: what is left out", []pair{{"vitest.config.ts", "export default {\n  test: {\n  },\n}\n", "export default {\n  test: {\n    exclude: ['src/add.test.ts'],\n  },\n}\n"}}, true},
		{"javascript: the runner's version and a build", []pair{{"package.json", "{\n\"build\": \"x\"\n}", "{\n\"build\": \"vitest --version && esbuild a.ts -o b\"\n}"}}, false},
		// Words in strings, and constraints of files without tests that were there.
		{"go: a test about tests", []pair{{"p_test.go", goTest, swap(goTest, "\tcases", "\ttexts := []string{\"os._exit(0)\", \"unittest.TestCase.assertEqual = None\"}\n\tcases")}}, false},
		{"python: a string that is run", []pair{{"tests/test_t.py", pyTest, pyTest + "\nexec(\"import os; os._exit(0)\")\n"}}, true},
		{"python: a string that holds code", []pair{{"tests/test_t.py", pyTest, pyTest + "\nx = f\"{os._exit(0)}\"\n"}}, true},
		{"javascript: behind an expression with a quote", []pair{{"a.test.ts", jsTest, jsTest + "\nconst r = /'/, x = process.exit(0), y = ''\n"}}, true},
		{"go: a helper for one platform", []pair{{"lab_test.go", "package p\n\nfunc lab() int { return 1 }\n", "//go:build linux\n\npackage p\n\nfunc lab() int { return 1 }\n"}}, false},
		{"go: a new file beside tests for one platform", []pair{{"a_test.go", "", "//go:build linux\n\npackage p\n"}, {"p_test.go", "//go:build linux\n\n" + goTest, "//go:build linux\n\n" + goTest + "\n// More.\n"}}, false},
		{"go: tests for one platform", []pair{{"p_test.go", goTest, "//go:build linux\n\n" + goTest}}, true},
		// Where tests are collected.
		{"python: functions inside of two tests", []pair{{"tests/test_t.py", pyTest, pyTest + "\n\ndef test_a():\n    @retry\n    def test_func():\n        assert 1 == f()\n    test_func()\n\n\ndef test_b():\n    @retry\n    def test_func():\n        assert 2 == f()\n    test_func()\n"}}, false},
		{"python: the bases on lines of their own", []pair{{"tests/test_t.py", "class ViewTests(A, TestCase):\n    def test_a(self):\n        self.assertEqual(1, f())\n", "class ViewTests(\n    A,\n    TestCase,\n):\n    def test_a(self):\n        self.assertEqual(1, f())\n"}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := strong(compare(c.files...)); (len(got) > 0) != c.wrong {
				t.Errorf("got %+v, want held against it: %v", got, c.wrong)
			}
		})
	}
}

// A text of brackets alone must cost no more than its length.
func TestATableWithoutAnEndIsReadOnce(t *testing.T) {
	t.Parallel()
	if got := cells("cases = " + strings.Repeat("[", 1<<20)); len(got) == 0 {
		t.Error("the table is not seen")
	}
	if got := total(cells("cases = [[1], [2], [3]]")); got != 3 {
		t.Errorf("control: %d values, want 3", got)
	}
}

// INV-31: what a new file does depends on what the repository had.
func TestANewFileIsReadAgainstTheTree(t *testing.T) {
	t.Parallel()
	renamed := swap(javaTest, "TotalTest", "TotalShould")
	for _, c := range []struct {
		name    string
		changed []pair
		tree    []string
		wrong   bool
	}{
		{"vitest where nothing was tested", []pair{{"vitest.config.ts", "", "export default { test: { include: ['src/**/*.test.ts'] } }\n"}, {"src/add.test.ts", "", jsTest}}, []string{"src/add.ts", "src/add.test.ts", "vitest.config.ts"}, false},
		{"vitest where something was tested", []pair{{"vitest.config.ts", "", "export default { test: { include: ['src/**/*.test.ts'] } }\n"}}, []string{"src/add.ts", "test/add.test.ts", "vitest.config.ts"}, true},
		{"vitest where the last test is deleted", []pair{{"vitest.config.ts", "", "export default { test: { include: ['none'] } }\n"}, {"a.test.ts", jsTest, ""}}, []string{"vitest.config.ts"}, true},
		{"pytest where nothing was tested", []pair{{"pytest.ini", "", "[pytest]\npython_files = check_*.py\n"}}, []string{"shop/a.py", "pytest.ini"}, false},
		{"a hook where nothing was tested", []pair{{"conftest.py", "", "def pytest_runtestloop(session):\n    return True\n"}}, []string{"shop/a.py", "conftest.py"}, true},
		{"a test of a module unset", []pair{{"conftest.py", "import tests\n", "import tests\n\ntest_a.test_sum = None\n"}}, []string{"tests/test_a.py", "conftest.py"}, true},
		{"a field of something else", []pair{{"conftest.py", "import tests\n", "import tests\n\nsettings.test_sum = None\n"}}, []string{"tests/test_a.py", "conftest.py"}, false},
		{"a name that Gradle knows", []pair{{"src/test/java/TotalTest.java", javaTest, ""}, {"src/test/java/TotalShould.java", "", renamed}}, []string{"build.gradle", "src/test/java/TotalShould.java"}, false},
		{"a name that Gradle knows, with an assertion less", []pair{{"src/test/java/TotalTest.java", javaTest, ""}, {"src/test/java/TotalShould.java", "", swap(renamed, "        assertEquals(3, Total.of(1, 2));\n", "")}}, []string{"build.gradle", "src/test/java/TotalShould.java"}, true},
		{"a name that Gradle knows, where Gradle is new", []pair{{"src/test/java/TotalTest.java", javaTest, ""}, {"src/test/java/TotalShould.java", "", renamed}, {"z/build.gradle", "", "x\n"}}, []string{"z/build.gradle", "src/test/java/TotalShould.java"}, true},
		{"a name that Gradle knows, beside Maven", []pair{{"src/test/java/TotalTest.java", javaTest, ""}, {"src/test/java/TotalShould.java", "", renamed}}, []string{"pom.xml", "build.gradle", "src/test/java/TotalShould.java"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
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
