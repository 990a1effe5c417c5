package tamper

import (
	"regexp"
	"strings"
	"sync"
)

// weakening are settings and commands that make a runner see less or forgive more.
type weakening struct {
	re     *regexp.Regexp
	what   string
	in     *regexp.Regexp                 // files in which the words mean that; nil: any runner's
	at     *regexp.Regexp                 // the block or section that the line has to stand in; nil: any
	not    *regexp.Regexp                 // files in which the words mean something else; nil: none
	out    *regexp.Regexp                 // blocks in which they do; nil: none
	weak   bool                           // it may as well be honest
	unless func(text string, l line) bool // when it is honest after all; nil: never
	says   bool                           // it says where tests are, which is honest where there were none
}

// Hooks of pytest that decide what is collected, run or reported.
const hooks = `cmdline_main|load_initial_conftests|collection|collection_modifyitems|ignore_collect|collect_file|collect_directory|pycollect_makeitem|pycollect_makemodule|` +
	`deselected|runtestloop|runtest_protocol|runtest_call|runtest_makereport|runtest_logreport|pyfunc_call|report_teststatus|sessionfinish`

// weakenings are compiled once, when the first changed configuration needs them.
var weakenings = sync.OnceValue(func() []weakening {
	inJest := regexp.MustCompile(`(?i)(?:^|/)(?:jest\.config\.\w+|package\.json)$`)
	inVitest := regexp.MustCompile(`(?i)(?:^|/)vitest\.[\w.]+$`)
	inMocha := regexp.MustCompile(`(?i)(?:^|/)\.mocharc`)
	inMaven := regexp.MustCompile(`(?i)(?:^|/)pom\.xml$`)
	inGradle := regexp.MustCompile(`(?i)\.gradle(?:\.kts)?$`)
	inRuby := regexp.MustCompile(`(?i)(?:_helper\.rb|/?rakefile|\.rspec)$`)
	inCargo := regexp.MustCompile(`(?i)(?:^|/)cargo\.toml$`)
	inRunner := regexp.MustCompile(`(?i)(?:^|/)\.cargo/config(?:\.toml)?$`)
	inManifest := regexp.MustCompile(`(?i)(?:^|/)(?:pyproject\.toml|setup\.cfg|tox\.ini)$`)
	ofPytest := regexp.MustCompile(`(?i)^\[.*(?:pytest|nosetests|unittest)`)
	leftOut := regexp.MustCompile(`(?i)\bexclude(?:TestsMatching|s)?\b.*(?:test|spec)`)
	notTests := regexp.MustCompile(`(?i)\b(?:coverage|optimizeDeps|typecheck)\b[^{}]*\{[^{}]*$`)
	aTest := regexp.MustCompile(`(?i)test`)
	testOrLib := regexp.MustCompile(`^\[(?:\[test\]|lib)\]`)
	return []weakening{
		{re: regexp.MustCompile(`\|\|\s*(?:true\b|:(?:\s|;|"|$)|exit\s+0\b|echo\b)|;\s*true\s*(?:"|$)|\bset\s+\+e\b|^\t-\S`), what: "a failure is forgiven"},
		{re: regexp.MustCompile(`(?i)continue-on-error:\s*true|allow_failure:\s*true|fail_ci_if_error:\s*false|testFailureIgnore>\s*true|ignoreFailures\s*=?\s*true|failOnError\W+false|xfail_strict\s*=\s*false|passWithNoTests|failIfNoTests\W+false`), what: "a failure is forgiven"},
		{re: regexp.MustCompile(`(?i)testPathIgnorePatterns|modulePathIgnorePatterns|\bcollect_ignore|--deselect\b|--ignore(?:-glob)?[= ]|-k\s+['"\\]*not\b|\bnorecursedirs\b|(?:^|\s)-{1,2}skip[= ]|--exclude[= ]|-DskipTests|maven\.test\.skip|<skipTests>\s*true|<skip>\s*true|\btest\s*=\s*false|<exclude>.*test|--testPathIgnore|--exclude-pattern|--grep\s.*--invert|(?:^|\s)-m\s+['"\\]*not\b`), what: "tests are left out"},
		{re: leftOut, what: "tests are left out", not: inManifest, out: notTests, says: true},
		{re: leftOut, what: "tests are left out", in: inManifest, at: ofPytest, says: true},
		{re: regexp.MustCompile(`(?:^|[\s"'])--(?:collect-only|co|setup-only|setup-plan|listTests|findRelatedTests|onlyChanged|onlyFailures|changedSince|lastCommit|last-failed|lf|shard)\b|\b(?:jest|vitest)\b[^&|;]*\s(?:-t|-o|--testNamePattern)\b`), what: "only some tests run"},
		{re: regexp.MustCompile(`(?i)^\s*python_(?:files|classes|functions)\s*=`), what: "the runner looks for other tests", says: true},
		{re: regexp.MustCompile(`(?i)^\s*testpaths\s*=`), what: "the runner looks for other tests", weak: true},
		{re: regexp.MustCompile(`["']?\b(?:testMatch|testRegex|testRunner|runner|roots)\b["']?\s*:`), what: "the runner looks for other tests", in: inJest, says: true},
		{re: regexp.MustCompile(`["']?\bmoduleNameMapper\b["']?\s*:`), what: "tests meet another module than they name", in: inJest, weak: true},
		{re: regexp.MustCompile(`["']?\b(?:include|testNamePattern)["']?\s*:`), what: "the runner looks for other tests", in: inVitest, out: notTests, says: true},
		{re: regexp.MustCompile(`["']?\b(?:spec|grep|fgrep|invert)\b["']?\s*:`), what: "the runner looks for other tests", in: inMocha, says: true},
		{re: regexp.MustCompile(`<(?:testSourceDirectory|excludedGroups|groups)>`), what: "the runner looks for other tests", in: inMaven},
		{re: regexp.MustCompile(`\b(?:exclude|include)Tags\b|\bincludeTestsMatching\b|\b(?:setT|t)estClassesDirs\b`), what: "only some tests run", in: inGradle},
		{re: regexp.MustCompile(`\benabled\s*=\s*false|\bonlyIf\b|\bsetEnabled\(false`), what: "the tests do not run", in: inGradle, at: aTest},
		{re: regexp.MustCompile(`\bfilter_run(?:_excluding|_including|_when_matching)?\b|\bt\.(?:pattern|test_files)\s*=|--tag[= ]~|--(?:default-)?pattern[= ]`), what: "only some tests run", in: inRuby},
		{re: regexp.MustCompile(`^\s*autotests\s*=\s*false`), what: "tests are left out", in: inCargo},
		{re: regexp.MustCompile(`^\s*(?:harness\s*=\s*false|required-features\s*=)`), what: "tests are left out", in: inCargo, at: testOrLib},
		{re: regexp.MustCompile(`\brunner\s*=`), what: "tests are handed to another program", in: inRunner},
		{re: regexp.MustCompile(`\bjunit\.jupiter\.conditions|\bjunit\.platform\.discovery`), what: "only some tests run"},
		{re: regexp.MustCompile(`\bpytest_plugins\b`), what: "the runner loads code that the change can write", unless: pluginsOfTests},
		{re: regexp.MustCompile(`\b(?:addopts|pytest)\b.*[\s"'=]-p[ =]?[A-Za-z_][\w.]*(?:[\s"']|$)`), what: "the runner loads code that the change can write"},
		{re: regexp.MustCompile(`\bpytest_(?:` + hooks + `)\b`), what: "the runner's results are changed by a hook"},
		{re: regexp.MustCompile(`\bpytest_(?:configure|generate_tests|runtest_setup|itemcollected|unconfigure)\b`), what: "a hook runs with the tests", weak: true},
		{re: regexp.MustCompile(`"(?:test|check|verify|ci)(?:[:\w-]*)"\s*:\s*"\s*(?:true|exit 0|echo\b[^"]*|:)?\s*"`), what: "the test command does nothing"},
	}
})

