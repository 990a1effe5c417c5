package secrets

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// The corpus is made up while the test runs: no value of it stands in this file, so that no scanner of our own
// repository has anything to find.

const (
	lowerHex = "0123456789abcdef"
	upper    = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits   = "0123456789"
	small    = "abcdefghijklmnopqrstuvwxyz"
	base62   = upper + small + digits
	base64ch = base62 + "+/"
	urlSafe  = base62 + "_-"
)

// maker draws values, the same ones in every run.
type maker struct{ r *rand.Rand }

func newMaker(seed uint64) maker { return maker{rand.New(rand.NewPCG(seed, 99))} }

// s draws n characters; the last is a letter or digit where the alphabet has more than hex.
func (m maker) s(alphabet string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[m.r.IntN(len(alphabet))]
	}
	if n > 1 && strings.ContainsAny(alphabet, "_-+/") {
		b[n-1] = base62[m.r.IntN(len(base62))]
		b[0] = base62[m.r.IntN(len(base62))]
	}
	return string(b)
}

func (m maker) uuid() string {
	h := m.s(lowerHex, 32)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

type kind struct {
	name  string
	value string // the credential
	line  string // as it stands in a file; "" means: name = "value"
}

func kinds(seed uint64) []kind {
	m := newMaker(seed)
	dash, under := "-", "_"
	key := "-----" + "BEGIN "
	pem := func(label string) string {
		var b strings.Builder
		b.WriteString(key + label + "-----\n")
		for range 12 {
			b.WriteString(m.s(base64ch, 64) + "\n")
		}
		return b.String() + "-----" + "END " + label + "-----\n"
	}
	ks := []kind{
		{name: "aws access key", value: "AK" + "IA" + m.s("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16)},
		{name: "aws session key", value: "AS" + "IA" + m.s("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16)},
		{name: "aws secret key", value: m.s(base64ch, 40), line: "aws_secret_access_key = %s"},
		{name: "github pat", value: "gh" + "p_" + m.s(base62, 36)},
		{name: "github oauth", value: "gh" + "o_" + m.s(base62, 36)},
		{name: "github user token", value: "gh" + "u_" + m.s(base62, 36)},
		{name: "github installation token", value: "gh" + "s_" + m.s(base62, 36)},
		{name: "github refresh token", value: "gh" + "r_" + m.s(base62, 76)},
		{name: "github fine-grained pat", value: "github" + "_pat_" + m.s(base62, 22) + "_" + m.s(base62, 59)},
		{name: "gitlab pat", value: "gl" + "pat-" + m.s(urlSafe, 20)},
		{name: "gitlab runner", value: "gl" + "rt-" + m.s(urlSafe, 20)},
		{name: "gitlab trigger", value: "gl" + "ptt-" + m.s(lowerHex, 40)},
		{name: "gitlab deploy", value: "gl" + "dt-" + m.s(urlSafe, 20)},
		{name: "anthropic", value: "sk" + "-ant-api03-" + m.s(urlSafe, 93) + "AA"},
		{name: "anthropic admin", value: "sk" + "-ant-admin01-" + m.s(urlSafe, 93) + "AA"},
		{name: "anthropic oauth", value: "sk" + "-ant-oat01-" + m.s(urlSafe, 93) + "AA"},
		{name: "openai", value: "sk" + "-proj-" + m.s(urlSafe, 74) + "T3Blbk" + "FJ" + m.s(urlSafe, 74)},
		{name: "openai service account", value: "sk" + "-svcacct-" + m.s(urlSafe, 110)},
		{name: "openrouter", value: "sk" + "-or-v1-" + m.s(lowerHex, 64)},
		{name: "groq", value: "gsk" + under + m.s(base62, 52)},
		{name: "xai", value: "xai" + dash + m.s(base62, 80)},
		{name: "hugging face", value: "hf" + under + m.s(upper+small, 34)},
		{name: "replicate", value: "r8" + under + m.s(base62, 37)},
		{name: "google api key", value: "AI" + "za" + m.s(urlSafe, 35)},
		{name: "google oauth secret", value: "GOC" + "SPX-" + m.s(urlSafe, 28)},
		{name: "google access token", value: "ya" + "29." + m.s(urlSafe, 120)},
		{name: "stripe live", value: "sk" + "_live_" + m.s(base62, 24)},
		{name: "stripe test", value: "sk" + "_test_" + m.s(base62, 24)},
		{name: "stripe restricted", value: "rk" + "_live_" + m.s(base62, 24)},
		{name: "stripe webhook", value: "wh" + "sec_" + m.s(base62, 32)},
		{name: "square", value: "sq0" + "csp-" + m.s(urlSafe, 43)},
		{name: "slack bot", value: "xo" + "xb-" + m.s(digits, 12) + dash + m.s(digits, 13) + dash + m.s(base62, 24)},
		{name: "slack user", value: "xo" + "xp-" + m.s(digits, 12) + dash + m.s(digits, 12) + dash + m.s(digits, 12) + dash + m.s(lowerHex, 32)},
		{name: "slack app", value: "xa" + "pp-1-" + m.s(upper+digits, 11) + dash + m.s(digits, 13) + dash + m.s(lowerHex, 64)},
		{name: "slack webhook", value: "T" + m.s(upper+digits, 8) + "/B" + m.s(upper+digits, 10) + "/" + m.s(base62, 24), line: `url: "https://hooks.` + `slack.com/services/%s"`},
		{name: "discord webhook", value: m.s(urlSafe, 68), line: `"https://discord.` + `com/api/webhooks/` + m.s("123456789", 18) + `/%s"`},
		{name: "discord bot", value: "M" + m.s(base62, 23) + "." + m.s(base62, 6) + "." + m.s(base62, 27), line: `bot.run("%s")`},
		{name: "telegram bot", value: m.s("123456789", 10) + ":AA" + m.s(urlSafe, 33)},
		{name: "twilio", value: "SK" + m.s(lowerHex, 32)},
		{name: "sendgrid", value: "SG" + "." + m.s(urlSafe, 22) + "." + m.s(urlSafe, 43)},
		{name: "mailgun", value: "key" + dash + m.s(lowerHex, 32)},
		{name: "mailchimp", value: m.s(lowerHex, 32) + "-us14"},
		{name: "brevo", value: "xkey" + "sib-" + m.s(lowerHex, 64) + dash + m.s(base62, 16)},
		{name: "npm", value: "npm" + under + m.s(base62, 36)},
		{name: "npmrc line", value: m.uuid(), line: "//registry.example/:_auth" + "Token=%s"},
		{name: "pypi", value: "pypi" + "-AgEIcHlwaS5vcmc" + m.s(urlSafe, 80)},
		{name: "rubygems", value: "rubygems" + under + m.s(lowerHex, 48)},
		{name: "docker hub", value: "dckr" + "_pat_" + m.s(urlSafe, 27)},
		{name: "docker config", value: m.s(base62, 43) + "=", line: `{"auths":{"r":{"auth":"%s"}}}`},
		{name: "azure storage", value: m.s(base64ch, 86) + "==", line: "DefaultEndpointsProtocol=https;AccountName=a;Account" + "Key=%s;EndpointSuffix=core.windows.net"},
		{name: "azure ad", value: m.s(base62, 3) + "8Q~" + m.s(base62, 34)},
		{name: "azure devops", value: m.s(base62, 76) + "AZ" + "DO" + m.s(base62, 4)},
		{name: "digitalocean", value: "dop" + "_v1_" + m.s(lowerHex, 64)},
		{name: "heroku", value: "HRKU" + "-" + m.s(urlSafe, 60)},
		{name: "supabase", value: "sb" + "p_" + m.s(lowerHex, 40)},
		{name: "planetscale", value: "pscale" + "_tkn_" + m.s(base62, 43)},
		{name: "databricks", value: "da" + "pi" + m.s(lowerHex, 32)},
		{name: "grafana", value: "gl" + "sa_" + m.s(base62, 32) + under + m.s(lowerHex, 8)},
		{name: "new relic", value: "NR" + "AK-" + m.s(upper+digits, 27)},
		{name: "sentry", value: "sntry" + "u_" + m.s(lowerHex, 64)},
		{name: "vault", value: "hv" + "s." + m.s(urlSafe, 95)},
		{name: "terraform cloud", value: m.s(base62, 14) + ".atlas" + "v1." + m.s(base62, 67)},
		{name: "pulumi", value: "pul" + dash + m.s(lowerHex, 40)},
		{name: "doppler", value: "dp" + ".pt." + m.s(base62, 43)},
		{name: "linear", value: "lin" + "_api_" + m.s(base62, 40)},
		{name: "notion", value: "ntn" + under + m.s(digits, 11) + m.s(base62, 35)},
		{name: "figma", value: "fig" + "d_" + m.s(urlSafe, 40)},
		{name: "atlassian", value: "ATA" + "TT3" + m.s(urlSafe, 186)},
		{name: "postman", value: "PM" + "AK-" + m.s(lowerHex, 24) + dash + m.s(lowerHex, 34)},
		{name: "shopify", value: "shp" + "at_" + m.s(lowerHex, 32)},
		{name: "airtable", value: "pat" + m.s(base62, 14) + "." + m.s(lowerHex, 64)},
		{name: "hubspot", value: "pat" + "-na1-" + m.uuid()},
		{name: "tailscale", value: "ts" + "key-auth-" + m.s(base62, 12) + dash + m.s(base62, 32)},
		{name: "buildkite", value: "bk" + "ua_" + m.s(lowerHex, 40)},
		{name: "age", value: "AGE-SECRET" + "-KEY-1" + m.s("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58)},
		{name: "jwt", value: "ey" + "JhbGciOiJIUzI1NiJ9" + "." + "ey" + "J" + m.s(base62, 40) + "." + m.s(urlSafe, 43)},
		{name: "rsa key", value: pem("RSA PRIVATE KEY"), line: "%s"},
		{name: "pkcs8 key", value: pem("PRIVATE KEY"), line: "%s"},
		{name: "ec key", value: pem("EC PRIVATE KEY"), line: "%s"},
		{name: "openssh key", value: pem("OPENSSH PRIVATE KEY"), line: "%s"},
		{name: "pgp key", value: strings.Replace(pem("PGP PRIVATE KEY BLOCK"), "-----\n", "-----\n\n", 1), line: "%s"},
		{name: "database url", value: m.s(base62, 20), line: `dsn = "postgres://shop:%s@db.internal:5432/shop"`},
		{name: "generic api key", value: m.s(base62, 32), line: `const apiKey = "%s";`},
		{name: "generic secret in hex", value: m.s(lowerHex, 64), line: `SESSION_SECRET: "%s"`},
		{name: "generic in an env file", value: m.s(base62, 32), line: "DB_PASSWORD=%s"},
		{name: "bearer header", value: m.s(base62, 40), line: `req.setHeader("Authorization", "Bearer %s")`},
	}
	for i := range ks {
		if ks[i].line == "" {
			ks[i].line = `value = "%s"`
		}
	}
	return ks
}

func (k kind) text() string { return fmt.Sprintf(k.line, k.value) }
