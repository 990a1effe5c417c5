package failfirst

import (
	"strings"

	"github.com/proctor-ci/proctor/internal/pattern"
)

// Runners of compiled languages. Sources: what the tools print, recorded in testdata.

var (
	goFail  = pattern.Of(`(?m)^(?:    )*--- FAIL: (\S+) \(`)
	goJSON  = pattern.Of(`(?m)^\{.*"Action":"fail".*"Test":"([^"]+)"`)
	goBuild = pattern.Of(`(?m)^FAIL\s+\S+ \[(?:build|setup) failed\]|"FailedBuild":"`)
	goPanic = pattern.Of(`(?m)^panic: .*\n(?:.*\n){0,4}?goroutine \d+|^panic: |"Output":"panic: `)
	goSum   = pattern.Of(`(?m)^(?:FAIL|ok  )\s+\S+(?:\s|$)|^FAIL$|"Action":"fail"`)
)

// goTest: a test that was ended by a panic has not asserted anything, and go test stops there.
func goTest(s string) (Reading, bool) {
	if !goSum.MatchString(s) && !goBuild.MatchString(s) {
		return Reading{}, false
	}
	names := append(all(goFail, s), all(goJSON, s)...)
	if goPanic.MatchString(s) && len(names) > 0 {
		// Only the test that panicked is the last one named; those before it failed by themselves.
		names = dropLast(names)
		return verdict(names, 1, false), true
	}
	return verdict(names, 0, goBuild.MatchString(s)), len(names) > 0 || goBuild.MatchString(s)
}

// dropLast takes the last failed test and its parents out.
func dropLast(names []string) []string {
	last := names[len(names)-1]
	root, _, _ := strings.Cut(last, "/")
	var out []string
	for _, n := range names {
		if n != root && !strings.HasPrefix(n, root+"/") {
			out = append(out, n)
		}
	}
	return out
}

var (
	cargoResult  = pattern.Of(`(?m)^test result: (?:ok|FAILED)\. `)
	cargoBlock   = pattern.Of(`(?m)^---- (.+?) stdout ----$`)
	cargoAssert  = pattern.Of("assertion (?:`|failed)|assertion failed|note: test did not panic as expected|test did not panic as expected")
	cargoCompile = pattern.Of("(?m)^error(?:\\[E\\d+\\])?: (?:.|\n)*?error: could not compile |^error: could not compile ")
)

func cargo(s string) (Reading, bool) {
	compile := cargoCompile.MatchString(s)
	if !compile && !cargoResult.MatchString(s) {
		return Reading{}, false
	}
	heads, bodies := blocks(cargoBlock, s)
	failed, thrown := sorted(heads, bodies, cargoAssert)
	return verdict(failed, thrown, compile), true
}

var (
	mavenSum     = pattern.Of(`(?m)^\[(?:ERROR|WARNING|INFO)\]\s+Tests run: \d+, Failures: (\d+), Errors: (\d+)`)
	mavenCompile = pattern.Of(`(?m)^\[ERROR\] (?:COMPILATION ERROR|.*:(?:testCompile|compile)\b.*(?:Compilation failure|failed))`)
	// "[ERROR] com.acme.TillTest.total -- Time elapsed: 0.01 s <<< FAILURE!" and, before Surefire 3, "total(com.acme.TillTest)  Time elapsed: … <<< FAILURE!"
	mavenFailure = pattern.Of(`(?m)^\[ERROR\]\s+([\w.$]+\.\w+|\w+\([\w.$]+\))\S*\s+(?:--\s+)?Time elapsed: .*<<< FAILURE!`)
)

// maven trusts Surefire's own two words: a failure is an assertion, an error is any other exception.
func maven(s string) (Reading, bool) {
	compile := mavenCompile.MatchString(s)
	sums := mavenSum.FindAllStringSubmatch(s, -1)
	if !compile && len(sums) == 0 {
		return Reading{}, false
	}
	failures, errors := false, 0
	for _, m := range sums {
		failures = failures || m[1] != "0"
		if m[2] != "0" {
			errors++
		}
	}
	var names []string
	for _, n := range all(mavenFailure, s) {
		if i := strings.IndexByte(n, '('); i > 0 {
			n = strings.TrimSuffix(n[i+1:], ")") + "." + n[:i]
		}
		names = append(names, n)
	}
	if failures {
		return Reading{Kind: Assertion, Failed: names}, true
	}
	return verdict(nil, errors, compile), true
}

var (
	gradleCompile = pattern.Of(`(?m)^> Task \S*:compile\S*Test\S*(?:Java|Kotlin|Groovy|Scala) FAILED`)
	gradleSum     = pattern.Of(`(?m)^\d+ tests? completed, \d+ failed`)
	gradleBlock   = pattern.Of(`(?m)^(\S.* > .+?) FAILED$`)
	gradleAssert  = pattern.Of(`AssertionFailedError|AssertionError|ComparisonFailure|MultipleFailuresError|ExpectationFailed|TestAbortedException`)
)

func gradle(s string) (Reading, bool) {
	compile := gradleCompile.MatchString(s)
	if !compile && !gradleSum.MatchString(s) {
		return Reading{}, false
	}
	heads, bodies := blocks(gradleBlock, s)
	for i, h := range heads {
		heads[i] = strings.TrimSuffix(h, "()")
	}
	failed, thrown := sorted(heads, bodies, gradleAssert)
	return verdict(failed, thrown, compile), true
}
