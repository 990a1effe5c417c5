package webhook_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/trigger"
	"github.com/proctor-ci/proctor/internal/webhook"
	"github.com/proctor-ci/proctor/internal/webhook/claimtest"
	"github.com/proctor-ci/proctor/internal/webhook/oidc"
	"github.com/proctor-ci/proctor/internal/webhook/oidctest"
)

const (
	hookAddress = "https://hook.example/token"
	workflowRef = "octo/shop/.github/workflows/proctor.yml@refs/heads/main"
)

// desk is a handler that exchanges tokens, an issuer, and a run that was dispatched.
type desk struct {
	*rig
	issuer *oidctest.Issuer
	id     string // of the run

	mu     sync.Mutex
	minted []webhook.Target
	fails  error
}

func newDesk(t *testing.T, changes ...func(*webhook.Config)) *desk {
	t.Helper()
	d := &desk{issuer: oidctest.New(t), id: trigger.NewID("a label event")}
	clock := claimtest.NewClock()
	v, err := oidc.New(oidc.Config{Issuer: d.issuer.URL, Audience: hookAddress, Now: clock.Now, HTTP: &http.Client{Timeout: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	d.rig = newRig(t, func(c *webhook.Config) {
		c.Now, c.Store = clock.Now, webhook.NewMemory(clock.Now)
		c.Exchange = &webhook.Exchange{Verify: v.Verify, Mint: d.mint, Environment: "agents"}
		for _, change := range changes {
			change(c)
		}
	})
	d.clock = clock
	d.claim(t, d.id, webhook.Running, 34)
	d.w.runs, d.w.refs = []map[string]string{{trigger.InputID: d.id}}, []string{"main"} // run 1 of the world
	return d
}

func (d *desk) mint(_ context.Context, to webhook.Target, p webhook.Purpose) (string, time.Time, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fails != nil {
		return "", time.Time{}, d.fails
	}
	d.minted = append(d.minted, to)
	return "short-lived-" + string(p), d.clock.Now().Add(time.Hour), nil
}

func (d *desk) claim(t *testing.T, id string, state webhook.State, install int64) {
	t.Helper()
	to := webhook.Target{Forge: trigger.GitHub, Install: install, Repo: trigger.Repo{Owner: "octo", Name: "shop", ID: 5, DefaultBranch: "main"}}
	c, err := d.store.Claim(context.Background(), webhook.Claim{ID: id, To: to, File: "proctor.yml", Issue: 7}, time.Hour)
	if err == nil && state != webhook.Claimed {
		err = d.store.Mark(context.Background(), id, c.Attempt, state, time.Hour)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (d *desk) header() map[string]any {
	return map[string]any{"alg": "RS256", "kid": "rsa", "typ": "JWT"}
}

// claims are those of the run's own job, as GitHub writes them.
func (d *desk) claims() map[string]any {
	now := d.clock.Now().Unix()
	return map[string]any{
		"iss": d.issuer.URL, "aud": hookAddress, "iat": now, "nbf": now - 60, "exp": now + 300, "sub": "repo:octo/shop:environment:agents", "jti": "j",
		"repository": "octo/shop", "repository_id": "5", "ref": "refs/heads/main", "event_name": "workflow_dispatch", "workflow_ref": workflowRef,
		"job_workflow_ref": workflowRef, "run_id": "1", "run_attempt": "1", "environment": "agents",
	}
}

func (d *desk) good(t *testing.T) string {
	return oidctest.Sign(t, d.issuer.RSA, d.header(), d.claims())
}

func (d *desk) request(token string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/token", strings.NewReader(`{"proctor_id": "`+d.id+`", "purpose": "run"}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

func (d *desk) ask(token string) got { return send(d.h, d.request(token)) }

// INV-47, the control: the run's own job gets a token for its repository, once.
func TestARunGetsATokenForItsRepositoryOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	token := d.good(t)
	var answer struct {
		Status, Token string
		Expires       time.Time `json:"expires_at"`
	}
	first := d.ask(token)
	if err := json.Unmarshal([]byte(first.Raw), &answer); err != nil || first.Code != http.StatusOK || answer.Token != "short-lived-run" || answer.Status != "issued" || answer.Expires.IsZero() {
		t.Fatalf("%s %v", first.Raw, err)
	}
	want := []webhook.Target{{Forge: trigger.GitHub, Install: 34, Repo: trigger.Repo{Owner: "octo", Name: "shop", ID: 5, DefaultBranch: "main"}}}
	if diff := cmp.Diff(want, d.minted); diff != "" {
		t.Error(diff)
	}
	if again := d.ask(token); again.String() != "403 refused used" {
		t.Errorf("the same again: %s", again)
	}
	// A later token of the same job is the same use; so is one days later, when leases are over and were reaped.
	d.clock.Advance(20 * time.Minute)
	if _, err := d.h.Reap(context.Background()); err != nil {
		t.Fatal(err)
	}
	if again := d.ask(d.good(t)); again.String() != "403 refused used" {
		t.Errorf("another token of the same run: %s", again)
	}
	if log := d.log.String(); strings.Contains(log, "short-lived") || strings.Contains(log, token[:20]) {
		t.Errorf("a token is in the log: %s", log)
	}
}

// INV-47: each fault alone, in a request that is good otherwise.
func TestWhoeverIsNotTheRunGetsNoToken(t *testing.T) {
	t.Parallel()
	stranger, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	claim := func(name string, value any) func(*testing.T, *desk) *http.Request {
		return func(t *testing.T, d *desk) *http.Request {
			c := d.claims()
			if c[name] = value; value == nil {
				delete(c, name)
			}
			return d.request(oidctest.Sign(t, d.issuer.RSA, d.header(), c))
		}
	}
	when := func(name string, after time.Duration) func(*testing.T, *desk) *http.Request {
		return func(t *testing.T, d *desk) *http.Request { return claim(name, d.clock.Now().Add(after).Unix())(t, d) }
	}
	signed := func(key func(*desk) crypto.Signer, change map[string]any) func(*testing.T, *desk) *http.Request {
		return func(t *testing.T, d *desk) *http.Request {
			h := d.header()
			for k, v := range change {
				h[k] = v
			}
			return d.request(oidctest.Sign(t, key(d), h, d.claims()))
		}
	}
	issuers := func(d *desk) crypto.Signer { return d.issuer.RSA }
	ecs := func(d *desk) crypto.Signer { return d.issuer.EC }
	const identity, job, run = "401 invalid identity", "403 refused other_job", "403 refused other_run"
	for name, c := range map[string]struct {
		ask  func(*testing.T, *desk) *http.Request
		want string
	}{
		"control":          {func(t *testing.T, d *desk) *http.Request { return d.request(d.good(t)) }, "200 issued "},
		"control: ES256":   {signed(ecs, map[string]any{"alg": "ES256", "kid": "ec"}), "200 issued "},
		"control: a list":  {claim("aud", []string{hookAddress}), "200 issued "},
		"control: no nbf":  {claim("nbf", nil), "200 issued "},
		"control: skew":    {when("nbf", 20*time.Second), "200 issued "},
		"another issuer":   {claim("iss", "https://token.actions.githubusercontent.com"), identity},
		"issuer with /":    {func(t *testing.T, d *desk) *http.Request { return claim("iss", d.issuer.URL+"/")(t, d) }, identity},
		"no issuer":        {claim("iss", nil), identity},
		"another audience": {claim("aud", "https://github.com/octo"), identity},
		"no audience":      {claim("aud", nil), identity},
		"two audiences":    {claim("aud", []string{hookAddress, "sts.amazonaws.com"}), identity},
		"expired":          {when("exp", -time.Second), identity},
		"expires now":      {when("exp", 0), identity},
		"no expiry":        {claim("exp", nil), identity},
		"expiry is text":   {claim("exp", "tomorrow"), identity},
		"expiry negative":  {claim("exp", -1), identity},
		"not yet valid":    {when("nbf", 2*time.Minute), identity},
		"from the future":  {when("iat", 2*time.Minute), identity},

		"signed by a stranger":          {signed(func(*desk) crypto.Signer { return stranger }, nil), identity},
		"signed by a stranger, ES256":   {signed(func(*desk) crypto.Signer { return other }, map[string]any{"alg": "ES256", "kid": "ec"}), identity},
		"a key that is not there":       {signed(issuers, map[string]any{"kid": "new"}), identity},
		"RSA that says ES256":           {signed(issuers, map[string]any{"alg": "ES256"}), identity},
		"no key named":                  {signed(issuers, map[string]any{"kid": ""}), identity},
		"RS256 with the other key":      {signed(issuers, map[string]any{"kid": "ec"}), identity},
		"ES256 with the RSA key":        {signed(ecs, map[string]any{"alg": "ES256"}), identity},
		"algorithm of another strength": {signed(issuers, map[string]any{"alg": "RS512"}), identity},
		"none":                          {signed(issuers, map[string]any{"alg": "none"}), identity},
		"critical extension":            {signed(issuers, map[string]any{"crit": []string{"b64"}}), identity},
		"its own key in the header": {signed(func(*desk) crypto.Signer { return stranger }, map[string]any{
			"jwk": oidctest.RSAKey("rsa", &stranger.PublicKey), "jku": "http://127.0.0.1:1/keys",
		}), identity},
		"HMAC with the public key": {func(t *testing.T, d *desk) *http.Request {
			der, err := x509.MarshalPKIXPublicKey(&d.issuer.RSA.PublicKey)
			if err != nil {
				t.Fatal(err)
			}
			h := d.header()
			h["alg"] = "HS256"
			p := strings.Split(oidctest.Sign(t, d.issuer.RSA, h, d.claims()), ".")
			m := hmac.New(sha256.New, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
			m.Write([]byte(p[0] + "." + p[1]))
			return d.request(p[0] + "." + p[1] + "." + base64.RawURLEncoding.EncodeToString(m.Sum(nil)))
		}, identity},
		"payload changed": {func(t *testing.T, d *desk) *http.Request {
			p, q := strings.Split(d.good(t), "."), d.claims()
			q["run_id"] = "2"
			return d.request(p[0] + "." + strings.Split(oidctest.Sign(t, stranger, d.header(), q), ".")[1] + "." + p[2])
		}, identity},
		"no signature": {func(t *testing.T, d *desk) *http.Request {
			return d.request(d.good(t)[:strings.LastIndex(d.good(t), ".")+1])
		}, identity},
		"four parts":   {func(t *testing.T, d *desk) *http.Request { return d.request(d.good(t) + ".x") }, identity},
		"padded":       {func(t *testing.T, d *desk) *http.Request { return d.request(d.good(t) + "==") }, identity},
		"no token":     {func(_ *testing.T, d *desk) *http.Request { return d.request("") }, identity},
		"a huge token": {func(_ *testing.T, d *desk) *http.Request { return d.request(strings.Repeat("a.", 9<<10)) }, identity},
		"sent twice": {func(t *testing.T, d *desk) *http.Request {
			r := d.request(d.good(t))
			r.Header.Add("Authorization", "Bearer x")
			return r
		}, identity},
		"basic": {func(t *testing.T, d *desk) *http.Request {
			r := d.request("")
			r.Header.Set("Authorization", "Basic "+d.good(t))
			return r
		}, identity},

		"another repository":        {claim("repository_id", "6"), job},
		"no repository id":          {claim("repository_id", nil), job},
		"another name":              {claim("repository", "octo/shop2"), job},
		"another branch":            {claim("ref", "refs/heads/proctor/7"), job},
		"a tag of that name":        {claim("ref", "refs/tags/main"), job},
		"another event":             {claim("event_name", "pull_request_target"), job},
		"another workflow":          {claim("workflow_ref", "octo/shop/.github/workflows/ci.yml@refs/heads/main"), job},
		"the workflow of a branch":  {claim("workflow_ref", "octo/shop/.github/workflows/proctor.yml@refs/heads/x"), job},
		"no workflow":               {claim("workflow_ref", nil), job},
		"a reusable workflow's job": {claim("job_workflow_ref", "mallory/x/.github/workflows/proctor.yml@refs/heads/main"), job},
		"another environment":       {claim("environment", "staging"), job},
		"no environment":            {claim("environment", nil), job},
		"another run":               {claim("run_id", "2"), run},
		"no run":                    {claim("run_id", nil), run},
		"a run without a claim": {func(t *testing.T, d *desk) *http.Request {
			d.id = trigger.NewID("another")
			return d.request(d.good(t))
		}, run},
		"a run that is over":         {func(t *testing.T, d *desk) *http.Request { return d.in(t, webhook.Ended, 34) }, run},
		"a run no App dispatched":    {func(t *testing.T, d *desk) *http.Request { return d.in(t, webhook.Running, 0) }, run},
		"a run not yet dispatched":   {func(t *testing.T, d *desk) *http.Request { return d.in(t, webhook.Claimed, 34) }, "503 retry in_flight"},
		"a branch's run has the id":  {func(t *testing.T, d *desk) *http.Request { d.w.refs = []string{"mine"}; return d.request(d.good(t)) }, run},
		"a run the forge has not":    {func(t *testing.T, d *desk) *http.Request { d.w.runs = nil; return d.request(d.good(t)) }, run},
		"another purpose":            {body(`{"proctor_id": "ID", "purpose": "admin"}`), "400 invalid shape"},
		"no purpose":                 {body(`{"proctor_id": "ID"}`), "400 invalid shape"},
		"an id with something on it": {body(`{"proctor_id": "ID x", "purpose": "run"}`), "400 invalid shape"},
		"no body":                    {body(``), "400 invalid body"},
		"a huge body":                {body(`{"proctor_id": "` + strings.Repeat("x", 5<<10)), "400 invalid body"},
		"by GET": {func(t *testing.T, d *desk) *http.Request {
			r := d.request(d.good(t))
			r.Method = http.MethodGet
			return r
		}, "405 invalid method"},
		"the issuer is down": {func(t *testing.T, d *desk) *http.Request {
			d.issuer.Set(nil, nil, true)
			return d.request(d.good(t))
		}, "503 retry issuer"},
		"the issuer's keys are elsewhere": {func(t *testing.T, d *desk) *http.Request {
			d.issuer.Set(nil, map[string]string{"jwks_uri": oidctest.New(t).URL + "/keys"}, false)
			return d.request(d.good(t))
		}, "503 retry issuer"},
		"the description is another's": {func(t *testing.T, d *desk) *http.Request {
			d.issuer.Set(nil, map[string]string{"issuer": "https://example.com"}, false)
			return d.request(d.good(t))
		}, "503 retry issuer"},
		"a key for encryption": {func(t *testing.T, d *desk) *http.Request {
			k := oidctest.RSAKey("rsa", &d.issuer.RSA.PublicKey)
			k["use"] = "enc"
			d.issuer.Set([]map[string]string{k}, nil, false)
			return d.request(d.good(t))
		}, identity},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			a := send(d.h, c.ask(t, d))
			if a.String() != c.want {
				t.Errorf("%s, want %s; log %s", a, c.want, d.log.String())
			}
			if good := a.Code == http.StatusOK; good != (len(d.minted) == 1) || good != strings.Contains(a.Raw, "short-lived") {
				t.Errorf("%d tokens made, answer %s", len(d.minted), a.Raw)
			}
		})
	}
}

// in is a good request of a run whose claim is otherwise.
func (d *desk) in(t *testing.T, state webhook.State, install int64) *http.Request {
	t.Helper()
	d.id = trigger.NewID("another label event")
	d.claim(t, d.id, state, install)
	d.w.runs, d.w.refs = []map[string]string{{trigger.InputID: d.id}}, []string{"main"}
	return d.request(d.good(t))
}

func body(text string) func(*testing.T, *desk) *http.Request {
	return func(t *testing.T, d *desk) *http.Request {
		r := httptest.NewRequest(http.MethodPost, "/token", strings.NewReader(strings.ReplaceAll(text, "ID", d.id)))
		r.Header = d.request(d.good(t)).Header
		return r
	}
}

// INV-47: many at once are one use; one that could not be served is none.
func TestAUseIsTakenOnceAndGivenBackWhenNothingWasGiven(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	token := d.good(t)
	d.fails = errors.New("the forge is away")
	if a := d.ask(token); a.String() != "503 retry forge" {
		t.Fatal(a)
	}
	d.fails = nil
	var wg sync.WaitGroup
	answers := make([]got, 32)
	for i := range answers {
		wg.Go(func() { answers[i] = d.ask(token) })
	}
	wg.Wait()
	given := 0
	for _, a := range answers {
		switch a.String() {
		case "200 issued ":
			given++
		case "403 refused used", "503 retry in_flight": // after the use was written down, or before
		default:
			t.Errorf("%s", a)
		}
	}
	if given != 1 || len(d.minted) != 1 {
		t.Errorf("%d answers with a token, %d tokens made, want one", given, len(d.minted))
	}
	if a := d.ask(token); a.String() != "403 refused used" {
		t.Errorf("once more: %s", a)
	}
}

// unmarked is a store that takes claims and, for a while, writes down nothing that becomes of them.
type unmarked struct {
	webhook.Store
	fails *int
}

func (s unmarked) Mark(ctx context.Context, id string, attempt int, to webhook.State, lease time.Duration) error {
	if *s.fails > 0 {
		*s.fails--
		return errStore
	}
	return s.Store.Mark(ctx, id, attempt, to, lease)
}

// INV-47: a use that was taken and not written down gave no token, so that the run gets one when the use's lease is over.
func TestAUseThatCouldNotBeWrittenDownIsFreeAgainAfterItsLease(t *testing.T) {
	t.Parallel()
	fails := 0
	d := newDesk(t, func(c *webhook.Config) { c.Store = unmarked{c.Store, &fails} })
	fails = 3
	ask := func(want string, tokens int) {
		t.Helper()
		if a := d.ask(d.good(t)); a.String() != want || len(d.minted) != tokens {
			t.Errorf("%s with %d tokens made, want %s with %d", a, len(d.minted), want, tokens)
		}
	}
	ask("503 retry store", 0)
	ask("503 retry in_flight", 0)
	d.clock.Advance(61 * time.Second)
	ask("200 issued ", 1)
	// The control: one that was written down stays used, whatever has lapsed.
	ask("403 refused used", 1)
	d.clock.Advance(61 * time.Second)
	ask("403 refused used", 1)
}

// Without the setting there is no such path, and the exchange works behind Lambda's front door too.
func TestTheExchangeIsThereOnlyWhereItIsSet(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	if a := send(newRig(t, nil).h, d.request(d.good(t))); a.String() != "404 invalid path" {
		t.Error(a)
	}
	event, err := json.Marshal(map[string]any{
		"version": "2.0", "rawPath": "/token", "body": `{"proctor_id": "` + d.id + `", "purpose": "run"}`,
		"headers":        map[string]string{"authorization": "Bearer " + d.good(t), "content-type": "application/json"},
		"requestContext": map[string]any{"http": map[string]string{"method": "POST"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := d.h.Lambda(context.Background(), event); err != nil || out.StatusCode != http.StatusOK || out.Headers["cache-control"] != "no-store" {
		t.Errorf("%+v, %v", out, err)
	}
}

// labDesk is a desk whose run is a GitLab project's; its issuer signs for GitLab beside another for GitHub.
func newLabDesk(t *testing.T, changes ...func(*webhook.Config)) (d *desk, hub *oidctest.Issuer) {
	t.Helper()
	d, hub = &desk{issuer: oidctest.New(t), id: trigger.NewID("a label event")}, oidctest.New(t)
	clock := claimtest.NewClock()
	var issuers oidc.Any
	for _, i := range []*oidctest.Issuer{hub, d.issuer} {
		v, err := oidc.New(oidc.Config{Issuer: i.URL, Audience: hookAddress, Now: clock.Now, HTTP: &http.Client{Timeout: time.Minute}})
		if err != nil {
			t.Fatal(err)
		}
		issuers = append(issuers, v)
	}
	d.rig = newRig(t, func(c *webhook.Config) {
		c.Now, c.Store = clock.Now, webhook.NewMemory(clock.Now)
		c.Exchange = &webhook.Exchange{Verify: issuers.Verify, Mint: d.mint, GitLab: d.issuer.URL}
		for _, change := range changes {
			change(c)
		}
	})
	d.clock = clock
	c, err := d.store.Claim(t.Context(), webhook.Claim{ID: d.id, File: "proctor.yml", Issue: 7, To: webhook.Target{
		Forge: trigger.GitLab, Repo: trigger.Repo{Owner: "group/sub", Name: "shop", ID: 5, DefaultBranch: "main"},
	}}, time.Hour)
	if err == nil {
		err = d.store.Mark(t.Context(), d.id, c.Attempt, webhook.Dispatched, time.Hour)
	}
	if err != nil {
		t.Fatal(err)
	}
	d.w.runs, d.w.refs = []map[string]string{{trigger.InputID: d.id}}, []string{"main"} // pipeline 1 of the world
	return d, hub
}

// labClaims are those of the run's own job, as GitLab writes them.
func (d *desk) labClaims() map[string]any {
	now := d.clock.Now().Unix()
	_, host, _ := strings.Cut(d.issuer.URL, "://")
	return map[string]any{
		"iss": d.issuer.URL, "aud": hookAddress, "iat": now, "nbf": now - 5, "exp": now + 4500, "sub": "project_path:group/sub/shop:ref_type:branch:ref:main", "jti": "j",
		"namespace_id": "72", "namespace_path": "group/sub", "project_id": "5", "project_path": "group/sub/shop", "user_id": "1", "user_login": "ann", "user_email": "ann@example.com",
		"pipeline_id": "1", "pipeline_source": "trigger", "job_id": "302", "ref": "main", "ref_type": "branch", "ref_path": "refs/heads/main", "ref_protected": "true",
		"runner_id": 1, "sha": "abc", "ci_config_ref_uri": host + "/group/sub/shop//.gitlab-ci.yml@refs/heads/main", "ci_config_sha": "abc", "project_visibility": "private",
	}
}

// INV-47 on GitLab: the run's own job gets a token for its project, once, and whoever is not it gets none.
func TestOnGitLabOnlyTheRunGetsAToken(t *testing.T) {
	t.Parallel()
	claim := func(name string, value any) func(*desk, map[string]any) {
		return func(_ *desk, c map[string]any) {
			if c[name] = value; value == nil {
				delete(c, name)
			}
		}
	}
	config := func(rest string) func(*desk, map[string]any) {
		return func(d *desk, c map[string]any) {
			_, host, _ := strings.Cut(d.issuer.URL, "://")
			c["ci_config_ref_uri"] = strings.ReplaceAll(rest, "HOST", host)
		}
	}
	const identity, job, run = "401 invalid identity", "403 refused other_job", "403 refused other_run"
	for name, c := range map[string]struct {
		change func(*desk, map[string]any)
		want   string
	}{
		"control":                       {func(*desk, map[string]any) {}, "200 issued "},
		"control: by the API":           {claim("pipeline_source", "api"), "200 issued "},
		"control: a file of its own":    {config("HOST/group/sub/shop//ci/all.yml@refs/heads/main"), "200 issued "},
		"another audience":              {claim("aud", "https://vault.example"), identity},
		"another issuer":                {claim("iss", "https://gitlab.com"), identity},
		"expired":                       {claim("exp", 1), identity},
		"another project":               {claim("project_id", "6"), job},
		"no project":                    {claim("project_id", nil), job},
		"another name":                  {claim("project_path", "group/sub/shed"), job},
		"a push":                        {claim("pipeline_source", "push"), job},
		"a merge request's":             {claim("pipeline_source", "merge_request_event"), job},
		"nothing said of its source":    {claim("pipeline_source", nil), job},
		"another branch":                {claim("ref", "mine"), job},
		"a tag of that name":            {claim("ref_type", "tag"), job},
		"a file of another project":     {config("HOST/group/mine//.gitlab-ci.yml@refs/heads/main"), job},
		"a file of another branch":      {config("HOST/group/sub/shop//.gitlab-ci.yml@refs/heads/mine"), job},
		"a file at another server":      {config("evil.example/group/sub/shop//.gitlab-ci.yml@refs/heads/main"), job},
		"a branch in the file's name":   {config("HOST/group/sub/shop//x@refs/heads/main@refs/heads/mine"), job},
		"no file":                       {claim("ci_config_ref_uri", nil), job},
		"another pipeline":              {claim("pipeline_id", "2"), run},
		"no pipeline":                   {claim("pipeline_id", nil), run},
		"a pipeline of another branch":  {func(d *desk, _ map[string]any) { d.w.refs = []string{"mine"} }, run},
		"a pipeline the forge has not":  {func(d *desk, _ map[string]any) { d.w.runs = nil }, run},
		"a pipeline that is over":       {func(d *desk, _ map[string]any) { d.w.over = true }, run},
		"a run id instead of its own":   {func(_ *desk, c map[string]any) { c["run_id"] = c["pipeline_id"]; delete(c, "pipeline_id") }, run},
		"the issuer's keys are not had": {func(d *desk, _ map[string]any) { d.issuer.Set(nil, nil, true) }, "503 retry issuer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, _ := newLabDesk(t)
			claims := d.labClaims()
			c.change(d, claims)
			token := oidctest.Sign(t, d.issuer.RSA, d.header(), claims)
			a := d.ask(token)
			if a.String() != c.want {
				t.Errorf("%s, want %s; log %s", a, c.want, d.log.String())
			}
			if good := a.Code == http.StatusOK; good != (len(d.minted) == 1) || good && (d.minted[0].Forge != trigger.GitLab || d.ask(token).String() != "403 refused used") {
				t.Errorf("%d tokens made: %+v", len(d.minted), d.minted)
			}
		})
	}
}

// reads is a world that reads one run by its id, and where looking for one takes longer than anybody has.
type reads struct {
	*world
	asked []int64
}

func (w *reads) FindRun(context.Context, string, string, string, time.Time) (forge.Run, error) {
	return forge.Run{}, context.DeadlineExceeded
}

func (w *reads) DispatchedRun(ctx context.Context, id int64, branch, correlation string, since time.Time) (forge.Run, error) {
	w.asked = append(w.asked, id)
	r, err := w.world.FindRun(ctx, "", branch, correlation, since)
	if err == nil && r.ID != id {
		return forge.Run{}, forge.ErrNotFound
	}
	return r, err
}

// INV-47: the pipeline that the identity names is looked at, and no other, however many were started since.
func TestTheExchangeLooksAtThePipelineThatTheIdentityNames(t *testing.T) {
	t.Parallel()
	for pipeline, want := range map[string]string{"1": "200 issued ", "2": "403 refused other_run"} {
		w := &reads{}
		d, _ := newLabDesk(t, func(c *webhook.Config) {
			c.Connect = func(context.Context, webhook.Target) (webhook.Forge, error) { return w, nil }
		})
		w.world = d.w
		claims := d.labClaims()
		claims["pipeline_id"] = pipeline
		if a := d.ask(oidctest.Sign(t, d.issuer.RSA, d.header(), claims)); a.String() != want || len(w.asked) != 1 {
			t.Errorf("INV-47 pipeline %s: %s after looks at %v, want %s", pipeline, a, w.asked, want)
		}
	}
}

// INV-47: either forge's jobs stand for runs of that forge alone, whatever their tokens say beside that.
func TestAJobOfOneForgeIsNoRunOfTheOther(t *testing.T) {
	t.Parallel()
	d, hub := newLabDesk(t)
	both := d.labClaims()
	for k, v := range d.claims() {
		both[k] = v
	}
	both["iss"] = hub.URL
	if a := d.ask(oidctest.Sign(t, hub.RSA, d.header(), both)); a.String() != "403 refused other_run" || len(d.minted) != 0 {
		t.Errorf("a GitHub job for a GitLab run: %s", a)
	}
	both["iss"] = d.issuer.URL
	d.claim(t, trigger.NewID("on GitHub"), webhook.Running, 34)
	lab := d.id
	d.id = trigger.NewID("on GitHub")
	if a := d.ask(oidctest.Sign(t, d.issuer.RSA, d.header(), both)); a.String() != "403 refused other_run" || len(d.minted) != 0 {
		t.Errorf("a GitLab job for a GitHub run: %s", a)
	}
	// Signed by GitHub's key with GitLab's name: the issuer that it names has no such signature.
	d.id = lab
	if a := d.ask(oidctest.Sign(t, hub.EC, map[string]any{"alg": "ES256", "kid": "ec"}, both)); a.String() != "401 invalid identity" {
		t.Errorf("another issuer's signature: %s", a)
	}
	if a := d.ask(oidctest.Sign(t, d.issuer.RSA, d.header(), d.labClaims())); a.Code != http.StatusOK {
		t.Errorf("control: %s", a)
	}
}
