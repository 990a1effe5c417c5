package trigger_test

import (
	"testing"

	"github.com/proctor-ci/proctor/internal/trigger"
)

func TestABranchBelongsToTheIssueThatItsPatternNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		branch, pattern string
		want            int
	}{
		{"proctor/issue-7", "proctor/issue-{number}", 7},
		{"proctor/issue-7-2", "proctor/issue-{number}", 7},
		{"bot/7-fix-9", "bot/{number}-fix", 7},
		{"proctor/issue-7-23", "proctor/issue-{number}", 0},
		{"proctor/issue-07", "proctor/issue-{number}", 0},
		{"proctor/goal-3fa9c1b2d417", "proctor/{number}", 0},
		{"proctor/issue-1234567890", "proctor/issue-{number}", 0},
		{"x/proctor/issue-7", "proctor/issue-{number}", 0},
		{"proctor.issue-7", "proctor/issue-{number}", 0},
		{"proctor/issue-7", "proctor/work", 0},
	} {
		if n, ok := trigger.IssueOfBranch(c.branch, c.pattern); n != c.want || ok != (c.want != 0) {
			t.Errorf("%s by %s: issue %d, %t, want %d", c.branch, c.pattern, n, ok, c.want)
		}
	}
}
