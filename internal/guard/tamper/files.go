package tamper

import (
	"fmt"
	"path"
	"strings"

	"github.com/proctor-ci/proctor/internal/pattern"
)

var (
	testDir  = pattern.Of(`(?i)(?:^|/)(?:tests?|__tests__|specs?|testdata|fixtures|acceptance|e2e|cypress)/`)
	testName = pattern.Of(`(?i)(?:^|/)(?:test_[^/]*|[^/]*(?:[-_.]tests?|[-_.]spec|Tests?|IT))\.\w+$|\.(?:bats|feature|phpt|cy\.[jt]s)$`)
	snapshot = pattern.Of(`(?i)\.(?:snap|ambr|golden)(?:\.\w+)?$|(?:^|/)(?:__snapshots__|__image_snapshots__|__snapshot__|snapshots|golden|goldens)/|\.(?:approved|verified)\.\w+$|\.golden\.`)
	code     = pattern.Of(`(?i)\.(?:go|py|[cm]?[jt]sx?|rs|java|kts?|groovy|scala|rb|php|phpt|cs|sh|bash|bats|feature|c|cc|cpp|swift|ex|exs|clj|hs|lua|pl|t|dart)$`)
)

func isTestPath(p string) bool { return testDir.MatchString(p) || testName.MatchString(path.Clean(p)) }

func isSnapshot(p string) bool { return snapshot.MatchString(p) }

// wholeFile looks at files as wholes: test files that go away and snapshots that are made anew. A test file
// whose tests are known by name is told test by test instead.
func (c *Comparison) wholeFile(f File) {
	if !f.Was && f.Is && caseTable.MatchString(path.Base(f.Path)) {
		c.tables = max(c.tables, records(f.Path, string(f.After)))
	}
	switch {
	case !f.Was:
	case !f.Is:
		if testsIn(f) == 0 {
			c.gone = append(c.gone, f)
		}
	case isData(f.Path) && shrinks(string(f.Before), string(f.After)):
		c.signs = append(c.signs, Sign{Path: f.Path, Detail: "data of tests is gone", Next: putBack, Weak: !casesGone(f)})
	case isSnapshot(f.Path) && f.BeforeID != f.AfterID:
		c.signs = append(c.signs, Sign{Path: f.Path, Detail: "a recorded expectation was made anew", Next: "check that the new output is what was asked for", Weak: true})
	}
}

// notData are files that stand beside tests and hold none of their cases.
var notData = pattern.Of(`(?i)\.(?:md|rst|adoc|sum|lock|mod)$|(?:^|/)(?:[^/]*requirements[^/]*\.(?:txt|in)|constraints[^/]*\.txt|(?:package-lock|npm-shrinkwrap|pnpm-lock)\.\w+|\.[^/]*|license|notice)$`)

func isData(p string) bool {
	return !isSnapshot(p) && !code.MatchString(p) && !isRunnerConfig(p) && !notData.MatchString(p)
}

// shrinks tells whether a text lost lines and got none, or is less than half of what it was. A text that was changed
// otherwise may be honest.
func shrinks(before, after string) bool {
	removed, added := lineDiff(strings.TrimSpace(before), strings.TrimSpace(after))
	return len(removed) > 0 && (len(added) == 0 || 2*len(strings.TrimSpace(after)) < len(strings.TrimSpace(before)))
}

func testsIn(f File) int {
	for _, d := range dialects() {
		if d.speaks(f.Path) && d.collects(f.Path, true) {
			return len(d.read(f.Path, string(f.Before)).tests)
		}
	}
	return 0
}

// goneSign is about a file that was deleted. A new table of as many cases stands for an old one.
func (c *Comparison) goneSign(f File) Sign {
	s := Sign{Path: f.Path, Next: putBack, Lost: true}
	switch {
	case isSnapshot(f.Path):
		s.Detail = "a recorded expectation is gone"
	case code.MatchString(f.Path):
		s.Detail = "a test file is gone"
	default:
		s.Detail, s.Weak = fmt.Sprintf("a file beside tests is gone (%s)", strings.ToLower(path.Ext(f.Path))), !casesGone(f) || c.tables >= records(f.Path, string(f.Before))
	}
	return s
}

// KnowsTests says whether a file's tests are recognised one by one.
func KnowsTests(p string, text []byte) bool {
	return len(text) <= maxText && testsIn(File{Path: p, Before: text}) > 0
}
