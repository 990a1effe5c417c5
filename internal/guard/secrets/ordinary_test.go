package secrets

import (
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// ordinary makes a file of a kind that holds long strange texts and no credential.
func ordinary(m maker, i int) (name, text string) {
	word := func() string {
		return []string{"order", "token", "secret", "key", "user", "apiKey", "password", "session", "auth", "cart"}[m.r.IntN(10)]
	}
	switch i % 20 {
	case 0:
		return "go.sum", fmt.Sprintf("example.com/%s v1.%d.0 h1:%s=\nexample.com/%s v1.%d.0/go.mod h1:%s=\n", word(), i, m.s(base64ch, 43), word(), i, m.s(base64ch, 43))
	case 1:
		return "package-lock.json", fmt.Sprintf(`{"node_modules/%s-loader":{"version":"1.2.%d","resolved":"https://registry.example/%s-1.2.tgz","integrity":"sha512-%s=="}}`, word(), i, word(), m.s(base64ch, 86))
	case 2:
		return "Cargo.lock", fmt.Sprintf("[[package]]\nname = \"%s\"\nversion = \"0.%d.1\"\nchecksum = \"%s\"\n", word(), i, m.s(lowerHex, 64))
	case 3:
		return "logo.svg", fmt.Sprintf(`<svg><path d="M%d 0L12.5 3.25C%d 1.5 2 2z"/><image href="data:image/png;base64,%s"/></svg>`, i, i, m.s(base64ch, 400))
	case 4:
		return "app.min.js", fmt.Sprintf(`!function(e,t){var n=e.%s||t.getToken("%s"),r=n.secretKey;e.exports=function(a){return r.apiKey+a.%s%d}}(module,window);`, word(), word(), word(), i)
	case 5:
		return "main.css", fmt.Sprintf(".%s-%d{background:url(/img/%s.%s.png)} /*# sourceMappingURL=main.css.map */\n", word(), i, word(), m.s(lowerHex, 20))
	case 6:
		return "users.csv", fmt.Sprintf("id,uuid,%s\n%d,%s,%d\n", word(), i, m.uuid(), m.r.IntN(1e9))
	case 7:
		return "deploy.yml", fmt.Sprintf("env:\n  API_TOKEN: ${{ secrets.API_TOKEN }}\n  IMAGE: ghcr.io/x/%s@sha256:%s\nsecretName: %s-tls-%d\n", word(), m.s(lowerHex, 64), word(), i)
	case 8:
		return "settings.py", fmt.Sprintf("SECRET_KEY = os.environ[\"SECRET_KEY\"]\nPASSWORD_HASHERS = [\"django.contrib.auth.hashers.Argon2PasswordHasher\"]\nTOKEN_TTL_SECONDS = %d\n", i)
	case 9:
		return "Login.java", fmt.Sprintf("String password = request.getParameter(\"password\");\nString tokenHeaderName = \"X-Auth-Token-%d\";\nif (apiKey == null) throw new IllegalStateException(\"apiKey missing\");\n", i)
	case 10:
		return ".env.example", fmt.Sprintf("API_KEY=your-api-key-here\nDB_PASSWORD=changeme\nSESSION_SECRET=<generate with openssl rand -hex 32>\nPORT=%d\n", 3000+i)
	case 11:
		return "auth_test.go", fmt.Sprintf("token := \"test-token-%d\"\nwant := \"Bearer test-token-%d\"\npassword := \"correct horse battery staple\"\n", i, i)
	case 12:
		return "README.md", fmt.Sprintf("Set `%s` to the token of your account. `curl -H \"Authorization: Bearer $TOKEN\" https://api.example.com/v1/orders/%d`\n", strings.ToUpper(word()), i)
	case 13:
		return "cert.pem", "-----" + "BEGIN CERTIFICATE-----\n" + wrap(m.s(base64ch, 800), 64) + "-----" + "END CERTIFICATE-----\n"
	case 14:
		return "commit.txt", fmt.Sprintf("commit %s\nAuthor: A <a@example.com>\nkeys: %s..%s\n", m.s(lowerHex, 40), m.s(lowerHex, 12), m.s(lowerHex, 12))
	case 15:
		return "messages.json", fmt.Sprintf(`{"forgotPassword":"Forgot your password? We sent a link to %%s (%d)","tokenExpired":"Your session token has expired","b64":"%s"}`, i, base64.StdEncoding.EncodeToString([]byte("an ordinary sentence that somebody encoded for no reason")))
	case 16:
		return "id_ed25519.pub", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + m.s(base64ch, 43) + " me@example.com\n"
	case 17:
		return "photo.png", "\x89PNG\r\n\x1a\n" + m.s(base64ch+"\x00\x01\x02\xff\xfe", 2000)
	case 18:
		return "schema.sql", fmt.Sprintf("CREATE TABLE api_keys_%d (id uuid DEFAULT '%s', token_hash char(64), password_digest text);\n", i, m.uuid())
	default:
		return "Dockerfile", fmt.Sprintf("FROM debian:12@sha256:%s\nRUN --mount=type=secret,id=npm_token npm ci\nENV KEYCLOAK_URL=https://id.example.com/realms/%s%d\n", m.s(lowerHex, 64), word(), i)
	}
}

func TestFiveHundredOrdinaryFilesHoldNoCredential(t *testing.T) {
	t.Parallel()
	d := detector(t)
	m := newMaker(7)
	for i := range 500 {
		name, text := ordinary(m, i)
		if hits := d.Scan(name, []byte(text)); len(hits) != 0 {
			t.Errorf("%s (%d): found %+v in\n%s", name, i, hits, text)
		}
		// The control: the same file with a credential at its end.
		if i%50 == 0 {
			if hits := d.Scan(name, []byte(text+"\n"+kinds(uint64(i))[3].text())); len(hits) == 0 {
				t.Errorf("control, %s (%d): not found", name, i)
			}
		}
	}
}

// Real files as well: what the standard library keeps outside its tests is ordinary text of every kind.
func TestTheStandardLibraryHoldsNoCredential(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	d := detector(t)
	n := 0
	for _, dir := range []string{"net", "encoding", "archive", "html", "database", "mime", "text", "time"} {
		err := filepath.WalkDir(filepath.Join(strings.TrimSpace(string(out)), "src", dir), func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() || strings.Contains(path, "testdata") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil || len(text) > 200<<10 {
				return err
			}
			n++
			if hits := d.Scan(path, text); len(hits) != 0 {
				t.Errorf("%s: found %+v", path, hits)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if n < 300 {
		t.Errorf("only %d files were read", n)
	}
}

func BenchmarkScan(b *testing.B) {
	d := detector(b)
	text := []byte(strings.Repeat("func Token(key string) (secret string, err error) { return lookup(\"api_key\", key) }\n", 1000))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		d.Scan("a.go", text)
	}
}
