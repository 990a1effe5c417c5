package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Digest is "sha256:…" over every value in force, defaults included: two files that mean the same
// have the same digest, and a new default changes it.
func Digest(c Config) string {
	data, err := json.Marshal(c)
	if err != nil {
		// Config holds texts, numbers and lists only.
		panic("config: marshal: " + err.Error())
	}
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}
