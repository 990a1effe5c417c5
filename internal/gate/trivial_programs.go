package gate

import (
	"slices"
	"strings"
)

// judgeBuiltin judges commands of the shell and of every system that do not test anything.
func judgeBuiltin(name string, args []string) verdict {
	switch name {
	case "true", ":":
		return always("`%s` always succeeds", name)
	case "false":
		return verdict{fate: fails}
	case "exit", "return":
		return judgeExit(name, args)
	case "echo", "printf", "yes":
		return always("`%s` prints and always succeeds", name)
	case "sleep", "pwd", "date", "whoami", "id", "hostname", "uname", "uptime", "seq", "clear", "sync", "printenv", "tty", "arch", "nproc", "umask",
		"export", "declare", "typeset", "local", "readonly", "unset", "set", "shift", "shopt", "alias", "unalias", "trap", "hash", "times", "ulimit":
		return always("`%s` tests nothing", name)
	case "which", "type", "command", "whereis":
		return always("`%s` looks for a program and tests nothing", name)
	case "wait":
		if len(args) == 0 {
			return always("`wait` without a process always succeeds").with("wait for the test's own process number, so that its exit code decides")
		}
	case "cat", "tee":
		if len(args) == 0 {
			return always("`%s` copies its input and always succeeds", name)
		}
	case "test", "[", "[[":
		return judgeTest(args)
	case "git":
		return judgeGit(args)
	}
	return verdict{}
}

func judgeExit(name string, args []string) verdict {
	switch {
	case len(args) == 0 || args[0] == unknown:
		return verdict{}
	case strings.Trim(args[0], "0") == "":
		return always("`%s %s` always succeeds", name, args[0])
	}
	return verdict{fate: fails}
}

// judgeTest knows the outcome of comparisons between constants. Anything about files is open.
func judgeTest(args []string) verdict {
	if len(args) > 0 && (args[len(args)-1] == "]" || args[len(args)-1] == "]]") {
		args = args[:len(args)-1]
	}
	if slices.Contains(args, unknown) {
		return verdict{}
	}
	holds := func(b bool) verdict {
		if b {
			return always("it compares constants and always holds")
		}
		return verdict{fate: fails}
	}
	switch {
	case len(args) == 0:
		return verdict{fate: fails}
	case len(args) == 1:
		return holds(args[0] != "")
	case len(args) == 2 && args[0] == "-n":
		return holds(args[1] != "")
	case len(args) == 2 && args[0] == "-z":
		return holds(args[1] == "")
	case len(args) == 3 && (args[1] == "=" || args[1] == "==" || args[1] == "-eq"):
		return holds(args[0] == args[2])
	case len(args) == 3 && (args[1] == "!=" || args[1] == "-ne"):
		return holds(args[0] != args[2])
	}
	return verdict{}
}

func judgeGit(args []string) verdict {
	switch first(args) {
	case "status", "log", "show", "branch", "tag", "remote", "config", "version", "help":
		return always("`git %s` prints and tests nothing", first(args))
	case "diff":
		if !has(args, "--exit-code", "--quiet", "--check") {
			return always("`git diff` prints and always succeeds").with("add --exit-code when a difference shall fail the gate")
		}
	}
	return verdict{}
}

// rule says with which arguments a program runs no tests.
type rule struct {
	programs []string
	verbs    []string // the first argument that is no option must be one of these; none: any
	goals    bool     // the program takes several verbs, and any of them counts
	flags    []string // any of these, also as FLAG=…
	groups   bool     // single letters may be written together (-kn)
	why      string
	instead  string
}

