package main

import (
	"crypto/rand"
	"crypto/rsa"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/webhook/ghapp"
)

// INV-47: half a configuration exchanges nothing and says what is missing.
func TestTheExchangeIsSetUpWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	app, err := ghapp.New(ghapp.Config{AppID: 12, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	const here = "https://hook.example/token"
	for name, c := range map[string]struct {
		vars map[string]string
		app  *ghapp.App
		set  bool
		want string
	}{
		"nothing set":             {nil, app, false, ""},
		"set":                     {map[string]string{"PROCTOR_TOKEN_AUDIENCE": here}, app, true, ""},
		"Enterprise Server":       {map[string]string{"PROCTOR_TOKEN_AUDIENCE": here, "GITHUB_API_URL": "https://ghe.example/api/v3", "PROCTOR_OIDC_ISSUER": "https://ghe.example/_services/token"}, app, true, ""},
		"no App":                  {map[string]string{"PROCTOR_TOKEN_AUDIENCE": here}, nil, false, "GITHUB_APP_ID"},
		"no audience":             {map[string]string{"PROCTOR_TOKEN_ENVIRONMENT": "agents"}, app, false, "PROCTOR_TOKEN_AUDIENCE"},
		"Enterprise, its issuer":  {map[string]string{"PROCTOR_TOKEN_AUDIENCE": here, "GITHUB_API_URL": "https://ghe.example/api/v3"}, app, false, "PROCTOR_OIDC_ISSUER"},
		"an issuer in plain HTTP": {map[string]string{"PROCTOR_TOKEN_AUDIENCE": here, "PROCTOR_OIDC_ISSUER": "http://ghe.example"}, app, false, "https"},
	} {
		x, err := exchange(env{getenv: func(k string) string { return c.vars[k] }}, c.app)
		if (x != nil) != c.set || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v", name, x, err)
		}
	}
}
