package exam

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/proctor-ci/proctor/internal/guard/tamper"
	"github.com/proctor-ci/proctor/internal/pattern"
)

const putBack = "put it back; a maintainer changes what the gates run by hand, or sets policy.test_tampering to flag"

func sign(p, gateName, format string, args ...any) tamper.Sign {
	return tamper.Sign{Path: p, Detail: gateName + ": " + fmt.Sprintf(format, args...), Next: putBack}
}

// Compare says how a changed file takes power from the gates. Nothing is said of a file that no gate is known to run.
func (e *Exam) Compare(f tamper.File) []tamper.Sign {
	if e == nil || f.Was && f.Is && f.BeforeID == f.AfterID {
		return nil
	}
	var out []tamper.Sign
	if s, ok := e.scripts[f.Path]; ok {
		out = append(out, compareScript(f, s)...)
	}
	if used := e.packages[f.Path]; used != nil {
		out = append(out, comparePackage(f, used)...)
	}
	for _, dir := range sorted(e.makes) {
		use := e.makes[dir]
		switch {
		case use.file == f.Path:
			out = append(out, compareMake(f, use)...)
		case !f.Was && outranks(f.Path, use.file):
			out = append(out, sign(f.Path, use.gate, "make would read this file instead of %s", path.Base(use.file)))
		}
	}
	return append(out, e.shadows(f)...)
}

// outranks says whether make prefers p over the file it reads today.
func outranks(p, file string) bool {
	mine, theirs := slices.Index(makeNames, path.Base(p)), slices.Index(makeNames, path.Base(file))
	return path.Dir(p) == path.Dir(file) && mine >= 0 && mine < theirs
}

func compareScript(f tamper.File, s script) []tamper.Sign {
	if !f.Is {
		gone := sign(f.Path, s.gate, "the script that it runs is gone")
		return []tamper.Sign{gone}
	}
	var out []tamper.Sign
	switch {
	case s.shell:
		out = compareShell(f, s)
	case tamper.KnowsTests(f.Path, f.Before):
		return nil // its tests are compared one by one
	default:
		out = compareLines(f, s)
	}
	if !s.exam {
		// By its name it may be what the issue is about. It is shown, for it also decides.
		for i := range out {
			out[i].Weak = true
		}
	}
	return out
}

// ends are ways of a program to end as if all were well.
var ends = pattern.Of(`\bsys\.exit\(|\bos\._exit\(|(?:^|[^.\w])(?:exit|quit)\s*(?:\(|;|0|$)|\bprocess\.(?:exit|exitCode|reallyExit|abort|kill)\b|\bDeno\.exit\(|\bexit!|\bKernel\.exit|\bat_exit\b|\batexit\b|\bSystemExit\b|\bexcept\b|\bcatch\b|\brescue\b|\bset_exit|\bfinally\b|\bmonkeypatch|\bsetattr\(|\b__(?:eq|import|builtins)__\b`)

// compareLines is compareShell for programs that are not parsed here, line by line.
func compareLines(f tamper.File, s script) []tamper.Sign {
	left := map[string]int{}
	for _, l := range lines(f.After) {
		left[squeeze(l)]++
	}
	for n, l := range lines(f.Before) {
		text := squeeze(l)
		if text == "" || strings.HasPrefix(text, "#") || strings.HasPrefix(text, "//") {
			continue
		}
		if left[text]--; left[text] < 0 {
			gone := sign(f.Path, s.gate, "a line of the program that it runs was changed or is gone: %s", short(text))
			gone.Line = n + 1
			return []tamper.Sign{gone}
		}
	}
	was := map[string]int{}
	for _, l := range lines(f.Before) {
		was[squeeze(l)]++
	}
	added := 0
	for n, l := range lines(f.After) {
		text := squeeze(l)
		if was[text]--; was[text] >= 0 || text == "" {
			continue
		}
		added++
		if ends.MatchString(text) {
			bad := sign(f.Path, s.gate, "a new line of the program that it runs can end it or hide a failure: %s", short(text))
			bad.Line = n + 1
			return []tamper.Sign{bad}
		}
	}
	if added == 0 {
		return nil
	}
	grown := sign(f.Path, s.gate, "the program that it runs got %d more lines", added)
	grown.Weak = true
	return []tamper.Sign{grown}
}

func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }

// short is one printable line.
func short(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, squeeze(s))
	if len(s) > 100 {
		s = strings.ToValidUTF8(s[:100], "") + "…"
	}
	return s
}

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
