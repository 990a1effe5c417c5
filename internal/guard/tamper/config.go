package tamper

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/proctor-ci/proctor/internal/pattern"
)

var runnerConfig = pattern.Of(`(?i)(?:^|/)(?:package\.json|jest\.config\.\w+|vitest\.\w*\.?\w+|vite\.config\.\w+|karma\.conf\.\w+|playwright\.config\.\w+|cypress\.config\.\w+|\.mocharc\.?\w*|\.nycrc\.?\w*|\.c8rc\.?\w*|` +
	`pytest\.ini|setup\.cfg|tox\.ini|pyproject\.toml|conftest\.py|noxfile\.py|\.coveragerc|makefile|gnumakefile|justfile|taskfile\.ya?ml|rakefile|\.rspec|` +
	`cargo\.toml|\.cargo/config(?:\.toml)?|junit-platform\.properties|(?:spec|rails|test)_helper\.rb|nextest\.toml|phpunit\.xml(?:\.dist)?|pest\.php|build\.gradle(?:\.kts)?|pom\.xml|\.?codecov\.ya?ml|sonar-project\.properties|\.gitlab-ci\.ya?ml|\.golangci\.\w+|\.testcoverage\.ya?ml)$|\.(?:mk|csproj|runsettings|sh|bash)$`)

func isRunnerConfig(p string) bool { return runnerConfig.MatchString(p) }

// coverage are settings that demand something; without them nothing is demanded.
var coverage = pattern.Of(`(?i)fail[_-]under|coverageThreshold|cov-fail-under|check-coverage|minimum_coverage|jacocoTestCoverageVerification|<minimum>|thresholds?\b|max-warnings`)

func compareConfig(f File) []Sign {
	if !f.Was || !f.Is {
		return nil // see newConfigs
	}
	removed, added := lineDiff(string(f.Before), string(f.After))
	var out []Sign
	for _, l := range added {
		out = append(out, weakLine(f, l)...)
	}
	out = append(out, compareNumbers(f.Path, string(f.Before), string(f.After))...)
	for _, l := range removed {
		if m := coverage.FindString(l.text); m != "" && strings.Count(string(f.After), m) < strings.Count(string(f.Before), m) {
			out = append(out, Sign{Path: f.Path, Line: l.number, Detail: "a demand is gone: " + cut(squeeze(l.text)), Next: putBack})
		}
	}
	for _, l := range removed {
		if testCommand.MatchString(l.text) && len(out) == 0 {
			out = append(out, Sign{Path: f.Path, Line: l.number, Detail: "the test command was changed: " + cut(squeeze(l.text)), Weak: true})
		}
	}
	return out
}

var testCommand = pattern.Of(`(?i)"test[:\w-]*"\s*:|\b(?:go test|pytest|npm (?:run )?test|cargo (?:nextest|test)|mvn\b.*test|gradlew?\b.*test|rspec|phpunit|dotnet test|jest|vitest|mocha|bats)\b`)

type line struct {
	number int
	text   string
}

// lineDiff gives the lines that are only on one side, as a multiset: a moved line is neither.
func lineDiff(before, after string) (removed, added []line) {
	count := map[string]int{}
	b, a := strings.Split(before, "\n"), strings.Split(after, "\n")
	for _, l := range b {
		count[squeeze(l)]++
	}
	for i, l := range a {
		if count[squeeze(l)] > 0 {
			count[squeeze(l)]--
		} else {
			added = append(added, line{i + 1, l})
		}
	}
	for i, l := range b {
		if count[squeeze(l)] > 0 {
			count[squeeze(l)]--
			removed = append(removed, line{i + 1, l})
		}
	}
	return removed, added
}

var (
	number = pattern.Of(`\b\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?`)
	// floor are words whose number demands more when it grows, ceiling those whose number allows more then.
	floor   = pattern.Of(`(?i)cover|threshold|fail[_-]under|\bminimum|\bmin[_A-Z-]|branches|functions|statements|"?lines"?\s*[:=]|\bplaces\b|\bdigits\b|\bdecimal\b|precision|toBeCloseTo|assertAlmostEqual|assert_almost_equal`)
	ceiling = pattern.Of(`(?i)toleran|epsilon|\bdelta\b|InDelta|InEpsilon|\ba?r?tol\b|\b(?:abs|rel)=|approx|within|closeTo\(|time_?out|max-?_?(?:warnings|fail|diff|errors)|\bretr(?:y|ies)\b|reruns|be_within|deadline`)
)

// compareNumbers pairs changed lines that are equal but for their numbers, and reads which way a limit went.
func compareNumbers(p, before, after string) []Sign {
	removed, added := lineDiff(before, after)
	old := map[string][]line{}
	for _, l := range removed {
		k := squeeze(number.ReplaceAllString(l.text, "#"))
		old[k] = append(old[k], l)
	}
	var out []Sign
	for _, l := range added {
		k := squeeze(number.ReplaceAllString(l.text, "#"))
		if len(old[k]) == 0 || !strings.Contains(k, "#") {
			continue
		}
		was := old[k][0]
		old[k] = old[k][1:]
		if loosened(was.text, l.text) {
			out = append(out, Sign{Path: p, Line: l.number, Detail: fmt.Sprintf("a limit was loosened: %s (was: %s)", cut(squeeze(l.text)), cut(squeeze(was.text))), Next: putBack})
		}
	}
	return out
}

// loosened looks at the numbers that changed. One that a limit's name stands right before is that limit;
// otherwise the last number of the line is: `InDelta(t, want, got, 0.01)`.
func loosened(was, is string) bool {
	a, b := number.FindAllStringIndex(was, -1), number.FindAllStringIndex(is, -1)
	if len(a) != len(b) {
		return false
	}
	from := 0
	for i := range b {
		x, y := parseNumber(was[a[i][0]:a[i][1]]), parseNumber(is[b[i][0]:b[i][1]])
		words := is[from:b[i][0]]
		from = b[i][1]
		if i == len(b)-1 {
			words = is
		}
		if y < x && floor.MatchString(words) || y > x && ceiling.MatchString(words) && !floor.MatchString(words) {
			return true
		}
	}
	return false
}

func parseNumber(s string) float64 {
	n, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
	if err != nil {
		return 0
	}
	return n
}
