package failfirst

import (
	"strings"

	"github.com/proctor-ci/proctor/internal/pattern"
)

// Runners of scripting languages. Sources: what the tools print, recorded in testdata.

var (
	pytestSum     = pattern.Of(`(?m)^(?:=+ )?(?:\d+ (?:failed|passed|skipped|errors?|deselected|xfailed|xpassed|warnings?)(?:, )?)+ in [\d.]+s`)
	pytestFailed  = pattern.Of(`(?m)^FAILED (\S+::\S+?)(?: - (.*))?$`)
	pytestCollect = pattern.Of(`(?m)^ERROR \S+\.py(?: - |$)|^E?rrors? during collection|Interrupted: \d+ errors? during collection|^_+ ERROR collecting `)
	pytestAssert  = pattern.Of(`^(?:assert\b|AssertionError|Failed:|.*AssertionError)`)
	// With a short terminal the reason is cut; the long report has it.
	pytestLong = pattern.Of(`(?m)^E\s+(?:assert\b|AssertionError|Failed: )`)
)

func pytest(s string) (Reading, bool) {
	collect := pytestCollect.MatchString(s)
	if !pytestSum.MatchString(s) && !collect {
		return Reading{}, false
	}
	var failed []string
	thrown := 0
	for _, m := range pytestFailed.FindAllStringSubmatch(s, -1) {
		switch {
		case pytestAssert.MatchString(m[2]), m[2] == "" && pytestLong.MatchString(s):
			failed = append(failed, m[1])
		default:
			thrown++
		}
	}
	r := verdict(failed, thrown, collect)
	if r.Kind == Unknown && pytestLong.MatchString(s) {
		// The summary of names was switched off.
		r.Kind = Assertion
	}
	return r, true
}

var (
	unittestSum   = pattern.Of(`(?m)^Ran \d+ tests? in [\d.]+s`)
	unittestFail  = pattern.Of(`(?m)^FAIL: (\S+)(?: \(|$)`)
	unittestError = pattern.Of(`(?m)^ERROR: (\S+)(?: \((\S+)\)|$)`)
)

func unittest(s string) (Reading, bool) {
	if !unittestSum.MatchString(s) {
		return Reading{}, false
	}
	thrown, collect := 0, false
	for _, m := range unittestError.FindAllStringSubmatch(s, -1) {
		if strings.Contains(m[2], "_FailedTest") || strings.HasPrefix(m[2], "unittest.loader.") {
			collect = true
		} else {
			thrown++
		}
	}
	failed := all(unittestFail, s)
	return verdict(failed, thrown, collect), len(failed) > 0 || thrown > 0 || collect
}

var (
	rspecSum    = pattern.Of(`(?m)^\d+ examples?, \d+ failures?`)
	rspecLoad   = pattern.Of(`(?m)errors? occurred outside of examples|^An error occurred while loading `)
	rspecBlock  = pattern.Of(`(?m)^  \d+\) (.+)$`)
	rspecAssert = pattern.Of(`(?m)^\s+(?:expected\b|Expected\b|.*ExpectationNotMetError|\(.*\)\.\w+.*$|Diff:)|^\s+got: `)
)

func rspec(s string) (Reading, bool) {
	load := rspecLoad.MatchString(s)
	if !load && !rspecSum.MatchString(s) {
		return Reading{}, false
	}
	heads, bodies := blocks(rspecBlock, s)
	failed, thrown := sorted(heads, bodies, rspecAssert)
	return verdict(failed, thrown, load), load || len(heads) > 0
}

var (
	minitestSum   = pattern.Of(`(?m)^\d+ (?:runs|tests), \d+ assertions, (\d+) failures, (\d+) errors`)
	minitestFail  = pattern.Of(`(?m)^(?:  \d+\) )?Failure:\n(\S+?)(?: \[|:$| \()`)
	minitestLoad  = pattern.Of(`(?m)(?:cannot load such file|syntax errors? found|uninitialized constant .*\((?:NameError)\)|SyntaxError)`)
	minitestShape = pattern.Of(`minitest|test-unit|Rakefile|rake aborted|_test\.rb|/test_\w+\.rb`)
)

func minitest(s string) (Reading, bool) {
	if m := minitestSum.FindStringSubmatch(s); m != nil {
		names := all(minitestFail, s)
		switch {
		case m[1] != "0":
			return Reading{Kind: Assertion, Failed: names}, true
		case m[2] != "0":
			return Reading{Kind: Thrown}, true
		}
		return Reading{}, false
	}
	return Reading{Kind: Collection}, minitestLoad.MatchString(s) && minitestShape.MatchString(s) && !rspecLoad.MatchString(s)
}

