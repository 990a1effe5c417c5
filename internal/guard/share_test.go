package guard

import (
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/git"
)

const (
	oneTest  = "package p\n\nimport \"testing\"\n\nfunc TestOne(t *testing.T) {\n\tif One() != 1 {\n\t\tt.Fatal(\"not one\")\n\t}\n}\n"
	twoTests = oneTest + "\nfunc TestTwo(t *testing.T) {\n\tif Two() != 2 {\n\t\tt.Fatal(\"not two\")\n\t}\n}\n"
)

// INV-31: a test that only the branch had is lost in a round as one of the base is. People's block; what we wrote ourselves is shown.
func TestARoundThatWeakensTheBranchsTestsIsSeen(t *testing.T) {
	t.Parallel()
	const path = "one_test.go"
	people := func(p string) bool { return p == path }
	for name, c := range map[string]struct {
		before, after string
		theirs        func(string) bool
		rules         Rules
		conflicts     []string
		want          Level
	}{
		"people's, deleted":                 {before: oneTest, theirs: people, want: Block},
		"people's, one of two":              {before: twoTests, after: oneTest, theirs: people, want: Block},
		"people's, weakened":                {before: oneTest, after: strings.Replace(oneTest, "t.Fatal", "t.Log", 1), theirs: people, want: Block},
		"people's, skipped":                 {before: oneTest, after: strings.Replace(oneTest, "\tif", "\tt.Skip()\n\tif", 1), theirs: people, want: Block},
		"people's, and the policy flags":    {before: oneTest, theirs: people, rules: Rules{TestTampering: "flag"}, want: Flag},
		"people's in conflict, deleted":     {before: twoTests, after: oneTest, theirs: people, conflicts: []string{path}, want: Block},
		"people's in conflict, weakened":    {before: oneTest, after: strings.Replace(oneTest, "t.Fatal", "t.Log", 1), theirs: people, conflicts: []string{path}, want: Flag},
		"ours":                              {before: oneTest, theirs: func(string) bool { return false }, want: Flag},
		"nobody's":                          {before: oneTest, want: Flag},
		"control: one more":                 {before: oneTest, after: twoTests, theirs: people},
		"control: as it was":                {before: oneTest, after: oneTest, theirs: people},
		"control: the policy does not look": {before: oneTest, theirs: people, rules: Rules{TestTampering: "off"}},
	} {
		cand := newCandidate().added("one.go", "package p\n")
		ch := Change{Path: path, Old: cand.entry(git.ModeFile, c.before)}
		cand.in.Paths = []string{"one.go"}
		if c.after != "" {
			cand.added(path, c.after)
			ch.New = cand.entry(git.ModeFile, c.after)
			cand.in.Paths = append(cand.in.Paths, path)
		}
		cand.in.Share, cand.in.Theirs, cand.in.Conflicts = []Change{ch}, c.theirs, c.conflicts
		v := cand.check(t, c.rules)
		got := Level("")
		for _, f := range v.Findings {
			if f.Rule == Tampering && strings.Contains(f.Detail, "since the round began") && got != Block {
				got = f.Level
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q: %+v", name, got, c.want, v.Findings)
		}
		cand.in.Share = nil
		for _, f := range cand.check(t, c.rules).Findings {
			if f.Rule == Tampering && f.Level == Block && strings.Contains(f.Detail, "no longer") {
				t.Errorf("%s: the comparison with the base sees it too, so that this proves nothing: %+v", name, f)
			}
		}
	}
	// What the base had too is told once.
	cand := newCandidate().deleted(path, oneTest)
	cand.in.Share, cand.in.Theirs = []Change{{Path: path, Old: cand.entry(git.ModeFile, oneTest)}}, people
	if n := len(cand.check(t, Rules{}).Findings); n != 1 {
		t.Errorf("one deletion has %d findings", n)
	}
}
