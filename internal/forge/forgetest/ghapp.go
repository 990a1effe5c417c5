package forgetest

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// repositoryID is that of the one repository.
const repositoryID = 500

// app is a GitHub App installed in the repository.
type app struct {
	id           int64
	slug         string
	key          *rsa.PublicKey
	installation int64
	permissions  map[string]string
	suspended    bool
}

// InstallApp registers an App that authenticates by RS256 JWTs of key, with an installation on the
// repository that holds permissions ("issues": "write", …). Its account is slug + "[bot]".
func (g *GitHub) InstallApp(appID, installation int64, slug string, key *rsa.PublicKey, permissions map[string]string) {
	g.state.Lock()
	defer g.state.Unlock()
	g.addAccount(slug+"[bot]", "Bot", "write")
	g.app = &app{id: appID, slug: slug, key: key, installation: installation, permissions: maps.Clone(permissions)}
}

// SuspendApp suspends or restores the installation.
func SuspendApp(on bool) Setting {
	return func(g *GitHub) {
		if g.app != nil {
			g.app.suspended = on
		}
	}
}

func (g *GitHub) appRoutes() []route {
	return []route{
		{"GET /app", "", "", getApp},
		{"POST /app-manifests/{code}/conversions", "", "", convertManifest},
		{"GET /app/hook/deliveries", "", "", listAttempts},
		{"POST /app/hook/deliveries/{number}/attempts", "", "", repeatAttempt},
		{"POST /app/installations/{number}/access_tokens", "", "", createInstallationToken},
		{"DELETE /installation/token", "", "", revokeInstallationToken},
	}
}

func getApp(c *call) (int, any, error) {
	if err := c.appJWT(); err != nil {
		return 0, nil, err
	}
	a := c.g.app
	return http.StatusOK, obj{
		"id": a.id, "slug": a.slug, "node_id": nodeID("A_", a.id), "owner": c.g.userJSON(c.g.user(c.g.opt.Owner)), "name": a.slug,
		"description": nil, "external_url": c.g.url, "html_url": c.g.url + "/apps/" + a.slug, "created_at": stampOf(c.g.since),
		"updated_at": stampOf(c.g.since), "permissions": a.permissions, "events": []string{"issues"}, "installations_count": 1,
	}, nil
}

// createInstallationToken narrows to what was asked for; asking for more is refused.
func createInstallationToken(c *call) (int, any, error) {
	if err := c.appJWT(); err != nil {
		return 0, nil, err
	}
	a := c.g.app
	switch {
	case int64(c.number()) != a.installation:
		return 0, nil, notFound()
	case a.suspended:
		return 0, nil, refuse(http.StatusForbidden, "This installation has been suspended")
	}
	var in struct {
		Repositories  []string          `json:"repositories"`
		RepositoryIDs []int64           `json:"repository_ids"`
		Permissions   map[string]string `json:"permissions"`
	}
	if len(c.body) > 0 {
		if err := c.decode(&in); err != nil {
			return 0, nil, err
		}
	}
	elsewhere := slices.ContainsFunc(in.Repositories, func(r string) bool { return !strings.EqualFold(r, c.g.opt.Name) }) ||
		slices.ContainsFunc(in.RepositoryIDs, func(id int64) bool { return id != repositoryID })
	if elsewhere {
		return 0, nil, refuse(http.StatusUnprocessableEntity, "There is at least one repository that does not exist or is not accessible to the parent installation.")
	}
	permissions := maps.Clone(a.permissions)
	if in.Permissions != nil {
		permissions = in.Permissions
		have := &Token{Permissions: a.permissions}
		for scope, level := range in.Permissions {
			if !have.may(scope, level) {
				return 0, nil, refuse(http.StatusUnprocessableEntity, "The permissions requested are not granted to this installation.")
			}
		}
	}
	value := "gh" + "s_" + secret(100) + "." + secret(120)
	expires := c.g.now().Add(time.Hour)
	c.g.tokens[value] = &Token{Login: a.slug + "[bot]", Permissions: permissions, Installation: true, Expires: expires}
	return http.StatusCreated, obj{"token": value, "expires_at": stampOf(expires), "permissions": permissions, "repository_selection": "selected"}, nil
}

// revokeInstallationToken ends the token that asks for it.
func revokeInstallationToken(c *call) (int, any, error) {
	if !c.token.Installation {
		return 0, nil, refuse(http.StatusForbidden, "Resource not accessible by personal access token")
	}
	maps.DeleteFunc(c.g.tokens, func(_ string, t *Token) bool { return t == c.token })
	return http.StatusNoContent, nil, nil
}

// appJWT checks signature, issuer and times as GitHub does: RS256, at most ten minutes, not from the future.
func (c *call) appJWT() error {
	bad := refuse(http.StatusUnauthorized, "A JSON web token could not be decoded")
	_, raw, _ := strings.Cut(c.r.Header.Get("Authorization"), " ")
	parts := strings.Split(raw, ".")
	if c.g.app == nil || len(parts) != 3 {
		return bad
	}
	var head struct{ Alg string }
	var claims struct {
		Iss any
		Iat float64
		Exp float64
	}
	sig, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || decodeSegment(parts[0], &head) != nil || decodeSegment(parts[1], &claims) != nil || head.Alg != "RS256" {
		return bad
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if rsa.VerifyPKCS1v15(c.g.app.key, crypto.SHA256, sum[:], sig) != nil {
		return bad
	}
	now := float64(c.g.now().Unix())
	switch {
	case claims.Exp <= now:
		return refuse(http.StatusUnauthorized, "'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires")
	case claims.Exp > now+600:
		return refuse(http.StatusUnauthorized, "'Expiration time' claim ('exp') is too far in the future")
	case claims.Iat > now:
		return refuse(http.StatusUnauthorized, "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued")
	case issuer(claims.Iss) != strconv.FormatInt(c.g.app.id, 10):
		return refuse(http.StatusNotFound, "Integration not found")
	}
	return nil
}

func decodeSegment(s string, v any) error {
	data, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}

func issuer(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatInt(int64(v), 10)
	}
	return ""
}

// InstallationTokens are the tokens of the App's installation that are good now.
func (g *GitHub) InstallationTokens() []Token {
	g.state.Lock()
	defer g.state.Unlock()
	var out []Token
	for _, t := range g.tokens {
		if t.Installation && (t.Expires.IsZero() || g.now().Before(t.Expires)) {
			out = append(out, *t)
		}
	}
	return out
}
