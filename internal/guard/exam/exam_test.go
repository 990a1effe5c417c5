package exam

import (
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/guard/tamper"
)

// repo is a base commit: path → text.
type repo map[string]string

func (r repo) read(p string) ([]byte, bool) {
	text, ok := r[p]
	return []byte(text), ok
}

func shell(line string) []Gate {
	return []Gate{{Name: "gates.iteration", Argv: []string{"sh", "-c", line}}}
}

// compare changes one file of the base; an empty text deletes it.
func compare(base repo, gates []Gate, path, after string) []tamper.Sign {
	before, was := base[path]
	return Read(gates, base.read).Compare(tamper.File{Path: path, Before: []byte(before), After: []byte(after), Was: was, Is: after != "", BeforeID: "1", AfterID: "2"})
}

const checkScript = `#!/bin/sh
# Prints what fails.
fails=0
check() {
	got=$(printf "$1" | bin/total)
	[ "$got" = "$2" ] || { echo "want $2, got $got"; fails=1; }
}
check 'pen,1,0.29\n' 0.29
check 'pen,2,0.29\n' 0.58
exit $fails
`

// edit replaces the first old of the script by new.
func edit(text, old, now string) string {
	if !strings.Contains(text, old) {
		panic("the text lacks " + old)
	}
	return strings.Replace(text, old, now, 1)
}

// INV-31: each edit with what has to come of it. What is free is the control.
func TestTheScriptOfAGateMayGrowAndLosesNothing(t *testing.T) {
	t.Parallel()
	before := "check 'pen,2,0.29\\n' 0.58\n"
	insert := func(lines string) string { return edit(checkScript, before, lines+before) }
	for _, c := range []struct {
		name  string
		after string
		want  string // part of a strong sign; "" none
		shown bool   // a weak sign is wanted
	}{
		{name: "one more case", after: edit(checkScript, before, before+"check 'cup,3,1.05\\n' 3.15\n"), shown: true},
		{name: "a case with a pipe of its own", after: insert("printf 'x\\n' | bin/total | grep -q 0 || echo no\n"), shown: true},
		{name: "another comment", after: edit(checkScript, "Prints what fails", "Tells each failure")},
		{name: "another layout", after: edit(checkScript, "\tgot=", "    got=")},
		{name: "deleted", after: "", want: "is gone"},
		{name: "emptied to a pass", after: "exit 0\n", want: "is gone"},
		{name: "a case less", after: edit(checkScript, before, ""), want: "0.58"},
		{name: "another expectation", after: edit(checkScript, "0.58", "0.57"), want: "0.58"},
		{name: "cases in another order", after: edit(checkScript, "check 'pen,1,0.29\\n' 0.29\n"+before, before+"check 'pen,1,0.29\\n' 0.29\n"), want: "changed, moved or is gone"},
		{name: "exit 0 in front", after: edit(checkScript, "fails=0", "exit 0\nfails=0"), want: "exit"},
		{name: "exit 0 behind a condition", after: insert("if [ -n \"$CI\" ]; then exit 0; fi\n"), want: "exit"},
		{name: "the counter put back", after: edit(checkScript, "exit $fails", "fails=0\nexit $fails"), want: "sets fails"},
		{name: "the counter read from a file", after: edit(checkScript, "exit $fails", "read fails < /dev/null\nexit $fails"), want: "read"},
		{name: "the checker defined anew", after: insert("check() { :; }\n"), want: "defines check"},
		{name: "printf defined anew", after: insert("printf() { :; }\n"), want: "defines printf"},
		{name: "the old cases in a branch that never runs", after: edit(edit(checkScript, "check 'pen,1", "if false; then\ncheck 'pen,1"), before, before+"fi\n"), want: "is gone"},
		{name: "the old cases in a document", after: edit(edit(checkScript, "check 'pen,1", ": <<'E'\ncheck 'pen,1"), before, before+"E\n"), want: "is gone"},
		{name: "the old cases in a string", after: edit(edit(checkScript, "check 'pen,1", "x=\"\ncheck 'pen,1"), before, before+"\"\n"), want: "is gone"},
		{name: "the old cases commented out", after: edit(checkScript, before, "# "+before), want: "0.58"},
		{name: "a trap", after: insert("trap 'exit 0' EXIT\n"), want: "trap"},
		{name: "another PATH", after: insert("PATH=./fake:$PATH\n"), want: "sets PATH"},
		{name: "an alias", after: insert("alias check=true\n"), want: "alias"},
		{name: "a file sourced", after: insert(". ./more.sh\n"), want: "(.)"},
		{name: "a program in its place", after: insert("exec true\n"), want: "exec"},
		{name: "a command that only the run knows", after: insert("$CMD now\n"), want: "only the run knows"},
		{name: "something that runs on", after: insert("(sleep 1; echo) &\n"), want: "runs on"},
		{name: "no shell any more", after: "if\n", want: "can no longer be read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			base := repo{"tests/run.sh": checkScript}
			expect(t, compare(base, shell("sh tests/run.sh"), "tests/run.sh", c.after), c.want, c.shown)
			// The control: a gate that runs something else has no say about this file.
			if got := compare(base, shell("sh tests/other.sh"), "tests/run.sh", c.after); len(got) != 0 {
				t.Errorf("control: %v", got)
			}
		})
	}
}