// jsFailed sorts failed tests by how their first words name what ended them. Lines of source that a runner shows
// around the place are left out: they hold expect() in any case.
func jsFailed(heads, bodies []string) ([]string, int) {
	cut := make([]string, len(bodies))
	for i, b := range bodies {
		cut[i] = jsSource.ReplaceAllString(b, "")
	}
	return sorted(heads, cut, jsAssert)
}

var jsSource = pattern.Of(`(?m)^\s*>?\s*\d*\s*\|.*$`)

// jsAssert is how assertion libraries of JavaScript name what failed.
var jsAssert = pattern.Of(`(?m)^\s*expect\(.*\)\.|AssertionError|ERR_ASSERTION|^\s*Expected: |^\s*Snapshot `)

var (
	jestSum   = pattern.Of(`(?m)^Tests:\s+.*\d+ total|^Test Suites:\s+.*\d+ total`)
	jestBlock = pattern.Of(`(?m)^  ● (.+)$`)
	jestLoad  = pattern.Of(`(?m)^  ● Test suite failed to run|Your test suite must contain at least one test`)
)

func jest(s string) (Reading, bool) {
	if !jestSum.MatchString(s) {
		return Reading{}, false
	}
	heads, bodies := blocks(jestBlock, s)
	var names, texts []string
	for i, h := range heads {
		if h != "Test suite failed to run" {
			names, texts = append(names, strings.ReplaceAll(h, " › ", " > ")), append(texts, bodies[i])
		}
	}
	failed, thrown := jsFailed(names, texts)
	return verdict(failed, thrown, jestLoad.MatchString(s)), true
}

var (
	vitestSum   = pattern.Of(`(?m)^\s*(?:Test Files|Tests)\s{2}\S.*\(\d+\)|^\s*Tests\s{2}no tests`)
	vitestBlock = pattern.Of(`(?m)^\s*FAIL\s{2}(\S.*)$`)
)

func vitest(s string) (Reading, bool) {
	if !vitestSum.MatchString(s) {
		return Reading{}, false
	}
	heads, bodies := blocks(vitestBlock, s)
	var names, texts []string
	load := false
	for i, h := range heads {
		// A file stands alone or beside itself in brackets; a test has its suite behind the file.
		if !strings.Contains(h, " > ") {
			load = true
			continue
		}
		names, texts = append(names, h), append(texts, bodies[i])
	}
	failed, thrown := jsFailed(names, texts)
	return verdict(failed, thrown, load), len(heads) > 0
}

var (
	mochaSum   = pattern.Of(`(?m)^\s+\d+ failing$`)
	mochaBlock = pattern.Of(`(?m)^\s+\d+\) (.+(?:\n {7,}\S.*)*?):$`)
	mochaLoad  = pattern.Of(`(?m)(?:node_modules/mocha/|Mocha).*(?:\n.*)*?(?:Cannot find module|SyntaxError|ERR_MODULE_NOT_FOUND)|(?:Cannot find module|SyntaxError|ERR_MODULE_NOT_FOUND)(?:.*\n)*?.*node_modules/mocha/`)
)

func mocha(s string) (Reading, bool) {
	if !mochaSum.MatchString(s) {
		return Reading{Kind: Collection}, mochaLoad.MatchString(s)
	}
	_, tail, _ := strings.Cut(s, " failing")
	heads, bodies := blocks(mochaBlock, tail)
	for i, h := range heads {
		heads[i] = strings.TrimSuffix(strings.Join(strings.Fields(h), " "), ":")
	}
	failed, thrown := jsFailed(heads, bodies)
	return verdict(failed, thrown, false), true
}

var (
	nodeSum  = pattern.Of(`(?m)^(?:#|ℹ) fail \d+$`)
	nodeSpec = pattern.Of(`(?m)^\s*✖ (.+?) \([\d.]+ms\)$`)
	nodeTAP  = pattern.Of(`(?m)^\s*not ok \d+ - (.+)$`)
	nodeLoad = pattern.Of(`(?m)SyntaxError|ERR_MODULE_NOT_FOUND|Cannot find module|ERR_UNKNOWN_FILE_EXTENSION|does not provide an export`)
	jsFile   = pattern.Of(`\.[cm]?[jt]sx?$`)
)

func nodeTest(s string) (Reading, bool) {
	if !nodeSum.MatchString(s) {
		return Reading{}, false
	}
	begin := nodeSpec
	if !begin.MatchString(s) {
		begin = nodeTAP
	}
	heads, bodies := blocks(begin, s)
	var names, texts []string
	load := false
	for i, h := range heads {
		switch {
		case jsFile.MatchString(h): // a file counts as a test of its own
			load = load || nodeLoad.MatchString(s)
		default:
			names, texts = append(names, h), append(texts, bodies[i])
		}
	}
	failed, thrown := jsFailed(names, texts)
	if len(failed) > 0 {
		thrown = 0
	}
	return verdict(failed, thrown, load), true
}