func rules() []rule {
	const dry = "%s only shows what it would do"
	const list = "%s only lists and runs nothing"
	return []rule{
		{programs: []string{"make", "gmake"}, flags: []string{"-n", "--dry-run", "--just-print", "--recon", "-q", "--question", "-t", "--touch"}, groups: true, why: dry},
		{programs: []string{"make", "gmake"}, flags: []string{"-i", "--ignore-errors"}, groups: true, why: "%s ignores every failure"},
		{programs: []string{"ninja", "samu"}, flags: []string{"-n", "-t"}, why: dry},
		{programs: []string{"rake"}, flags: []string{"-n", "--dry-run", "-T", "--tasks", "-P", "--prereqs"}, why: dry},
		{programs: []string{"just", "task", "go-task", "mage", "invoke", "inv"}, flags: []string{"-n", "--dry-run", "--dry", "-l", "--list", "--summary"}, why: dry},
		{programs: []string{"bazel", "bazelisk"}, flags: []string{"--nobuild"}, why: dry},
		{programs: []string{"pytest", "py.test"}, flags: []string{"--collect-only", "--co", "--setup-plan", "--setup-only", "--fixtures", "--markers", "--cache-show"}, why: "%s collects tests and runs none"},
		{programs: []string{"tox"}, flags: []string{"-l", "--listenvs", "-a", "--listenvs-all", "--notest", "-n", "--showconfig"}, why: list},
		{programs: []string{"nox"}, flags: []string{"-l", "--list", "--list-sessions", "--install-only"}, why: list},
		{programs: []string{"coverage"}, verbs: []string{"report", "html", "xml", "erase", "debug"}, why: "%s runs no tests"},
		{programs: []string{"go"}, verbs: []string{"test"}, flags: []string{"-list", "--list", "-n", "--n", "-c", "--c"}, why: "%s runs no tests"},
		{programs: []string{"go"}, verbs: []string{"version", "env", "list", "help", "doc"}, why: "%s tests nothing"},
		{programs: []string{"cargo"}, verbs: []string{"test", "t", "bench"}, flags: []string{"--no-run", "--list"}, why: "%s builds the tests and runs none"},
		{programs: []string{"cargo"}, verbs: []string{"nextest"}, flags: []string{"list", "--no-run"}, why: list},
		{programs: []string{"cargo"}, verbs: []string{"metadata", "tree", "search", "version", "help"}, why: "%s tests nothing"},
		{programs: []string{"ctest"}, flags: []string{"-N", "--show-only", "--print-labels"}, why: list},
		{programs: []string{"meson"}, verbs: []string{"test"}, flags: []string{"--list"}, why: list},
		{programs: []string{"npm", "pnpm", "yarn", "bun"}, flags: []string{"--if-present"}, why: "%s passes when the script is missing", instead: "leave --if-present out, so that a missing script fails"},
		{programs: []string{"npm", "pnpm", "yarn", "bun"}, verbs: []string{"help", "ls", "list", "view", "config", "version"}, why: "%s tests nothing"},
		{programs: []string{"jest"}, flags: []string{"--listTests", "--showConfig"}, why: list},
		{programs: []string{"vitest"}, verbs: []string{"list"}, why: list},
		{programs: []string{"mocha"}, flags: []string{"--dry-run", "--list-files", "--list-reporters"}, why: list},
		{programs: []string{"playwright"}, flags: []string{"--list"}, why: list},
		{programs: []string{"deno"}, verbs: []string{"test"}, flags: []string{"--no-run"}, why: "%s runs no tests"},
		{programs: []string{"mvn", "mvnw"}, flags: []string{"-fn", "--fail-never", "-Dmaven.test.failure.ignore", "-DtestFailureIgnore"}, why: "%s ignores every failure"},
		{programs: []string{"mvn", "mvnw"}, verbs: []string{"test", "verify", "integration-test"}, goals: true, flags: []string{"-DskipTests", "-Dmaven.test.skip", "-DskipITs"}, why: "%s skips the tests"},
		{programs: []string{"gradle", "gradlew"}, flags: []string{"-m", "--dry-run"}, why: dry},
		{programs: []string{"gradle", "gradlew"}, verbs: []string{"tasks", "help", "properties", "projects", "dependencies"}, why: "%s tests nothing"},
		{programs: []string{"dotnet"}, verbs: []string{"test"}, flags: []string{"--list-tests", "-t"}, why: list},
		{programs: []string{"rspec"}, flags: []string{"--dry-run"}, why: dry},
		{programs: []string{"phpunit", "pest"}, flags: []string{"--list-tests", "--list-suites", "--list-groups", "--list-tests-xml"}, why: list},
		{programs: []string{"swift"}, verbs: []string{"test"}, flags: []string{"list", "--list-tests", "-l"}, why: list},
		{programs: []string{"terraform", "tofu"}, verbs: []string{"version", "providers", "output", "show"}, why: "%s tests nothing"},
	}
}

func (r rule) verbFits(args []string) bool {
	switch {
	case len(r.verbs) == 0:
		return true
	case r.goals:
		return has(args, r.verbs...)
	}
	return slices.Contains(r.verbs, first(args))
}

// judgeProgram judges test runners and interpreters by their arguments.
func judgeProgram(name string, args []string) verdict {
	if interpreter(name) {
		if v, done := judgeInterpreter(name, args); done {
			return v
		}
	}
	if len(args) == 1 && has(args, "--version", "--help", "-V", "-h", "-version", "-help", "version", "help") {
		return always("`%s %s` only says what the program is", name, args[0])
	}
	if name == "go" { // the rest goes to the test binary
		if i := slices.IndexFunc(args, func(a string) bool { return a == "-args" || a == "--args" }); i >= 0 {
			args = args[:i]
		}
	}
	for _, r := range rules() {
		if !slices.Contains(r.programs, name) || !r.verbFits(args) {
			continue
		}
		hit := first(args)
		if len(r.flags) > 0 {
			flag := flagIn(args, r.flags, r.groups)
			if flag == "" {
				continue
			}
			if len(r.verbs) == 0 {
				hit = ""
			}
			hit = strings.TrimSpace(hit + " " + flag)
		}
		return always("%s", strings.ReplaceAll(r.why, "%s", "`"+strings.TrimSpace(name+" "+hit)+"`")).with(r.instead)
	}
	if name == "go" && first(args) == "test" {
		return judgeGoTest(args[1:])
	}
	if (name == "gradle" || name == "gradlew") && excludesTest(args) {
		return always("`%s -x test` leaves the tests out", name)
	}
	return verdict{}
}

func excludesTest(args []string) bool {
	for i, a := range args {
		if (a == "-x" || a == "--exclude-task") && i+1 < len(args) && (args[i+1] == "test" || args[i+1] == ":test") {
			return !has(args, "build", "assemble", "compileJava", "classes")
		}
	}
	return false
}

// first is the first argument that is no option and no choice of toolchain (+nightly).
func first(args []string) string {
	for _, a := range args {
		if !strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "+") {
			return a
		}
	}
	return ""
}

func has(args []string, any ...string) bool {
	return slices.ContainsFunc(args, func(a string) bool { return slices.Contains(any, a) })
}

// flagIn finds one of flags: alone, as FLAG=value unless the value switches it off, or, with groups, as
// a letter among single letters.
func flagIn(args, flags []string, groups bool) string {
	for _, a := range args {
		name, value, valued := strings.Cut(a, "=")
		if slices.Contains(flags, name) && (!valued || (value != "false" && value != "0")) {
			return name
		}
		if !groups || len(a) < 3 || a[0] != '-' || a[1] == '-' {
			continue
		}
		for _, letter := range a[1:] {
			if strings.ContainsRune("CfIjloOW", letter) {
				break // the rest is this one's value
			}
			if f := "-" + string(letter); slices.Contains(flags, f) {
				return f
			}
		}
	}
	return ""
}