func expect(t *testing.T, signs []tamper.Sign, want string, shown bool) {
	t.Helper()
	var strong, weak []string
	for _, s := range signs {
		if s.Weak {
			weak = append(weak, s.Detail)
		} else {
			strong = append(strong, s.Detail)
		}
	}
	switch {
	case want == "" && len(strong) > 0:
		t.Errorf("held against an honest change: %q", strong)
	case want != "" && !strings.Contains(strings.Join(strong, "\n"), want):
		t.Errorf("want %q held against it, got %q (and shown %q)", want, strong, weak)
	case want == "" && shown != (len(weak) > 0):
		t.Errorf("shown %q, want that: %v", weak, shown)
	}
}

func TestTheLastCommandOfAScriptKeepsItsSay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, before, after, want string }{
		{"appended to a script whose last command decides", "run a\nrun b\n", "run a\nrun b\nrun c\n", "behind the last one"},
		{"put before it", "run a\nrun b\n", "run a\nrun c\nrun b\n", ""},
		{"appended under set -e", "set -e\nrun a\n", "set -e\nrun a\nrun c\n", ""},
		{"appended under set -eu in one word", "set -eu\nrun a\n", "set -eu\nrun a\nrun c\n", ""},
		{"appended behind a command that exits by itself", "run a || exit 1\n", "run a || exit 1\nrun c || echo no\n", ""},
		{"in a script that reads $?", "run a\ns=$?\necho\nexit $s\n", "run a\nrun c\ns=$?\necho\nexit $s\n", "($?)"},
		{"set -e taken out", "set -e\nrun a\n", "run a\n", "set -e"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			expect(t, compare(repo{"ci/test.sh": c.before}, shell("./ci/test.sh"), "ci/test.sh", c.after), c.want, c.want == "")
		})
	}
}

const table = `failed=0
while IFS='|' read -r in want; do
	[ "$(printf '%s' "$in" | bin/total)" = "$want" ] || failed=1
done <<CASES
1|one
2|two
CASES
for f in a.txt b.txt; do grep -q x $f || failed=1; done
cases=(first second)
python3 - <<'CODE'
import app
CODE
exit $failed
`

func TestTablesOfCasesMayGrow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, old, now, want string }{
		{"a row more", "2|two\n", "2|two\n3|three\n", ""},
		{"a row between", "2|two\n", "1.5|x\n2|two\n", ""},
		{"a row less", "1|one\n", "", "while"},
		{"another row", "1|one", "1|uno", "while"},
		{"a row that runs a command", "2|two\n", "2|two\n$(kill 0)|x\n", "while"},
		{"a file more to look at", "a.txt b.txt", "a.txt c.txt b.txt", ""},
		{"a file less", "a.txt b.txt", "b.txt", "for f"},
		{"an element more", "(first second)", "(first second third)", ""},
		{"an element less", "(first second)", "(first)", "cases"},
		{"code that an interpreter reads", "import app\n", "import app\nimport os\n", "python3"},
		{"another loop", "|| failed=1\ndone", "|| failed=0\ndone", "while"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			expect(t, compare(repo{"tests/run.sh": table}, shell("sh tests/run.sh"), "tests/run.sh", edit(table, c.old, c.now)), c.want, c.want == "")
		})
	}
}

