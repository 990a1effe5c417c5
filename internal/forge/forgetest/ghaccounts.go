package forgetest

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

type account struct {
	login, kind, role string // kind "User", "Bot" or "Organization"; role "" is none
	id                int64
}

// Token is what a caller may do. The zero Permissions mean everything the account's role allows.
type Token struct {
	// Login is the account it acts as.
	Login string
	// Permissions as a workflow's or an App's: "contents": "write". nil is a classic token with all of them.
	Permissions map[string]string
	// Job marks a workflow's own token, Installation an App's; both cannot ask who they are by REST.
	Job, Installation bool
	// Expires, if set, ends it.
	Expires time.Time

	revoked bool
}

// AddBot makes an App's account; its login ends in "[bot]".
func (g *GitHub) AddBot(login, role string) int64 {
	g.state.Lock()
	defer g.state.Unlock()
	return g.addAccount(login, "Bot", role).id
}

// NewToken registers a token and gives its value. Installation and job tokens are long and dotted, as
// GitHub's are becoming: nothing may depend on their length or alphabet.
func (g *GitHub) NewToken(t Token) string {
	value := "gh" + "p_" + secret(18)
	if t.Job || t.Installation {
		value = "gh" + "s_" + secret(100) + "." + secret(120) + "." + secret(30)
	}
	g.state.Lock()
	defer g.state.Unlock()
	if t.Job {
		t.Login = "github-actions[bot]"
	}
	g.tokens[value] = &t
	return value
}

// RevokeJobs ends the tokens of all jobs, as their time being over does.
func (g *GitHub) RevokeJobs() {
	g.state.Lock()
	defer g.state.Unlock()
	for _, t := range g.tokens {
		t.revoked = t.revoked || t.Job
	}
}

// Revoke ends a token, as a finished job or a person does.
func (g *GitHub) Revoke(value string) {
	g.state.Lock()
	defer g.state.Unlock()
	if t := g.tokens[value]; t != nil {
		t.revoked = true
	}
}

// token of a request: bearer, "token …", or Basic with the token as password. nil is unknown or over.
func (g *GitHub) token(r *http.Request) *Token {
	value := ""
	if _, pass, ok := r.BasicAuth(); ok {
		value = pass
	} else if scheme, rest, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && slices.Contains([]string{"bearer", "token"}, strings.ToLower(scheme)) {
		value = strings.TrimSpace(rest)
	}
	t := g.tokens[value]
	if t == nil || t.revoked || !t.Expires.IsZero() && !g.now().Before(t.Expires) {
		return nil
	}
	return t
}

var levels = []string{"", "read", "write", "admin"}

// may tells whether the token holds a permission ("issues", "write").
func (t *Token) may(scope, level string) bool {
	if t.Permissions == nil {
		return true
	}
	have := t.Permissions[scope]
	if scope == "metadata" && have == "" {
		have = "read"
	}
	return slices.Index(levels, have) >= slices.Index(levels, level)
}

var roles = []string{"", "read", "triage", "write", "maintain", "admin"}

// roleOf an account; a public repository may be read by everybody.
func (g *GitHub) roleOf(a *account) string {
	if a.role == "" && !g.opt.Private {
		return "read"
	}
	return a.role
}

func atLeast(role, want string) bool { return slices.Index(roles, role) >= slices.Index(roles, want) }

// basePermission is the old four-word scale of the permission API.
func basePermission(role string) string {
	switch role {
	case "maintain":
		return "write"
	case "triage":
		return "read"
	case "":
		return "none"
	}
	return role
}