func weakLine(f File, l line) []Sign {
	for _, w := range weakenings() {
		m := w.re.FindStringIndex(l.text)
		if m == nil || !w.means(f, l, m[0]) {
			continue
		}
		return []Sign{{Path: f.Path, Line: l.number, Detail: w.what + ": " + cut(squeeze(l.text)), Next: "let it count", Weak: w.weak || w.unless != nil && w.unless(string(f.After), l), placed: w.says}}
	}
	return nil
}

// means tells whether the words, which begin at from, stand where they make a runner see less.
func (w weakening) means(f File, l line, from int) bool {
	switch {
	case w.in != nil && !w.in.MatchString(f.Path), w.not != nil && w.not.MatchString(f.Path):
		return false
	case w.at != nil && !w.at.MatchString(around(string(f.After), l.number)):
		return false
	case w.out != nil && (w.out.MatchString(l.text[:from]) || w.out.MatchString(around(string(f.After), l.number))):
		return false
	}
	return true
}

var (
	plugins    = regexp.MustCompile(`^[ \t]*pytest_plugins[ \t]*(?::[^=\n]*)?=[ \t]*(\[(?:[\s,]|"[^"\n]*"|'[^'\n]*')*\]|\((?:[\s,]|"[^"\n]*"|'[^'\n]*')*\)|"[^"\n]*"|'[^'\n]*')[ \t]*(?:#[^\n]*)?(?:\r?\n|$)`)
	quoted     = regexp.MustCompile(`["']([^"'\n]*)["']`)
	testModule = regexp.MustCompile(`^(?:(?:\w+\.)*tests?(?:\.\w+)*|pytester)$`)
)

// pluginsOfTests tells whether a line makes pytest load modules of the tests only, in which hooks are looked for too
// (see compareHooks).
func pluginsOfTests(text string, l line) bool {
	lines := strings.Split(text, "\n")
	m := plugins.FindStringSubmatch(strings.Join(lines[min(l.number-1, len(lines)):], "\n"))
	if m == nil {
		return false
	}
	names := quoted.FindAllStringSubmatch(m[1], -1)
	for _, name := range names {
		if !testModule.MatchString(name[1]) {
			return false
		}
	}
	return len(names) > 0
}

var hookDefinition = regexp.MustCompile(`^[ \t]*(?:async[ \t]+)?def[ \t]+pytest_(?:` + hooks + `)\b`)

// compareHooks looks for hooks in modules that pytest may be told to load. before and after are without their strings.
func compareHooks(f File, before, after string) []Sign {
	if !strings.HasSuffix(f.Path, ".py") || isRunnerConfig(f.Path) {
		return nil
	}
	_, added := lineDiff(before, after)
	for _, l := range added {
		if hookDefinition.MatchString(l.text) {
			return []Sign{{Path: f.Path, Line: l.number, Detail: "the runner's results are changed by a hook: " + cut(squeeze(l.text)), Next: "take it out"}}
		}
	}
	return nil
}

// around is the line that opens the block, or heads the section, in which a line stands.
func around(text string, number int) string {
	lines := strings.Split(text, "\n")
	depth := 0
	for i := min(number-1, len(lines)) - 1; i >= 0; i-- {
		line := strings.TrimSpace(lines[i])
		if strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]") {
			return line
		}
		depth += strings.Count(line, "}") - strings.Count(line, "{")
		if depth < 0 {
			return line
		}
	}
	return ""
}
