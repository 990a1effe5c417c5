package oidc

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"sync"
	"time"
)

// Bounds of what is read from the issuer, and of how often. Keys are kept an hour, so that one that was withdrawn ends; a
// token with an unknown key makes us look once more, at most once a minute, whatever strangers send.
const (
	fetchTime = 3 * time.Second
	maxAnswer = 256 << 10
	maxKeys   = 50
	keepKeys  = time.Hour
	lookAgain = time.Minute
)

// keySet is the issuer's set of keys, as it was read last.
type keySet struct {
	issuer string
	http   *http.Client
	now    func() time.Time

	mu     sync.Mutex
	keys   map[string]key
	read   time.Time // when keys were read
	looked time.Time // when they were asked for last, with or without an answer
}

// find gives the key of that id. ErrRefused when the issuer has none.
func (s *keySet) find(ctx context.Context, kid string) (key, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	fresh := s.keys != nil && now.Sub(s.read) < keepKeys
	if k, ok := s.keys[kid]; ok && fresh {
		return k, nil
	}
	if !s.looked.IsZero() && now.Sub(s.looked) < lookAgain {
		if !fresh {
			return key{}, ErrUnavailable
		}
		return key{}, refused("its key is none of the issuer's")
	}
	s.looked = now
	keys, err := s.fetch(ctx)
	if err != nil {
		return key{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	s.keys, s.read = keys, now
	if k, ok := keys[kid]; ok {
		return k, nil
	}
	return key{}, refused("its key is none of the issuer's")
}

// fetch reads the set where the issuer's own description says that it is.
// https://openid.net/specs/openid-connect-discovery-1_0.html
func (s *keySet) fetch(ctx context.Context) (map[string]key, error) {
	var about struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	if err := s.get(ctx, s.issuer+"/.well-known/openid-configuration", &about); err != nil {
		return nil, err
	}
	if about.Issuer != s.issuer || !sameServer(about.Keys, s.issuer) {
		return nil, fmt.Errorf("%s describes another issuer, or has its keys elsewhere: check the address of the issuer", s.issuer)
	}
	var set struct {
		Keys []jwk `json:"keys"`
	}
	if err := s.get(ctx, about.Keys, &set); err != nil {
		return nil, err
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("%s has %d keys, and %d are read at the most", s.issuer, len(set.Keys), maxKeys)
	}
	out := map[string]key{}
	for _, j := range set.Keys {
		if k, ok := j.key(); ok && j.Kid != "" {
			out[j.Kid] = k
		}
	}
	return out, nil
}

func (s *keySet) get(ctx context.Context, address string, out any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	resp, err := s.http.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // it was read; nothing hangs on it
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers HTTP %d", address, resp.StatusCode)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(out); err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	return nil
}

// jwk is a key in the issuer's form. https://www.rfc-editor.org/rfc/rfc7518#section-6
type jwk struct {
	Kty, Kid, Use, Alg, Crv string
	N, E, X, Y              string
}

// smallest is the least that RS256 may be used with. https://www.rfc-editor.org/rfc/rfc7518#section-3.3
const smallest = 2048

// key gives it if it is one for signatures of ours; others of the set are left out.
func (j jwk) key() (key, bool) {
	if j.Use != "" && j.Use != "sig" {
		return key{}, false
	}
	switch {
	case j.Kty == "RSA" && (j.Alg == "" || j.Alg == "RS256"):
		n, e := number(j.N), number(j.E)
		if n == nil || e == nil || n.BitLen() < smallest || n.BitLen() > 4*smallest || !e.IsInt64() || e.Int64() < 3 || e.Int64() > 1<<31-1 || e.Bit(0) == 0 {
			return key{}, false
		}
		return key{alg: "RS256", rsa: &rsa.PublicKey{N: n, E: int(e.Int64())}}, true
	case j.Kty == "EC" && j.Crv == "P-256" && (j.Alg == "" || j.Alg == "ES256"):
		x, y := number(j.X), number(j.Y)
		if x == nil || y == nil {
			return key{}, false
		}
		k := &ecdsa.PublicKey{Curve: elliptic.P256(), X: x, Y: y}
		_, err := k.ECDH() // a point that is not on the curve has none
		return key{alg: "ES256", ec: k}, err == nil
	}
	return key{}, false
}

func number(s string) *big.Int {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) == 0 {
		return nil
	}
	return new(big.Int).SetBytes(b)
}
