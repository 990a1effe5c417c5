package guard

import (
	"fmt"
	"strings"

	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/policy"
)

// Sizes from which a change is more than a reviewer takes in at one reading.
const (
	mediumLines, highLines = 300, 1500
	mediumFiles, highFiles = 15, 60
)

type assessment struct {
	risk Risk
	why  []string
}

func (a *assessment) raise(to Risk, format string, args ...any) {
	if a.risk != High {
		a.risk = to
	}
	a.why = append(a.why, fmt.Sprintf("%s: %s", to, fmt.Sprintf(format, args...)))
}

// assess computes the risk of the whole change from what was found and what was changed. Reasons stand
// in a fixed order; a low risk has none.
func assess(v Verdict, changes []Change) (Risk, []string) {
	a := assessment{risk: Low}
	for _, f := range v.Findings {
		switch f.Rule {
		case HighRisk:
			a.raise(High, "%q is under policy.high_risk", f.Path)
		case Dependency:
			a.raise(Medium, "%q: %s", f.Path, f.Detail)
		default:
			if f.Level == Flag {
				a.raise(Medium, "%s", f)
			} else {
				a.raise(High, "%s %s", f.Rule, f.Level)
			}
		}
	}
	bySize(&a, "lines", v.Added+v.Removed, mediumLines, highLines)
	bySize(&a, "files", v.Files, mediumFiles, highFiles)
	for _, c := range changes {
		byPath(&a, c)
	}
	return a.risk, compact(a.why)
}

func bySize(a *assessment, what string, n, medium, high int) {
	switch {
	case n >= high:
		a.raise(High, "%d %s changed", n, what)
	case n >= medium:
		a.raise(Medium, "%d %s changed", n, what)
	}
}

func byPath(a *assessment, c Change) {
	for _, m := range Marks(c) {
		a.raise(Medium, "%q %s", c.Path, m)
	}
}

// Marks are the risks that a path and its modes tell of, whatever stands in the file; none for most.
func Marks(c Change) []string {
	var out []string
	if c.New.Mode == git.ModeExecutable && c.Old.Mode != git.ModeExecutable {
		out = append(out, "becomes executable")
	}
	if c.New.Mode == git.ModeSymlink {
		out = append(out, "is a symlink")
	}
	if area := sensitiveArea(policy.Fold(c.Path)); area != "" {
		out = append(out, "is part of "+area)
	}
	return out
}

// sensitiveArea names what kind of mistakes a path is prone to, by whole words of the path.
func sensitiveArea(path string) string {
	name := base(path)
	switch {
	case name == "dockerfile", name == "makefile", name == "jenkinsfile", strings.HasSuffix(name, ".tf"), strings.HasPrefix(name, "docker-compose"):
		return "the build or the infrastructure"
	case strings.HasSuffix(name, ".sql"):
		return "the database"
	}
	for word := range strings.FieldsFuncSeq(path, func(r rune) bool { return strings.ContainsRune("/._- ", r) }) {
		switch word {
		case "migrations", "migration", "migrate":
			return "the database"
		case "auth", "oauth", "authn", "authz", "authentication", "authorization", "login", "session", "sessions", "permission", "permissions", "acl", "rbac":
			return "access control"
		case "crypto", "cipher", "encryption", "tls", "x509", "keys", "secrets":
			return "cryptography"
		case "payment", "payments", "billing", "checkout", "invoice", "invoices":
			return "payments"
		}
	}
	return ""
}

// maxReasons keeps a report readable; the findings themselves are complete.
const maxReasons = 20

func compact(why []string) []string {
	seen := map[string]bool{}
	var out []string
	for _, w := range why {
		if !seen[w] {
			seen[w] = true
			out = append(out, w)
		}
	}
	if len(out) > maxReasons {
		out = append(out[:maxReasons], fmt.Sprintf("and %d more", len(out)-maxReasons))
	}
	return out
}
