package oidc_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/webhook/oidc"
	"github.com/proctor-ci/proctor/internal/webhook/oidctest"
)

type bench struct {
	*oidctest.Issuer
	v   *oidc.Verifier
	now time.Time
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{Issuer: oidctest.New(t), now: time.Unix(1_800_000_000, 0)}
	v, err := oidc.New(oidc.Config{Issuer: b.URL, Audience: "here", Now: func() time.Time { return b.now }, HTTP: &http.Client{Timeout: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	b.v = v
	return b
}

func (b *bench) verify(t *testing.T, kid string) error {
	t.Helper()
	token := oidctest.Sign(t, b.RSA, map[string]any{"alg": "RS256", "kid": kid}, map[string]any{"iss": b.URL, "aud": "here", "exp": b.now.Unix() + 60, "run_id": "1"})
	_, err := b.v.Verify(context.Background(), token)
	return err
}

// INV-47: strangers cannot make us ask the issuer, a new key is found, a withdrawn one ends.
func TestKeysAreReadAgainWithinBounds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for range 50 {
		if err := b.verify(t, "rsa"); err != nil {
			t.Fatal(err)
		}
		if err := b.verify(t, "unknown"); !errors.Is(err, oidc.ErrRefused) {
			t.Fatal(err)
		}
	}
	if n := b.Fetched(); n != 1 {
		t.Errorf("keys were read %d times, want once", n)
	}
	b.Set([]map[string]string{oidctest.RSAKey("next", &b.RSA.PublicKey)}, nil, false)
	b.now = b.now.Add(2 * time.Minute)
	if err := b.verify(t, "next"); err != nil || b.Fetched() != 2 {
		t.Errorf("after a rotation: %v, read %d times", err, b.Fetched())
	}
	if err := b.verify(t, "rsa"); !errors.Is(err, oidc.ErrRefused) {
		t.Errorf("a withdrawn key: %v", err)
	}
	b.Set(nil, nil, true)
	b.now = b.now.Add(30 * time.Minute)
	if err := b.verify(t, "next"); err != nil {
		t.Errorf("the issuer is down, and the keys are half an hour old: %v", err)
	}
	b.now = b.now.Add(31 * time.Minute)
	for range 2 {
		if err := b.verify(t, "next"); !errors.Is(err, oidc.ErrUnavailable) || errors.Is(err, oidc.ErrRefused) {
			t.Errorf("keys that nobody can confirm: %v", err)
		}
	}
}

// INV-47: what is no key for our signatures is none, whoever lists it.
func TestWeakAndBrokenKeysAreLeftOut(t *testing.T) {
	t.Parallel()
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t)
	for name, change := range map[string]func(k map[string]string){
		"1024 bits":         func(k map[string]string) { k["n"] = oidctest.RSAKey("", &weak.PublicKey)["n"] },
		"exponent 1":        func(k map[string]string) { k["e"] = "AQ" },
		"even exponent":     func(k map[string]string) { k["e"] = "BA" },
		"no modulus":        func(k map[string]string) { k["n"] = "" },
		"not base64":        func(k map[string]string) { k["n"] = "!" },
		"another algorithm": func(k map[string]string) { k["alg"] = "RS512" },
		"symmetric":         func(k map[string]string) { k["kty"] = "oct" },
	} {
		k := oidctest.RSAKey("rsa", &b.RSA.PublicKey)
		change(k)
		b.Set([]map[string]string{k}, nil, false)
		b.now = b.now.Add(2 * time.Hour)
		if err := b.verify(t, "rsa"); !errors.Is(err, oidc.ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Signed with the weak key itself: only its size speaks against it.
	b.Set([]map[string]string{oidctest.RSAKey("rsa", &weak.PublicKey)}, nil, false)
	b.now, b.RSA = b.now.Add(2*time.Hour), weak
	if err := b.verify(t, "rsa"); !errors.Is(err, oidc.ErrRefused) {
		t.Errorf("a key of 1024 bits: %v", err)
	}
	k := oidctest.ECKey("ec", &b.EC.PublicKey)
	token := func() string {
		return oidctest.Sign(t, b.EC, map[string]any{"alg": "ES256", "kid": "ec"}, map[string]any{"iss": b.URL, "aud": "here", "exp": b.now.Unix() + 60})
	}
	for _, c := range []struct {
		x    string
		good bool
	}{{k["x"], true}, {"AQ", false}} {
		k["x"] = c.x
		b.Set([]map[string]string{k}, nil, false)
		b.now = b.now.Add(2 * time.Hour)
		if _, err := b.v.Verify(context.Background(), token()); (err == nil) != c.good {
			t.Errorf("x %s: %v", c.x, err)
		}
	}
}

func TestTheIssuerHasToBeAnHTTPSAddress(t *testing.T) {
	t.Parallel()
	for issuer, good := range map[string]bool{
		oidc.GitHub: true, "https://ghe.example/_services/token": true, "http://127.0.0.1:9": true,
		"": false, "http://ghe.example": false, "https://ghe.example/": false, "https://u:p@ghe.example": false, "https://ghe.example?x": false, "ghe.example": false,
	} {
		if _, err := oidc.New(oidc.Config{Issuer: issuer, Audience: "here"}); (err == nil) != good {
			t.Errorf("%q: %v", issuer, err)
		}
	}
	for _, audience := range []string{"", " here"} {
		if _, err := oidc.New(oidc.Config{Issuer: oidc.GitHub, Audience: audience}); err == nil {
			t.Errorf("audience %q was taken", audience)
		}
	}
}

// Whatever a stranger sends is refused, without a panic and without a look at the issuer's keys where its form is wrong.
func FuzzVerify(f *testing.F) {
	for _, s := range []string{"", "..", "a.b.c", "eyJhbGciOiJub25lIn0.e30.", "eyJhbGciOiJSUzI1NiIsImtpZCI6InJzYSJ9.e30.AA"} {
		f.Add(s)
	}
	issuer := oidctest.New(f)
	v, err := oidc.New(oidc.Config{Issuer: issuer.URL, Audience: "here"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, token string) {
		if _, err := v.Verify(t.Context(), token); err == nil {
			t.Errorf("%q is taken for good", token)
		}
	})
}
