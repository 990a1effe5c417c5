package config

import (
	"net/netip"
	"path"
	"strconv"
	"strings"
	"unicode"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/proctor-ci/proctor/internal/pattern"
)

// checkGlob accepts a pattern that package policy can match against a path of the tree. What would
// never match anything ("/src", "./src", "a/../b", "src/") is refused rather than ignored.
func checkGlob(s string) error {
	switch {
	case s == "":
		return wrong(`write a pattern like "infra/**"`, "empty pattern")
	case strings.HasPrefix(s, "!"):
		return wrong("list what is meant instead", "%q: patterns cannot be negated", s)
	case strings.ContainsRune(s, '\\'):
		return wrong(`write "/" between folders`, `%q: "\" is not used in patterns`, s)
	case strings.HasSuffix(s, "/"):
		return wrong(strconv.Quote(s+"**")+" means the folder and all in it", "%q matches no file", s)
	case s != path.Clean(s) || strings.HasPrefix(s, "/") || s == ".." || strings.HasPrefix(s, "../"):
		return wrong(`write it from the root of the repository, without "/", "./" or ".." in front`, "%q matches no file", s)
	case !doublestar.ValidatePattern(s):
		return wrong("close every [ and {", "%q is not a pattern", s)
	}
	return nil
}

// checkPath accepts a path of one file or folder inside the repository, no pattern.
func checkPath(s string) error {
	switch {
	case s == "" || s == ".":
		return wrong(`write a path like "docs/rubric.md"`, "empty path")
	case strings.ContainsAny(s, `*?[]{}\`):
		return wrong("write the path itself", "%q is a pattern, a path is wanted", s)
	case strings.HasPrefix(s, "/") || s == ".." || strings.HasPrefix(s, "../") || s != path.Clean(s):
		return wrong(`write it from the root of the repository, without "/", "./" or ".." in front`, "%q does not lie in the repository", s)
	case s == ".git" || strings.HasPrefix(s, ".git/"):
		return wrong("name a folder of the work tree", "%q is git's own", s)
	}
	return nil
}

var hostPattern = pattern.Of(`^(\*\.)?([A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?\.)+[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?$`)

// checkHostPort accepts host:port, where the host may begin with "*." for its subdomains. Addresses
// that lie inside the runner or its cloud are never egress.
func checkHostPort(s string) error {
	const next = `write host:port, like "registry.example.com:443" or "*.example.com:443"`
	if strings.Contains(s, "://") {
		return wrong(next, "%q is a URL", s)
	}
	host, port, ok := strings.Cut(s, ":")
	if !ok {
		return wrong(next, "%q has no port", s)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 || strconv.Itoa(n) != port {
		return wrong(next, "%q: %q is not a port", s, port)
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		if ip.IsPrivate() || ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsUnspecified() || ip.IsMulticast() {
			return wrong("name a public host", "%q is a private address, which the agent never reaches", s)
		}
		return nil
	}
	if host == "localhost" || !hostPattern.MatchString(host) {
		return wrong(next, "%q: %q is not the name of a host", s, host)
	}
	return nil
}

// checkBranch follows git-check-ref-format for what lies under refs/heads.
func checkBranch(s string) error {
	bad := s == "" || s == "@" || strings.HasPrefix(s, "-") || strings.HasPrefix(s, "/") || strings.HasSuffix(s, "/") ||
		strings.HasSuffix(s, ".") || strings.Contains(s, "..") || strings.Contains(s, "//") || strings.Contains(s, "@{") ||
		strings.ContainsAny(s, " ~^:?*[\\") || strings.ContainsFunc(s, unicode.IsControl)
	for part := range strings.SplitSeq(s, "/") {
		bad = bad || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock")
	}
	if bad {
		return wrong(`write a name like "main"`, "%q is not a branch name git accepts", s)
	}
	return nil
}

// checkBranchPattern wants {number}, without which two issues would share one branch.
func checkBranchPattern(s string) error {
	const next = `write it like "proctor/issue-{number}"`
	if !strings.Contains(s, "{number}") {
		return wrong(next, "%q has no {number}: two issues would share a branch", s)
	}
	plain := strings.ReplaceAll(s, "{number}", "1")
	if strings.ContainsAny(plain, "{}") {
		return wrong(next, "%q: {number} is the only placeholder", s)
	}
	if checkBranch(plain) != nil {
		return wrong(next, "%q is not a branch name git accepts", s)
	}
	return nil
}

// checkRepository accepts owner/name, with groups in front on GitLab.
func checkRepository(s string) error {
	if !personName.MatchString(s) || !strings.Contains(s, "/") || strings.HasSuffix(s, ".git") {
		return wrong(`write it like "acme/exams"`, "%q is not owner/name", s)
	}
	return nil
}

// checkRef accepts what names a commit of a remote: a branch, a tag, a full ref or an id.
func checkRef(s string) error {
	if s == "HEAD" || checkBranch(s) != nil {
		return wrong(`write a branch, a tag or a commit id, like "held-out"`, "%q names no ref", s)
	}
	return nil
}

// checkHeldDir accepts the word for "the job says where", or an absolute path.
func checkHeldDir(s string) error {
	if s != "input" && (!path.IsAbs(s) || path.Clean(s) != s || s == "/") {
		return wrong(`write "input", or an absolute path outside the checkout`, "%q is neither", s)
	}
	return nil
}

func checkLabel(s string) error {
	switch {
	case strings.TrimSpace(s) != s || s == "":
		return wrong(`write a label like "proctor"`, "%q is empty or has blanks around it", s)
	case strings.ContainsRune(s, ','):
		return wrong("write one label", "%q: a label holds no comma", s)
	case len([]rune(s)) > 50:
		return wrong("choose a shorter one", "%q: a label has at most 50 characters", s)
	}
	return nil
}

var commandWord = pattern.Of(`^/[a-z][a-z0-9-]*$`)

func checkCommandPrefix(s string) error {
	if !commandWord.MatchString(s) {
		return wrong(`write one word after a slash, like "/proctor"`, "%q is not the beginning of a command", s)
	}
	return nil
}

var (
	plainName  = pattern.Of(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
	modelName  = pattern.Of(`^[A-Za-z0-9][A-Za-z0-9._:/@+-]*$`)
	personName = pattern.Of(`^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$`)
)

func checkName(s string) error {
	if !plainName.MatchString(s) {
		return wrong(`write a name like "claude-code"`, "%q is not the name of an agent", s)
	}
	return nil
}

func checkModel(s string) error {
	if !modelName.MatchString(s) {
		return wrong("write the model's id as its provider has it", "%q is not a model id", s)
	}
	return nil
}

func checkPerson(s string) error {
	if !personName.MatchString(s) {
		return wrong(`write the login without "@", or "org/team"`, "%q is not an account or team", s)
	}
	return nil
}