const manifest = `{"name": "shop", "scripts": {"test": "npm run unit && sh ci/e2e.sh", "unit": "jest --ci", "build": "tsc", "prepare": "husky"}, "devDependencies": {"jest": "29.0.0"}}`

const makeText = `CFLAGS = -O1
FLAGS := -race
.PHONY: test lint
all: build
build:
	cc $(CFLAGS) -o till till.c
test: unit
	go test $(FLAGS) ./...
unit:
	sh scripts/unit.sh
lint:
	golint ./...
`

func TestWhatGatesReachThroughTheirRunnersIsHeldToo(t *testing.T) {
	t.Parallel()
	node := repo{"package.json": manifest, "ci/e2e.sh": "run a\nrun b\n", "web/package.json": `{"scripts": {"test": "mocha"}}`}
	mk := repo{"Makefile": makeText, "scripts/unit.sh": "set -e\nrun a\n"}
	mk2 := repo{"Makefile": "DIR = ci\nALL := sh $(DIR)/all.sh\ncheck:\n\t@$(ALL) $@\n", "ci/all.sh": "run a\nrun b\n"}
	py := repo{"scripts/verify.py": "import app\nassert app.total() == 3\nprint('ok')\n", "app/main.py": "import sys\nprint(1)\n", "tests/test_a.py": "def test_a():\n    assert 1 + 1 == 2\n"}
	for _, c := range []struct {
		name, gate  string
		base        repo
		path, after string
		want        string
		shown       bool
	}{
		{"npm test: the script itself", "npm test", node, "package.json", edit(manifest, "npm run unit && sh ci/e2e.sh", "exit 0"), `script "test" was changed`, false},
		{"npm test: a script that it runs", "npm test", node, "package.json", edit(manifest, "jest --ci", "jest --ci --passWithNoTests"), `script "unit" was changed`, false},
		{"npm test: a script in front of it", "npm test", node, "package.json", edit(manifest, `"build"`, `"pretest": "rm -r test", "build"`), `script "pretest" would now run`, false},
		{"npm test: the script gone", "npm t", node, "package.json", `{"name": "shop"}`, `script "test" is gone`, false},
		{"npm test: a script that it does not run", "npm test", node, "package.json", edit(manifest, "tsc", "tsc -p ."), "", false},
		{"npm test: a dependency", "npm test", node, "package.json", edit(manifest, "29.0.0", "29.1.0"), "", false},
		{"npm test: a shell script behind it", "npm test", node, "ci/e2e.sh", "run a\n", "run b", false},
		{"npm ci: what installing runs", "npm ci && npm run unit", node, "package.json", edit(manifest, "husky", "sh x.sh"), `script "prepare"`, false},
		{"npm --prefix", "npm --prefix web test", node, "web/package.json", `{"scripts": {"test": "true"}}`, `script "test"`, false},
		{"cd web && npm test", "cd web && npm test", node, "web/package.json", `{"scripts": {"test": "true"}}`, `script "test"`, false},
		{"cd web does not reach the root", "cd web && npm test", node, "package.json", edit(manifest, "npm run unit && sh ci/e2e.sh", "true"), "", false},
		{"npm test: the package manager's shell", "npm test", node, ".npmrc", "script-shell=/bin/true\n", "in another way", false},
		{"npm test: an honest .npmrc", "npm test", node, ".npmrc", "fund=false\n", "", false},
		{"npm test: a planted runner", "npm test", node, "node_modules/.bin/jest", "#!/bin/sh\n", "instead of the installed one", false},
		{"npm test: a new configuration of the runner", "npm test", node, "jest.config.js", "module.exports = {}\n", "jest would read", false},

		{"make test: its recipe", "make test", mk, "Makefile", edit(makeText, "go test $(FLAGS) ./...", "true"), "rule test", false},
		{"make test: an ignored failure", "make test", mk, "Makefile", edit(makeText, "\tgo test", "\t-go test"), "rule test", false},
		{"make test: what it needs", "make test", mk, "Makefile", edit(makeText, "test: unit", "test:"), "rule test", false},
		{"make test: a rule that it needs", "make test", mk, "Makefile", edit(makeText, "sh scripts/unit.sh", "true"), "rule unit", false},
		{"make test: a second rule for it", "make test", mk, "Makefile", makeText + "test:\n\t@true\n", "would now run", false},
		{"make test: a variable that it uses", "make test", mk, "Makefile", edit(makeText, "-race", "-run=NONE"), "variable FLAGS", false},
		{"make test: the shell", "make test", mk, "Makefile", "SHELL = /bin/true\n" + makeText, "variable SHELL", false},
		{"make test: .IGNORE", "make test", mk, "Makefile", ".IGNORE:\n" + makeText, "rule .IGNORE", false},
		{"make test: an included file", "make test", mk, "Makefile", "-include x.mk\n" + makeText, "a setting", false},
		{"make test: another file of higher rank", "make test", mk, "GNUmakefile", "test:\n", "instead of Makefile", false},
		{"make test: a target of its own", "make test", mk, "Makefile", makeText + "docs:\n\tmkdocs\n", "", false},
		{"make test: a rule that it does not need", "make test", mk, "Makefile", edit(makeText, "golint", "staticcheck"), "", false},
		{"make test: a variable that it does not use", "make test", mk, "Makefile", edit(makeText, "-O1", "-O2"), "", false},
		{"make: the default goal", "make", mk, "Makefile", edit(makeText, "-O1", "-O2"), "variable CFLAGS", false},
		{"make test: a script in a recipe", "make test", mk, "scripts/unit.sh", "set -e\n", "run a", false},

		{"make check: a script behind a variable", "make check", mk2, "ci/all.sh", "run a\n", "run b", false},

		{"python: a program that examines", "python3 scripts/verify.py", py, "scripts/verify.py", "import app\nprint('ok')\n", "assert", false},
		{"python: a way out of it", "python3 scripts/verify.py", py, "scripts/verify.py", "import app\nimport sys\nsys.exit(0)\nassert app.total() == 3\nprint('ok')\n", "can end it", false},
		{"python: one more check", "python3 scripts/verify.py", py, "scripts/verify.py", "import app\nassert app.total() == 3\nassert app.total(1) == 4\nprint('ok')\n", "", true},
		{"python: the program that is examined", "python3 app/main.py --selftest | grep -q 1", py, "app/main.py", "import sys\nprint(2)\n", "", true},
		{"python: started by itself", "python3 -m pytest", py, "sitecustomize.py", "import os\nos._exit(0)\n", "at every start", false},
		{"python: in the runner's place", "python3 -m pytest", py, "pytest.py", "raise SystemExit(0)\n", "instead of the runner's own", false},
		{"pytest: a new configuration", "pytest -q", py, "pytest.ini", "[pytest]\naddopts = -k nothing\n", "instead of its configuration", false},
		{"pytest: tests are compared one by one", "pytest tests/test_a.py", py, "tests/test_a.py", "def test_a():\n    assert 1 + 1 == 2\ndef test_b():\n    assert 2\n", "", false},
		{"wrappers are seen through", "env CI=1 timeout 60 bash -eu ci/e2e.sh", node, "ci/e2e.sh", "run b\n", "run a", false},
		{"a script out of the repository is not ours", "sh ../other/run.sh && sh /opt/run.sh", node, "ci/e2e.sh", "run b\n", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			expect(t, compare(c.base, shell(c.gate), c.path, c.after), c.want, c.shown)
		})
	}
}

func FuzzReadAndCompareNeverFail(f *testing.F) {
	f.Add("sh tests/run.sh", checkScript, "exit 0\n")
	f.Add("make -C x -f y test", makeText, "a: b\nb: a\n")
	f.Add("npm test", manifest, "{")
	f.Add("cd a && (cd b; ./c) | $X `y` $(sh -c 'sh -c z')", "x", "y")
	f.Fuzz(func(t *testing.T, line, before, after string) {
		base := repo{"tests/run.sh": before, "Makefile": before, "package.json": before, "a.py": before}
		e := Read(append(shell(line), shell("sh tests/run.sh; make; npm test; python a.py")...), base.read)
		for p := range base {
			e.Compare(tamper.File{Path: p, Before: []byte(before), After: []byte(after), Was: true, Is: true, BeforeID: "1", AfterID: "2"})
		}
	})
}
