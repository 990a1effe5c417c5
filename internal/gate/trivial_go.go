package gate

import (
	"regexp"
	"strings"
)

// judgeGoTest knows patterns that no test's name can match, and runs that are no runs.
func judgeGoTest(args []string) verdict {
	value := func(name string) (string, bool) {
		for i, a := range args {
			a = "-" + strings.TrimLeft(a, "-")
			if v, ok := strings.CutPrefix(a, "-"+name+"="); ok {
				return v, true
			}
			if a == "-"+name && i+1 < len(args) {
				return args[i+1], true
			}
		}
		return "", false
	}
	if bench, ok := value("bench"); ok && bench != "" {
		return verdict{} // benchmarks may fail, and -run ^$ is how one asks for them alone
	}
	if p, ok := value("run"); ok && p != unknown && matchesNoTest(p) {
		return always("`go test -run %s` matches no test", p)
	}
	if p, ok := value("skip"); ok && (p == "." || p == ".*" || p == "Test" || p == "^Test") {
		return always("`go test -skip %s` skips every test", p)
	}
	if n, ok := value("count"); ok && n == "0" {
		return always("`go test -count 0` runs every test no time at all")
	}
	return verdict{}
}

// matchesNoTest says that a pattern can match no name that starts with Test, Example or Fuzz.
func matchesNoTest(pattern string) bool {
	top, _, _ := strings.Cut(pattern, "/")
	if _, err := regexp.Compile(top); err != nil || strings.ContainsRune(top, '|') {
		return false
	}
	if i := strings.LastIndexByte(top, '^'); i > 0 && top[i-1] != '[' && top[i-1] != '\\' && top[i-1] != '(' {
		return true // text before the beginning
	}
	if i := strings.IndexByte(top, '$'); i >= 0 && i < len(top)-1 && top[i+1] != ')' && (i == 0 || top[i-1] != '\\') {
		return true // text after the end
	}
	rest, anchored := strings.CutPrefix(top, "^")
	if !anchored {
		return false
	}
	if rest == "$" {
		return true
	}
	letters := rest[:len(rest)-len(strings.TrimLeft(rest, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789"))]
	if after := rest[len(letters):]; after != "" && strings.ContainsAny(after[:1], "*?{") && letters != "" {
		letters = letters[:len(letters)-1] // the last one is optional
	}
	for _, start := range []string{"Test", "Example", "Fuzz", "Benchmark"} {
		if strings.HasPrefix(letters, start) || strings.HasPrefix(start, letters) {
			return false
		}
	}
	return true
}
