package tamper

import (
	"regexp"
	"strings"
	"sync"

	"github.com/proctor-ci/proctor/internal/pattern"
)

// leaves are ways to end the whole test process as if all were well: one such line makes every other test pass.
var leaves = pattern.Of(`\bos\._exit\(|\bsys\.exit\(\s*(?:0|None|)\s*\)|\bpytest\.exit\(|\bprocess\.(?:exit|reallyExit)\(\s*0?\s*\)|\bprocess\.exitCode\s*=\s*0|\bos\.Exit\(\s*0\s*\)|\bSystem\.exit\(\s*0\s*\)|\bRuntime\.getRuntime\(\)\.halt|` +
	`\bstd::process::exit\(\s*0\s*\)|\bexit!|\bKernel\.exit|\bat_exit\b|\batexit\.register|\bprocess\.on\(\s*['"](?:exit|beforeExit)|\bDeno\.exit\(\s*0?\s*\)|\bEnvironment\.Exit\(\s*0\s*\)`)

// replaces are ways to put something else in the place of assertions, or of what the runner was told.
var replaces = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\bflag\.(?:CommandLine\.)?Set\([ \t]*"test\.|` + replacedAsserts + `|\bchai\.(?:assert|expect)[ \t]*=[^=]|\b(?:global|globalThis)\.(?:expect|assert|it|test|describe)[ \t]*=[^=]`)
})

var (
	arguments = pattern.Of(`\bos\.Args[ \t]*=[^=]`)
	startsAll = pattern.Of(`^func\s+(?:TestMain|init)\s*\(`)
	testMain  = pattern.Of(`\bfunc\s+TestMain\s*\(`)
	runsAll   = pattern.Of(`\.Run\(\)`)
)

// runsText are ways to run what a string says.
var runsText = pattern.Of(`\b(?:exec\w*|eval\w*|compile|Function|system|popen|spawn\w*)[ \t]*\(|\s-[ce]\b`)

// stands tells whether words are code in a line. In a string of Go they are what a test is about, unless the line runs
// it. Strings of other languages hold code (f"{…}"), or are not told from an expression for matching (/'/).
func stands(words interface{ FindAllStringIndex(string, int) [][]int }, f File, code, bare string) bool {
	sure := strings.HasSuffix(f.Path, ".go") && !runsText.MatchString(code)
	for _, m := range words.FindAllStringIndex(code, -1) {
		if !sure || bare[m[0]] == code[m[0]] {
			return true
		}
	}
	return false
}

// compareLeaves looks at new lines of test code; bare is after without the insides of strings. The product may end a
// process; a test never has to.
func compareLeaves(f File, before, after, bare string) []Sign {
	_, added := lineDiff(before, after)
	bareLines := strings.Split(bare, "\n")
	for _, l := range added {
		if stands(leaves, f, l.text, bareLines[l.number-1]) {
			return []Sign{{Path: f.Path, Line: l.number, Detail: "the test process is ended before the other tests can fail: " + cut(squeeze(l.text)), Next: "take it out"}}
		}
	}
	for _, l := range added {
		if stands(replaces(), f, l.text, bareLines[l.number-1]) || replacesArguments(after, l) {
			return []Sign{{Path: f.Path, Line: l.number, Detail: "assertions or the runner's own flags are replaced: " + cut(squeeze(l.text)), Next: "take it out"}}
		}
	}
	if strings.HasSuffix(f.Path, "_test.go") && testMain.MatchString(after) && !runsAll.MatchString(after) && (!testMain.MatchString(before) || runsAll.MatchString(before)) {
		return []Sign{{Path: f.Path, Detail: "TestMain runs none of the tests", Next: "call m.Run() and exit with its code"}}
	}
	return nil
}

// replacesArguments tells whether the runner's own arguments are meant. A test of a command line sets os.Args too, but
// for itself and when the runner has read them.
func replacesArguments(text string, l line) bool {
	if !arguments.MatchString(l.text) {
		return false
	}
	if strings.Contains(l.text, "-test.") {
		return true
	}
	lines := strings.Split(text, "\n")
	for i := min(l.number, len(lines)) - 1; i >= 0; i-- {
		if strings.HasPrefix(lines[i], "func ") {
			return startsAll.MatchString(lines[i])
		}
	}
	return true
}
