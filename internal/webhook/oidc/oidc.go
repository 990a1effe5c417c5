// Package oidc owns the check of a CI job's identity token: its issuer, one audience, RS256 and ES256, the issuer's own
// keys. It must never take a key, an address or an algorithm from the token, nor put a token into an error.
package oidc

import (
	"cmp"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/proctor-ci/proctor/internal/secureurl"
)

// GitHub issues the tokens of jobs on github.com. On Enterprise Server it is https://HOST/_services/token.
// https://docs.github.com/en/actions/reference/security/oidc
const GitHub = "https://token.actions.githubusercontent.com"

// Claims of a job's token that somebody decides on: GitHub's, then GitLab's.
// https://docs.gitlab.com/ci/secrets/id_token_authentication/#token-payload
type Claims struct {
	Issuer string `json:"iss"`

	Repository     string `json:"repository"`    // owner/name
	RepositoryID   string `json:"repository_id"` // digits
	Ref            string `json:"ref"`           // refs/heads/NAME; on GitLab NAME alone
	EventName      string `json:"event_name"`
	WorkflowRef    string `json:"workflow_ref"`     // owner/name/.github/workflows/file@ref
	JobWorkflowRef string `json:"job_workflow_ref"` // the same, but for a job of a reusable workflow
	RunID          string `json:"run_id"`
	Environment    string `json:"environment"` // "" for a job without one

	ProjectPath    string `json:"project_path"` // group/name
	ProjectID      string `json:"project_id"`   // digits
	RefType        string `json:"ref_type"`     // "branch" or "tag"
	PipelineID     string `json:"pipeline_id"`
	PipelineSource string `json:"pipeline_source"`
	ConfigRef      string `json:"ci_config_ref_uri"` // HOST/group/name//file@refs/heads/NAME
}

// registered are the claims that are checked here.
type registered struct {
	Issuer   string       `json:"iss"`
	Audience audience     `json:"aud"`
	Expires  *json.Number `json:"exp"`
	Before   *json.Number `json:"nbf"`
	Issued   *json.Number `json:"iat"`
}

// audience is a string or a list; only one of exactly one counts.
type audience string

// UnmarshalJSON implements json.Unmarshaler.
func (a *audience) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*a = audience(one)
		return nil
	}
	var several []string
	if err := json.Unmarshal(b, &several); err != nil || len(several) != 1 {
		return errors.New("not one audience")
	}
	*a = audience(several[0])
	return nil
}

// Errors of Verify. ErrRefused says that the token is not good; ErrUnavailable that nobody can tell at the moment.
var (
	ErrRefused     = errors.New("the identity token is refused")
	ErrUnavailable = errors.New("the issuer's keys cannot be read")
)

// Config says whose tokens for whom are good.
type Config struct {
	Issuer   string       // https, no path but the issuer's own; http on loopback only
	Audience string       // what the job asked the token for
	HTTP     *http.Client // its Timeout is for one document of the issuer; 0: three seconds
	Now      func() time.Time
}

// Verifier checks tokens. It asks for keys with the first token, not before, and is safe for concurrent use.
type Verifier struct {
	cfg  Config
	keys keySet
}

