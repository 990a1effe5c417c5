package ghapp

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/forge"
)

func newKey(t *testing.T, bits int) *rsa.PrivateKey {
	t.Helper()
	k, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func pemOf(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// E29: one throw-away key in every spelling people use.
func TestAKeyIsReadHoweverItWasPasted(t *testing.T) {
	t.Parallel()
	k := newKey(t, 2048)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	one := pemOf("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(k))
	eight := pemOf("PRIVATE KEY", pkcs8)
	for name, text := range map[string]string{
		"PKCS#1": one, "PKCS#8": eight,
		"escaped line ends":        strings.ReplaceAll(one, "\n", `\n`),
		"escaped CRLF":             strings.ReplaceAll(one, "\n", `\r\n`),
		"in quotes":                `"` + strings.ReplaceAll(eight, "\n", `\n`) + `"`,
		"base64":                   base64.StdEncoding.EncodeToString([]byte(one)),
		"base64 in lines":          strings.ReplaceAll(base64.StdEncoding.EncodeToString([]byte(eight)), "A", "A\n"),
		"with white space outside": "\n  " + one + "\n\n",
		"CRLF":                     strings.ReplaceAll(one, "\n", "\r\n"),
	} {
		got, err := ParseKey([]byte(text))
		if err != nil || !got.Equal(k) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatIsNoKeyIsRefusedWithoutBeingShown(t *testing.T) {
	t.Parallel()
	k := newKey(t, 2048)
	pub, err := x509.MarshalPKIXPublicKey(&k.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	one := pemOf("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(k))
	for name, c := range map[string]struct{ text, want string }{
		"empty":       {"", "cannot be read"},
		"words":       {"my-very-private-words", "cannot be read"},
		"cut":         {one[:len(one)/2], "cannot be read"},
		"two keys":    {one + one, "cannot be read"},
		"public key":  {pemOf("PUBLIC KEY", pub), "public key"},
		"small key":   {pemOf("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(newKey(t, 1024))), "1024 bits"},
		"encrypted":   {pemOf("ENCRYPTED PRIVATE KEY", []byte("x")), "encrypted"},
		"wrong block": {pemOf("RSA PRIVATE KEY", []byte("my-very-private-bytes")), "cannot be read"},
	} {
		_, err := ParseKey([]byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if err != nil && (strings.Contains(err.Error(), "my-very") || strings.Contains(err.Error(), "MII")) {
			t.Errorf("%s: the message shows the key: %v", name, err)
		}
	}
}

// tokenServer is the token endpoint and one API call.
type tokenServer struct {
	*httptest.Server
	mu     sync.Mutex
	status int
	said   string // beside a refusal
	asked  []map[string]any
	jwts   []string
	auth   []string
}

func newGitHub(t *testing.T) *tokenServer {
	t.Helper()
	g := &tokenServer{status: http.StatusCreated}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v3/app/installations/{id}/access_tokens", func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		defer g.mu.Unlock()
		var in map[string]any
		_ = json.NewDecoder(r.Body).Decode(&in)
		g.asked = append(g.asked, in)
		g.jwts = append(g.jwts, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		w.WriteHeader(g.status)
		if g.status != http.StatusCreated {
			_ = json.NewEncoder(w).Encode(map[string]any{"message": g.said})
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"token": "installation-" + r.PathValue("id"), "expires_at": time.Now().Add(time.Hour)})
	})
	mux.HandleFunc("GET /api/v3/ok", func(_ http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.auth = append(g.auth, r.Header.Get("Authorization"))
	})
	g.Server = httptest.NewServer(mux)
	t.Cleanup(g.Close)
	return g
}

func TestATokenIsForOneRepositoryWithTheLeastPermissions(t *testing.T) {
	t.Parallel()
	g, key := newGitHub(t), newKey(t, 2048)
	now := time.Now().Truncate(time.Second)
	app, err := New(Config{BaseURL: g.URL + "/api/v3/", AppID: 12, Key: key, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		c, err := app.Client(context.Background(), 34, "octo", "shop")
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Get(g.URL + "/api/v3/ok")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	want := []map[string]any{{"repositories": []any{"shop"}, "permissions": map[string]any{"metadata": "read", "issues": "write", "actions": "write"}}}
	if d := cmp.Diff(want, g.asked); d != "" {
		t.Errorf("asked for (once, for two clients): %s", d)
	}
	if d := cmp.Diff([]string{"token installation-34", "token installation-34"}, g.auth); d != "" {
		t.Error(d)
	}
	if _, err := app.PullsClient(context.Background(), 34, "octo", "shop"); err != nil {
		t.Fatal(err)
	}
	want = append(want, map[string]any{"repositories": []any{"shop"}, "permissions": map[string]any{"metadata": "read", "pull_requests": "read"}})
	if d := cmp.Diff(want, g.asked); d != "" {
		t.Errorf("asked for, to count pull requests: %s", d)
	}
	// E30: a clock that runs ahead by less than a minute does no harm.
	var claims jwt.RegisteredClaims
	if _, err := jwt.ParseWithClaims(g.jwts[0], &claims, func(*jwt.Token) (any, error) { return &key.PublicKey, nil }); err != nil {
		t.Fatal(err)
	}
	if claims.Issuer != "12" || !claims.IssuedAt.Equal(now.Add(-time.Minute)) || claims.ExpiresAt.Sub(now) >= 10*time.Minute || claims.ExpiresAt.Sub(claims.IssuedAt.Time) > 10*time.Minute {
		t.Errorf("claims %+v", claims)
	}
	app.Forget(34)
	if _, err := app.Client(context.Background(), 34, "octo", "shop"); err != nil || len(g.asked) != 3 {
		t.Errorf("after Forget: %v, %d tokens asked for, want 3", err, len(g.asked))
	}
}

// E28, and the other ways a token request ends.
func TestARefusedTokenIsNamedByWhatMendsIt(t *testing.T) {
	t.Parallel()
	g, key := newGitHub(t), newKey(t, 2048)
	for _, c := range []struct {
		status int
		said   string
		want   error
	}{
		{403, "", ErrNotInstalled}, {404, "", ErrNotInstalled}, {401, "", forge.ErrUnauthorized}, {429, "", forge.ErrRateLimited}, {500, "", forge.ErrUnavailable},
		{422, "", forge.ErrForbidden},
		{422, "The permissions requested are not granted to this installation.", forge.ErrForbidden},
		{422, "There is at least one repository that does not exist or is not accessible to the parent installation.", ErrNotInstalled},
	} {
		app, err := New(Config{BaseURL: g.URL + "/api/v3", AppID: 12, Key: key})
		if err != nil {
			t.Fatal(err)
		}
		g.mu.Lock()
		g.status, g.said = c.status, c.said
		g.mu.Unlock()
		if _, err := app.Client(context.Background(), 34, "octo", "shop"); !errors.Is(err, c.want) {
			t.Errorf("%d %s: %v, want %v", c.status, c.said, err, c.want)
		}
		if _, _, err := app.RunToken(context.Background(), 34, 5); !errors.Is(err, c.want) {
			t.Errorf("a run's token, %d %s: %v, want %v", c.status, c.said, err, c.want)
		}
		if _, err := app.Client(context.Background(), 0, "octo", "shop"); !errors.Is(err, ErrNotInstalled) {
			t.Errorf("no installation: %v", err)
		}
	}
}

// A key that is kept elsewhere costs a call for each signature, and may be out of reach: what needs no signature asks for none.
func TestAnInstallationsTokenThatIsGoodNeedsNoSignature(t *testing.T) {
	t.Parallel()
	g, key := newGitHub(t), newKey(t, 2048)
	now := time.Now()
	var asked int
	var fault error
	app, err := New(Config{BaseURL: g.URL + "/api/v3", AppID: 12, Now: func() time.Time { return now }, Sign: func(_ context.Context, digest []byte) ([]byte, error) {
		asked++
		if fault != nil {
			return nil, fault
		}
		return rsa.SignPKCS1v15(nil, key, crypto.SHA256, digest)
	}})
	if err != nil {
		t.Fatal(err)
	}
	deliver := func(install int64) error {
		c, err := app.Client(t.Context(), install, "octo", "shop")
		if err != nil {
			return err
		}
		resp, err := c.Get(g.URL + "/api/v3/ok")
		if err != nil {
			return err
		}
		return resp.Body.Close()
	}
	if err := deliver(34); err != nil || asked != 1 {
		t.Fatalf("the first delivery: %v after %d signatures", err, asked)
	}
	// The App's own token runs out long before the installation's.
	now, fault = now.Add(30*time.Minute), errors.New("KMS is away")
	for range 3 {
		if err := deliver(34); err != nil || asked != 1 {
			t.Errorf("with a token that is good: %v after %d signatures", err, asked)
		}
	}
	// The control: whatever is asked for as the App needs one, and says why it has none.
	_, _, run := app.RunToken(t.Context(), 34, 5)
	_, _, log := app.Attempts(t.Context(), now)
	for name, err := range map[string]error{"another installation": deliver(35), "a run's token": run, "the log": log, "a redelivery": app.Redeliver(t.Context(), 7)} {
		if !errors.Is(err, fault) || !strings.HasPrefix(err.Error(), "sign as the App: ") {
			t.Errorf("%s without a key: %v", name, err)
		}
	}
	if fault = nil; deliver(35) != nil || asked != 6 || len(g.jwts) != 2 || g.jwts[0] == g.jwts[1] {
		t.Errorf("once the key is there again: %d signatures, %d tokens asked for", asked, len(g.jwts))
	}
}

// What GitHub says of one delivery is told apart from what it would say of any.
func TestARefusedRedeliveryIsToldFromAForgeThatIsAway(t *testing.T) {
	t.Parallel()
	g := newGitHub(t)
	var status atomic.Int64
	g.Config.Handler.(*http.ServeMux).HandleFunc("POST /api/v3/app/hook/deliveries/7/attempts", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(status.Load())) })
	app, err := New(Config{BaseURL: g.URL + "/api/v3", AppID: 12, Key: newKey(t, 2048)})
	if err != nil {
		t.Fatal(err)
	}
	for code, want := range map[int64]error{
		202: nil, 400: forge.ErrInvalid, 404: forge.ErrNotFound, 422: forge.ErrInvalid,
		401: forge.ErrUnauthorized, 403: forge.ErrRateLimited, 429: forge.ErrRateLimited, 500: forge.ErrUnavailable,
	} {
		status.Store(code)
		if err := app.Redeliver(t.Context(), 7); !errors.Is(err, want) {
			t.Errorf("%d: %v, want %v", code, err, want)
		}
	}
}

// INV-21: the control is that the same client reaches its own host.
func TestATokenNeverGoesToAnotherHost(t *testing.T) {
	t.Parallel()
	var leaked []string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { leaked = append(leaked, r.Header.Get("Authorization")) }))
	t.Cleanup(other.Close)
	g, key := newGitHub(t), newKey(t, 2048)
	g.Config.Handler.(*http.ServeMux).HandleFunc("GET /api/v3/away", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, http.StatusFound) })
	app, err := New(Config{BaseURL: g.URL + "/api/v3", AppID: 12, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	c, err := app.Client(context.Background(), 34, "octo", "shop")
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range []string{other.URL, g.URL + "/api/v3/away"} {
		resp, err := c.Get(u)
		if err == nil {
			_ = resp.Body.Close()
			t.Errorf("INV-21 %s answered", u)
		}
	}
	if len(leaked) != 0 {
		t.Errorf("INV-21 the other host was asked with %q", leaked)
	}
	resp, err := c.Get(g.URL + "/api/v3/ok")
	if err != nil {
		t.Fatalf("control: %v", err)
	}
	_ = resp.Body.Close()
}

// INV-47: what a run gets is for one repository, by its id, with the permissions that a run needs, and is kept nowhere.
func TestARunsTokenIsForOneRepositoryById(t *testing.T) {
	t.Parallel()
	g := newGitHub(t)
	app, err := New(Config{BaseURL: g.URL + "/api/v3", AppID: 12, Key: newKey(t, 2048)})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		token, expires, err := app.RunToken(t.Context(), 34, 5)
		if err != nil || token != "installation-34" || expires.IsZero() {
			t.Fatalf("%q %v %v", token, expires, err)
		}
	}
	one := map[string]any{
		"repository_ids": []any{5.0},
		"permissions":    map[string]any{"metadata": "read", "contents": "write", "issues": "write", "pull_requests": "write", "actions": "read"},
	}
	if d := cmp.Diff([]map[string]any{one, one}, g.asked); d != "" {
		t.Error(d)
	}
	for _, ids := range [][2]int64{{0, 5}, {34, 0}} {
		if _, _, err := app.RunToken(t.Context(), ids[0], ids[1]); !errors.Is(err, ErrNotInstalled) {
			t.Errorf("%v: %v", ids, err)
		}
	}
	if len(g.asked) != 2 {
		t.Error("a token was asked for without an installation or a repository")
	}
}
