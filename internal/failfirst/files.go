package failfirst

import (
	"strings"

	"github.com/proctor-ci/proctor/internal/pattern"
)

// testFile names files that hold tests, and nothing of the product, in the ecosystems whose runners are known.
var testFile = pattern.Of(`(?:^|/)[^/]*_test\.go$|` +
	`(?:^|/)(?:test_[^/]*|[^/]*_tests?|conftest)\.py$|` +
	`\.(?:test|spec)\.[cm]?[jt]sx?$|` +
	`[a-z0-9_](?:Test|Tests|IT|Spec)\.(?:java|kt|groovy|scala)$|(?:^|/)src/(?:test|[a-z]+Test)/|` +
	`(?:^|/)(?:test_[^/]*|[^/]*_(?:test|spec)|spec_helper|test_helper)\.rb$`)

// testFolder names folders whose files belong to tests: helpers, fixtures, recorded expectations.
var testFolder = pattern.Of(`(?:^|/)(?:tests?|__tests__|specs?|testdata|fixtures|__fixtures__|__snapshots__|__mocks__)/`)

// TestFile tells whether a path belongs to the tests, so that it can be laid over the base code without bringing any
// of the change along.
func TestFile(path string) bool { return testFile.MatchString(path) || testFolder.MatchString(path) }

// MixesCode tells whether tests of this language usually stand in the file of the code they test.
func MixesCode(path string) bool { return strings.HasSuffix(path, ".rs") && !TestFile(path) }

var rustModule = pattern.Of(`(?m)^#\[cfg\(test\)\]\s*\n(?:#\[[^\n]*\]\s*\n)*(?:pub(?:\([^)]*\))? )?mod \w+ \{`)

// SpliceRust gives the code of before with the test module of after. ok is false where a file does not have its tests in
// one module at the end, as the language's own book has it, so that code and tests cannot be told apart for certain.
func SpliceRust(before, after string) (text string, ok bool) {
	_, module, ok := cutModule(after)
	if !ok || module == "" {
		return "", false
	}
	if old, _, ok := cutModule(before); ok {
		before = old
	} else {
		return "", false
	}
	return strings.TrimRight(before, "\n") + "\n\n" + module, true
}

// cutModule cuts a file in front of its one test module; module is empty where there is none.
func cutModule(s string) (code, module string, ok bool) {
	at := rustModule.FindAllStringIndex(s, -1)
	switch len(at) {
	case 0:
		return s, "", !strings.Contains(s, "#[test]")
	case 1:
	default:
		return "", "", false
	}
	// The module has to be the last thing: its closing brace stands alone in the first column, and nothing follows.
	rest := s[at[0][0]:]
	end := strings.LastIndex(rest, "\n}")
	if end < 0 || strings.TrimSpace(rest[end+2:]) != "" || strings.Contains(rest[:end], "\n}") || strings.Contains(s[:at[0][0]], "#[test]") {
		return "", "", false
	}
	return s[:at[0][0]], rest, true
}