// New checks the configuration. It sends nothing.
func New(c Config) (*Verifier, error) {
	u, err := url.Parse(c.Issuer)
	if err != nil || !secureurl.Safe(u) || u.RawQuery+u.Fragment != "" || strings.HasSuffix(c.Issuer, "/") {
		return nil, errors.New("the issuer is no https address: write " + GitHub + ", or https://HOST/_services/token for Enterprise Server")
	}
	if c.Audience == "" || strings.TrimSpace(c.Audience) != c.Audience {
		return nil, errors.New("the audience is missing or has white space around it: give the address of this webhook")
	}
	if c.HTTP == nil {
		c.HTTP = &http.Client{}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	client := *c.HTTP
	client.Timeout = cmp.Or(client.Timeout, fetchTime)
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Verifier{cfg: c, keys: keySet{issuer: c.Issuer, http: &client, now: c.Now}}, nil
}

// Bounds of a token, and how far clocks may differ where being early is the fault. Being late is never forgiven.
const (
	maxToken = 8 << 10
	skew     = 30 * time.Second
)

// Verify gives the claims of a token that is good now.
func (v *Verifier) Verify(ctx context.Context, token string) (Claims, error) {
	payload, err := v.authentic(ctx, token)
	if err != nil {
		return Claims{}, err
	}
	var r registered
	var c Claims
	if json.Unmarshal(payload, &r) != nil || json.Unmarshal(payload, &c) != nil {
		return Claims{}, refused("its claims have other types than they should")
	}
	if err := v.current(r); err != nil {
		return Claims{}, err
	}
	return c, nil
}

// Any is several issuers' verifiers. What a token says of its issuer only chooses the one that checks it.
type Any []*Verifier

// Verify is Verifier.Verify.
func (a Any) Verify(ctx context.Context, token string) (Claims, error) {
	var said registered
	if parts := strings.Split(token, "."); len(token) <= maxToken && len(parts) == 3 {
		raw, err := base64.RawURLEncoding.DecodeString(parts[1])
		if err != nil || json.Unmarshal(raw, &said) != nil {
			return Claims{}, refused("its claims have other types than they should")
		}
	}
	for _, v := range a {
		if said.Issuer == v.cfg.Issuer {
			return v.Verify(ctx, token)
		}
	}
	return Claims{}, refused("another issuer")
}

// authentic gives the payload of a token that the issuer signed.
func (v *Verifier) authentic(ctx context.Context, token string) ([]byte, error) {
	parts := strings.Split(token, ".")
	if len(token) > maxToken || len(parts) != 3 {
		return nil, refused("it is not a signed token")
	}
	var raw [3][]byte
	for i, p := range parts {
		b, err := base64.RawURLEncoding.Strict().DecodeString(p)
		if err != nil || len(b) == 0 || strings.ContainsAny(p, "\r\n") {
			return nil, refused("it is not a signed token")
		}
		raw[i] = b
	}
	var header struct {
		Alg  string          `json:"alg"`
		Kid  string          `json:"kid"`
		Crit json.RawMessage `json:"crit"`
	}
	if json.Unmarshal(raw[0], &header) != nil || header.Kid == "" || header.Crit != nil {
		return nil, refused("its header names no key, or asks for what is not known here")
	}
	if header.Alg != "RS256" && header.Alg != "ES256" {
		return nil, refused("its algorithm is neither RS256 nor ES256")
	}
	k, err := v.keys.find(ctx, header.Kid)
	if err != nil {
		return nil, err
	}
	if !k.signed(header.Alg, []byte(parts[0]+"."+parts[1]), raw[2]) {
		return nil, refused("its signature is not the issuer's")
	}
	return raw[1], nil
}

func (v *Verifier) current(r registered) error {
	now := v.cfg.Now()
	exp, ok := seconds(r.Expires)
	switch {
	case r.Issuer != v.cfg.Issuer:
		return refused("another issuer")
	case string(r.Audience) != v.cfg.Audience:
		return refused("another audience")
	case !ok || !now.Before(exp):
		return refused("it has expired, or says not when")
	}
	for _, early := range []*json.Number{r.Before, r.Issued} {
		if early == nil {
			continue
		}
		if t, ok := seconds(early); !ok || t.After(now.Add(skew)) {
			return refused("it is not valid yet")
		}
	}
	return nil
}

func seconds(n *json.Number) (time.Time, bool) {
	if n == nil {
		return time.Time{}, false
	}
	s, err := n.Float64()
	if err != nil || s < 0 || s > 1<<40 {
		return time.Time{}, false
	}
	return time.Unix(int64(s), 0), true
}

func refused(why string) error { return fmt.Errorf("%w: %s", ErrRefused, why) }

// key is a public key of the issuer's, for one algorithm.
type key struct {
	alg string
	rsa *rsa.PublicKey
	ec  *ecdsa.PublicKey
}

// signed checks a signature. The key's kind decides the algorithm; the token only has to name the same.
func (k key) signed(alg string, text, sig []byte) bool {
	sum := sha256.Sum256(text)
	switch {
	case k.alg != alg:
		return false
	case k.rsa != nil:
		return rsa.VerifyPKCS1v15(k.rsa, crypto.SHA256, sum[:], sig) == nil
	case len(sig) == 64:
		return ecdsa.Verify(k.ec, sum[:], new(big.Int).SetBytes(sig[:32]), new(big.Int).SetBytes(sig[32:]))
	}
	return false
}

// sameServer: addresses of one server.
func sameServer(a, b string) bool {
	x, err1 := url.Parse(a)
	y, err2 := url.Parse(b)
	return err1 == nil && err2 == nil && x.Scheme == y.Scheme && x.Host == y.Host && x.User == nil
}
