package trigger

import (
	"regexp"
	"strconv"
	"strings"
)

// IssueOfBranch reads the issue's number out of a branch that pattern (publish.branch, with "{number}") named, with the suffix
// -2 to -9 that a taken name gets. A branch of another form belongs to no issue: numbers in it are somebody else's.
func IssueOfBranch(branch, pattern string) (int, bool) {
	before, after, ok := strings.Cut(pattern, "{number}")
	if !ok {
		return 0, false
	}
	m := regexp.MustCompile("^" + regexp.QuoteMeta(before) + "([1-9][0-9]{0,8})" + regexp.QuoteMeta(after) + "(?:-[2-9])?$").FindStringSubmatch(branch)
	if m == nil {
		return 0, false
	}
	n, err := strconv.Atoi(m[1])
	return n, err == nil
}
