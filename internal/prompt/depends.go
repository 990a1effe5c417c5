package prompt

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/proctor-ci/proctor/internal/pattern"
)

// Ref is an issue that another one names. Repo is "owner/name" (with all groups on GitLab), empty
// for the issue's own repository.
type Ref struct {
	Repo   string
	Number int
}

// String is "#12" or "owner/name#12".
func (r Ref) String() string { return r.Repo + "#" + strconv.Itoa(r.Number) }

var (
	dependsPhrase = pattern.Of(`(?i)(?:^|[^\pL\pN])(?:depends\s+(?:up)?on|blocked\s+by)\s*:?\s*`)
	negated       = pattern.Of(`(?i)(?:\bnot|n['’]t|\bnever|\bno longer)\s*\S*\s*$`)
	dependsItem   = pattern.Of(`^(?:#|GH-|(?P<repo>[A-Za-z0-9][\w.-]*(?:/[\w.-]+)+)#|(?P<url>https?://[^\s/]+/(?:[^\s#?]+?))/(?:-/)?(?:issues|pull|merge_requests)/)(?P<n>[0-9]+)`)
	dependsNext   = pattern.Of(`^(?:\s*(?:,|;|&|\band\b|\bor\b))+\s*|^\s+`)
)

// DependsOn are the issues that the visible text says it depends on ("Depends on: #12, owner/name#3"
// or "Blocked by https://…/issues/21"), once each, in order. Quotes, code and struck-out words do
// not count, nor does the issue itself, whose number is self (0: unknown).
func DependsOn(markdown string, self int) []Ref {
	var refs []Ref
	seen := map[Ref]bool{}
	for line := range strings.Lines(read(markdown, new(ledger), ownWords).String()) {
		for _, at := range dependsPhrase.FindAllStringIndex(line, -1) {
			if negated.MatchString(line[:at[0]]) {
				continue
			}
			for _, r := range dependsList(line[at[1]:]) {
				if !seen[r] && (r.Repo != "" || r.Number != self) {
					seen[r] = true
					refs = append(refs, r)
				}
			}
		}
	}
	return refs
}

// dependsList reads references until something else follows.
func dependsList(s string) []Ref {
	var refs []Ref
	for {
		m := dependsItem.FindStringSubmatch(s)
		if m == nil {
			return refs
		}
		// Numbers that no forge gives (0, #07, more than fits) are skipped, what follows still counts.
		n, err := strconv.ParseInt(m[3], 10, 32)
		if err == nil && n > 0 && fmt.Sprint(n) == m[3] {
			refs = append(refs, Ref{Repo: cmp.Or(m[1], urlRepo(m[2])), Number: int(n)})
		}
		s = s[len(m[0]):]
		next := dependsNext.FindString(s)
		if next == "" {
			return refs
		}
		s = s[len(next):]
	}
}

// urlRepo is the path of a repository's address.
func urlRepo(u string) string {
	_, rest, _ := strings.Cut(u, "://")
	_, path, _ := strings.Cut(rest, "/")
	return strings.TrimSuffix(path, "/-")
}
