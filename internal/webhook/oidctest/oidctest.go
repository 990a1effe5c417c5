// Package oidctest plays an issuer of identity tokens on loopback. It signs whatever it is told to, right or wrong. It
// must never be linked into a program.
package oidctest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// Issuer is one. Its keys are "rsa" and "ec".
type Issuer struct {
	URL string
	RSA *rsa.PrivateKey
	EC  *ecdsa.PrivateKey

	mu      sync.Mutex
	keys    []map[string]string
	about   map[string]string
	down    bool
	fetched int
}

// rsaKey is the same for all issuers of a process: making one is slow.
var rsaKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

// New starts one; it ends with the test.
func New(t testing.TB) *Issuer {
	t.Helper()
	one, err := rsaKey()
	if err != nil {
		t.Fatal(err)
	}
	two, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &Issuer{RSA: one, EC: two, keys: []map[string]string{RSAKey("rsa", &one.PublicKey), ECKey("ec", &two.PublicKey)}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) { i.answer(w, i.about) })
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		i.answer(w, map[string]any{"keys": i.keys})
		i.mu.Lock()
		defer i.mu.Unlock()
		i.fetched++
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	i.URL = srv.URL
	i.about = map[string]string{"issuer": srv.URL, "jwks_uri": srv.URL + "/keys"}
	return i
}

func (i *Issuer) answer(w http.ResponseWriter, v any) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.down {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	_ = json.NewEncoder(w).Encode(v) // a verifier that hung up sees its own error
}

// Set replaces what is answered: the keys where they are not nil, members of the description, whether it answers at all.
func (i *Issuer) Set(keys []map[string]string, about map[string]string, down bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if keys != nil {
		i.keys = keys
	}
	for k, v := range about {
		i.about[k] = v
	}
	i.down = down
}

// Fetched counts how often the keys were read.
func (i *Issuer) Fetched() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.fetched
}

// RSAKey is a public key in the form of a key set.
func RSAKey(kid string, k *rsa.PublicKey) map[string]string {
	return map[string]string{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": kid, "n": b64(k.N.Bytes()), "e": b64(big.NewInt(int64(k.E)).Bytes())}
}

// ECKey is one on P-256.
func ECKey(kid string, k *ecdsa.PublicKey) map[string]string {
	var x, y [32]byte
	return map[string]string{"kty": "EC", "use": "sig", "alg": "ES256", "crv": "P-256", "kid": kid, "x": b64(k.X.FillBytes(x[:])), "y": b64(k.Y.FillBytes(y[:]))}
}

// Sign makes a token. The key's kind decides how it is signed, whatever the header says.
func Sign(t testing.TB, key crypto.Signer, header, claims map[string]any) string {
	t.Helper()
	text := part(t, header) + "." + part(t, claims)
	sum := sha256.Sum256([]byte(text))
	var sig []byte
	var err error
	switch k := key.(type) {
	case *rsa.PrivateKey:
		sig, err = rsa.SignPKCS1v15(rand.Reader, k, crypto.SHA256, sum[:])
	case *ecdsa.PrivateKey:
		r, s, serr := ecdsa.Sign(rand.Reader, k, sum[:])
		if err = serr; err == nil {
			sig = append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + b64(sig)
}

func part(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b64(b)
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
