package aws

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Signer signs with an RSA key that never leaves KMS.
type Signer struct {
	c   *Client
	key string
}

// NewSigner takes a key's id, its ARN, or an alias ("alias/…"). It sends nothing.
func NewSigner(c *Client, key string) (*Signer, error) {
	if parts := strings.Split(key, ":"); strings.HasPrefix(key, "arn:") && (len(parts) < 6 || parts[2] != "kms" || parts[3] != c.cfg.Region) {
		return nil, fmt.Errorf("%q is no key of KMS in the region %s: give the id or the ARN of a key there", key, c.cfg.Region)
	}
	return &Signer{c, key}, nil
}

var kms = service{name: "kms", target: "TrentService", version: "1.1"}

// algorithm is what GitHub's RS256 is in KMS's words.
const algorithm = "RSASSA_PKCS1_V1_5_SHA_256"

// Sign gives the signature of a SHA-256 digest.
// https://docs.aws.amazon.com/kms/latest/APIReference/API_Sign.html
func (s *Signer) Sign(ctx context.Context, digest []byte) ([]byte, error) {
	var out struct {
		Signature        []byte
		SigningAlgorithm string
	}
	err := s.c.call(ctx, kms, "Sign", map[string]any{"KeyId": s.key, "Message": digest, "MessageType": "DIGEST", "SigningAlgorithm": algorithm}, &out)
	switch {
	case is(err, "AccessDeniedException"):
		return nil, fmt.Errorf("%w: allow kms:Sign on %s to the role that the webhook runs as", err, s.key)
	case is(err, "NotFoundException"):
		return nil, fmt.Errorf("%w: check the key's id and region", err)
	case is(err, "DisabledException"), is(err, "KMSInvalidStateException"):
		return nil, fmt.Errorf("%w: enable %s, and import its material if that has not been done", err, s.key)
	case is(err, "InvalidKeyUsageException"):
		return nil, fmt.Errorf("%w: %s has to be an RSA_2048 key for SIGN_VERIFY", err, s.key)
	case err != nil:
		return nil, err
	case out.SigningAlgorithm != algorithm || len(out.Signature) == 0:
		return nil, errors.New("Sign: the answer holds no signature by " + algorithm)
	}
	return out.Signature, nil
}
