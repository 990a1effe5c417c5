package forgetest

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"math/big"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v4"
)

// oidcKey is the same for all forges of a process: making one is slow.
var oidcKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

const (
	oidcPath = "/_services/token"
	oidcKid  = "forgetest"
	// oidcLife is what GitHub's tokens live.
	oidcLife = 5 * time.Minute
)

// OIDCIssuer is who signs the identities of this forge's jobs: its description and its keys lie below.
func (g *GitHub) OIDCIssuer() string { return g.url + oidcPath }

// identityOf lets a job with `id-token: write` ask for its identity, until the returned function is called.
func (g *GitHub) identityOf(r *Run) (url, token string, end func()) {
	g.state.Lock()
	defer g.state.Unlock()
	token = "oidc-" + secret(8)
	g.identities[token] = r
	return g.url + "/_services/idtoken?api-version=2.0", token, func() {
		g.state.Lock()
		defer g.state.Unlock()
		delete(g.identities, token)
	}
}

// serveOIDC is the issuer: https://docs.github.com/en/actions/reference/security/oidc
func (g *GitHub) serveOIDC(mux *http.ServeMux) {
	mux.HandleFunc("GET "+oidcPath+"/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, obj{"issuer": g.OIDCIssuer(), "jwks_uri": g.OIDCIssuer() + "/.well-known/jwks", "id_token_signing_alg_values_supported": []string{"RS256"}})
	})
	mux.HandleFunc("GET "+oidcPath+"/.well-known/jwks", func(w http.ResponseWriter, _ *http.Request) {
		key, err := oidcKey()
		if err != nil {
			writeJSON(w, http.StatusInternalServerError, obj{"message": err.Error()})
			return
		}
		b64 := base64.RawURLEncoding.EncodeToString
		writeJSON(w, http.StatusOK, obj{"keys": []obj{{
			"kty": "RSA", "use": "sig", "alg": "RS256", "kid": oidcKid, "n": b64(key.N.Bytes()), "e": b64(big.NewInt(int64(key.E)).Bytes()),
		}}})
	})
	mux.HandleFunc("GET /_services/idtoken", func(w http.ResponseWriter, r *http.Request) {
		value, err := g.identity(r)
		if err != nil {
			writeJSON(w, http.StatusUnauthorized, obj{"message": "Unauthorized"})
			return
		}
		writeJSON(w, http.StatusOK, obj{"value": value})
	})
}

// identity signs what GitHub says of the job whose request token was sent.
func (g *GitHub) identity(r *http.Request) (string, error) {
	key, err := oidcKey()
	if err != nil {
		return "", err
	}
	g.state.Lock()
	defer g.state.Unlock()
	_, bearer, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	run, ok := g.identities[bearer]
	if !ok {
		return "", refuse(http.StatusUnauthorized, "Unauthorized")
	}
	gh := g.contexts(run, nil).contexts["github"].(map[string]any)
	now := g.now()
	claims := jwt.MapClaims{
		"iss": g.OIDCIssuer(), "aud": or(r.URL.Query().Get("audience"), g.url+"/"+g.opt.Owner), "sub": "repo:" + g.fullName() + ":ref:" + run.Ref,
		"jti": secret(8), "iat": now.Unix(), "nbf": now.Add(-time.Minute).Unix(), "exp": now.Add(oidcLife).Unix(), "job_workflow_ref": gh["workflow_ref"],
	}
	for _, name := range []string{"repository", "repository_id", "ref", "sha", "event_name", "workflow_ref", "run_id", "run_number", "run_attempt", "actor", "actor_id"} {
		claims[name] = text(gh[name])
	}
	t := jwt.NewWithClaims(jwt.SigningMethodRS256, claims)
	t.Header["kid"] = oidcKid
	return t.SignedString(key)
}
