package secureurl

import (
	"net/url"
	"testing"
)

func TestASecretGoesOverTLSOrStaysHere(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]bool{
		"https://forge.example":             true,
		"https://forge.example:8443/a?b":    true,
		"http://127.0.0.1:3000":             true,
		"http://127.9.8.7":                  true,
		"http://[::1]:80/a":                 true,
		"http://localhost:3000":             true,
		"http://forge.example":              false,
		"http://10.0.0.1":                   false,
		"http://localhost.example":          false,
		"http://127.0.0.1.example":          false,
		"http://[::ffff:10.0.0.1]":          false,
		"https://user:secret@forge.example": false,
		"http://user@127.0.0.1":             false,
		"https://":                          false,
		"https:forge.example":               false,
		"ftp://127.0.0.1":                   false,
		"file:///etc":                       false,
		"/token":                            false,
	} {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		if Safe(u) != want {
			t.Errorf("Safe(%s) = %v", raw, !want)
		}
	}
}
