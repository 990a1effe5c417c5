package ghapp

import (
	"bytes"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// minKeyBits is what GitHub makes; less is not an App's key.
const minKeyBits = 2048

// ErrKey is a private key that cannot be used. No message of this package carries a part of the key.
var ErrKey = errors.New("the App's private key cannot be read: give the whole .pem file GitHub let you download, as it is, with \\n for its line ends, or in base64")

// ParseKey reads an RSA private key as people paste it: PEM in PKCS#1 or PKCS#8, with real or escaped line ends, in
// quotes, or the whole in base64.
func ParseKey(raw []byte) (*rsa.PrivateKey, error) {
	text := strings.Trim(strings.TrimSpace(string(raw)), `"'`)
	text = strings.ReplaceAll(strings.ReplaceAll(text, `\r`, ""), `\n`, "\n")
	if !strings.Contains(text, "-----BEGIN") {
		decoded, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
		if err != nil {
			return nil, ErrKey
		}
		text = string(decoded)
	}
	block, rest := pem.Decode([]byte(text))
	if block == nil || len(bytes.TrimSpace(rest)) > 0 {
		return nil, ErrKey
	}
	key, err := parseBlock(block)
	if err != nil {
		return nil, err
	}
	if key.N.BitLen() < minKeyBits {
		return nil, fmt.Errorf("the App's private key has %d bits and GitHub's have %d: it is another key", key.N.BitLen(), minKeyBits)
	}
	return key, nil
}

func parseBlock(block *pem.Block) (*rsa.PrivateKey, error) {
	switch block.Type {
	case "RSA PRIVATE KEY":
		if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
			return key, nil
		}
	case "PRIVATE KEY":
		if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
			if rsaKey, ok := key.(*rsa.PrivateKey); ok {
				return rsaKey, nil
			}
			return nil, errors.New("the App's private key is not an RSA key: GitHub Apps have RSA keys")
		}
	case "ENCRYPTED PRIVATE KEY":
		return nil, errors.New("the App's private key is encrypted: decrypt it with `openssl rsa` first")
	case "PUBLIC KEY", "RSA PUBLIC KEY", "CERTIFICATE":
		return nil, fmt.Errorf("the App's private key is a %s: give the .pem file GitHub let you download", strings.ToLower(block.Type))
	}
	return nil, ErrKey
}
