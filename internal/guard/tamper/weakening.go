package tamper

import (
	"regexp"
	"strings"
	"sync"
)

// weakening are settings and commands that make a runner see less or forgive more.
type weakening struct {
	re   *regexp.Regexp
	what string
	in   *regexp.Regexp // files in which the words mean that; nil: any runner's
	at   *regexp.Regexp // the block or section that the line has to stand in; nil: any
	weak bool           // it may as well be honest
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
	aTest := regexp.MustCompile(`(?i)test`)
	testOrLib := regexp.MustCompile(`^\[(?:\[test\]|lib)\]`)
	return []weakening{
		{re: regexp.MustCompile(`\|\|\s*(?:true\b|:(?:\s|;|"|$)|exit\s+0\b|echo\b)|;\s*true\s*(?:"|$)|\bset\s+\+e\b|^\t-\S`), what: "a failure is forgiven"},
		{re: regexp.MustCompile(`(?i)continue-on-error:\s*true|allow_failure:\s*true|fail_ci_if_error:\s*false|testFailureIgnore>\s*true|ignoreFailures\s*=?\s*true|failOnError\W+false|xfail_strict\s*=\s*false|passWithNoTests|failIfNoTests\W+false`), what: "a failure is forgiven"},
		{re: regexp.MustCompile(`(?i)testPathIgnorePatterns|modulePathIgnorePatterns|\bcollect_ignore|--deselect\b|--ignore(?:-glob)?[= ]|-k\s+['"\\]*not\b|\bnorecursedirs\b|(?:^|\s)-{1,2}skip[= ]|--exclude[= ]|-DskipTests|maven\.test\.skip|<skipTests>\s*true|<skip>\s*true|\bexclude(?:TestsMatching|s)?\b.*(?:test|spec)|\btest\s*=\s*false|<exclude>.*test|--testPathIgnore|--exclude-pattern|--grep\s.*--invert|(?:^|\s)-m\s+['"\\]*not\b`), what: "tests are left out"},
		{re: regexp.MustCompile(`(?:^|[\s"'])--(?:collect-only|co|setup-only|setup-plan|listTests|findRelatedTests|onlyChanged|onlyFailures|changedSince|lastCommit|last-failed|lf|shard)\b|\b(?:jest|vitest)\b.*\s(?:-t|-o|--testNamePattern)\b`), what: "only some tests run"},
		{re: regexp.MustCompile(`(?i)^\s*python_(?:files|classes|functions)\s*=`), what: "the runner looks for other tests"},
		{re: regexp.MustCompile(`(?i)^\s*testpaths\s*=`), what: "the runner looks for other tests", weak: true},
		{re: regexp.MustCompile(`["']?\b(?:testMatch|testRegex|testRunner|runner|roots)\b["']?\s*:`), what: "the runner looks for other tests", in: inJest},
		{re: regexp.MustCompile(`["']?\bmoduleNameMapper\b["']?\s*:`), what: "tests meet another module than they name", in: inJest, weak: true},
		{re: regexp.MustCompile(`["']?\b(?:include|testNamePattern)["']?\s*:`), what: "the runner looks for other tests", in: inVitest},
		{re: regexp.MustCompile(`["']?\b(?:spec|grep|fgrep|invert)\b["']?\s*:`), what: "the runner looks for other tests", in: inMocha},
		{re: regexp.MustCompile(`<(?:testSourceDirectory|excludedGroups|groups)>`), what: "the runner looks for other tests", in: inMaven},
		{re: regexp.MustCompile(`\b(?:exclude|include)Tags\b|\bincludeTestsMatching\b|\b(?:setT|t)estClassesDirs\b`), what: "only some tests run", in: inGradle},
		{re: regexp.MustCompile(`\benabled\s*=\s*false|\bonlyIf\b|\bsetEnabled\(false`), what: "the tests do not run", in: inGradle, at: aTest},
		{re: regexp.MustCompile(`\bfilter_run(?:_excluding|_including|_when_matching)?\b|\bt\.(?:pattern|test_files)\s*=|--tag[= ]~|--(?:default-)?pattern[= ]`), what: "only some tests run", in: inRuby},
		{re: regexp.MustCompile(`^\s*autotests\s*=\s*false`), what: "tests are left out", in: inCargo},
		{re: regexp.MustCompile(`^\s*(?:harness\s*=\s*false|required-features\s*=)`), what: "tests are left out", in: inCargo, at: testOrLib},
		{re: regexp.MustCompile(`\brunner\s*=`), what: "tests are handed to another program", in: inRunner},
		{re: regexp.MustCompile(`\bjunit\.jupiter\.conditions|\bjunit\.platform\.discovery`), what: "only some tests run"},
		{re: regexp.MustCompile(`\bpytest_plugins\b|\b(?:addopts|pytest)\b.*[\s"'=]-p[ =]?[A-Za-z_][\w.]*(?:[\s"']|$)`), what: "the runner loads code that the change can write"},
		{re: regexp.MustCompile(`\bpytest_(?:` + hooks + `)\b`), what: "the runner's results are changed by a hook"},
		{re: regexp.MustCompile(`\bpytest_(?:configure|generate_tests|runtest_setup|itemcollected|unconfigure)\b`), what: "a hook runs with the tests", weak: true},
		{re: regexp.MustCompile(`"(?:test|check|verify|ci)(?:[:\w-]*)"\s*:\s*"\s*(?:true|exit 0|echo\b[^"]*|:)?\s*"`), what: "the test command does nothing"},
	}
})

func weakLine(f File, l line) []Sign {
	for _, w := range weakenings() {
		if !w.re.MatchString(l.text) || w.in != nil && !w.in.MatchString(f.Path) || w.at != nil && !w.at.MatchString(around(string(f.After), l.number)) {
			continue
		}
		return []Sign{{Path: f.Path, Line: l.number, Detail: w.what + ": " + cut(squeeze(l.text)), Next: "let it count", Weak: w.weak}}
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
