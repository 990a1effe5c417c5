package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Header names in the form that net/http keeps them in.
const (
	headerHubSignature = "X-Hub-Signature-256"
	headerHubEvent     = "X-Github-Event"
	headerHubDelivery  = "X-Github-Delivery"
	headerLabToken     = "X-Gitlab-Token"
	headerLabEvent     = "X-Gitlab-Event"
	headerLabKey       = "Idempotency-Key"
	headerHookID       = "Webhook-Id"
	headerHookTime     = "Webhook-Timestamp"
	headerHookSig      = "Webhook-Signature"
)

// signingTolerance is how far a signed time may be from ours.
// https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
const signingTolerance = 5 * time.Minute

// one is a header's value when it was sent exactly once.
func one(h http.Header, name string) (string, bool) {
	v := h[name]
	if len(v) != 1 {
		return "", false
	}
	return v[0], true
}

// validGitHub checks the signature over the raw body. The algorithm is never read from the header, the
// digest is exactly 64 lower-case hex digits, SHA-1 alone is nothing, and every secret is tried
// whatever the first one said.
// https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
func validGitHub(secrets []string, h http.Header, body []byte) bool {
	v, ok := one(h, headerHubSignature)
	if !ok {
		return false
	}
	digest, ok := strings.CutPrefix(v, "sha256=")
	if !ok || len(digest) != hex.EncodedLen(sha256.Size) || strings.ToLower(digest) != digest {
		return false
	}
	got, err := hex.DecodeString(digest)
	if err != nil {
		return false
	}
	valid := 0
	for _, s := range secrets {
		mac := hmac.New(sha256.New, []byte(s))
		mac.Write(body)
		valid |= subtle.ConstantTimeCompare(mac.Sum(nil), got)
	}
	return valid == 1
}

// validGitLab accepts a signature by one of the signing keys or one of the plain tokens. A signature
// that is there must hold wherever signing keys are set: a token beside it does not excuse it.
func (h *Handler) validGitLab(hd http.Header, body []byte) bool {
	if len(h.signing) > 0 && len(hd[headerHookSig]) > 0 {
		return validSigned(h.signing, hd, body, h.cfg.Now())
	}
	token, ok := one(hd, headerLabToken)
	if !ok {
		return false
	}
	// Digests have one length, so that the comparison tells nothing about the token's.
	got := sha256.Sum256([]byte(token))
	valid := 0
	for _, t := range h.cfg.GitLabTokens {
		want := sha256.Sum256([]byte(t))
		valid |= subtle.ConstantTimeCompare(got[:], want[:])
	}
	return valid == 1
}

func validSigned(keys [][]byte, h http.Header, body []byte, now time.Time) bool {
	id, ok1 := one(h, headerHookID)
	at, ok2 := one(h, headerHookTime)
	sigs, ok3 := one(h, headerHookSig)
	if !ok1 || !ok2 || !ok3 || id == "" {
		return false
	}
	sec, err := strconv.ParseInt(at, 10, 64)
	if err != nil || now.Sub(time.Unix(sec, 0)).Abs() > signingTolerance {
		return false
	}
	valid := 0
	for _, k := range keys {
		mac := hmac.New(sha256.New, k)
		mac.Write([]byte(id + "." + at + "."))
		mac.Write(body)
		want := mac.Sum(nil)
		for _, s := range strings.Fields(sigs) {
			b64, ok := strings.CutPrefix(s, "v1,")
			if !ok {
				continue
			}
			if got, err := base64.StdEncoding.Strict().DecodeString(b64); err == nil {
				valid |= subtle.ConstantTimeCompare(got, want)
			}
		}
	}
	return valid == 1
}

func signingKey(s string) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(strings.TrimSpace(s), "whsec_"))
	if err != nil || len(key) < minSecret {
		return nil, errors.New(`the GitLab signing token is not a key: copy it whole from the webhook's page, "whsec_" included`)
	}
	return key, nil
}
