package secrets

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"unicode/utf16"
)

func detector(t testing.TB, known ...Known) *Detector {
	t.Helper()
	d, err := New(known)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

const before, after = "first line\n// an ordinary comment\n", "\nlast line\n"

// INV-17: every kind is found on its line, and none is printed.
func TestEveryKindOfCredentialIsFound(t *testing.T) {
	t.Parallel()
	d := detector(t)
	ks := kinds(1)
	if len(ks) < 60 {
		t.Fatalf("only %d kinds", len(ks))
	}
	for _, k := range ks {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			hits := d.Scan("config/settings.env", []byte(before+k.text()+after))
			if len(hits) == 0 {
				t.Fatalf("not found: %d characters", len(k.value))
			}
			if hits[0].Line != 3 {
				t.Errorf("found on line %d, want 3", hits[0].Line)
			}
			if shown := fmt.Sprintf("%+v %#v %s", hits, hits, hits[0].Digest()); len(k.value) < 300 && strings.Contains(shown, k.value) {
				t.Error("the value is printed")
			}
			// The control: the same file without the value holds nothing.
			if hits := d.Scan("config/settings.env", []byte(before+strings.ReplaceAll(k.text(), k.value, "")+after)); len(hits) != 0 {
				t.Errorf("control: found %+v in a file without it", hits)
			}
		})
	}
}

// INV-17: no name, comment, attribute or encoding makes a file exempt.
func TestNoEncodingHidesACredential(t *testing.T) {
	t.Parallel()
	d := detector(t)
	wide := func(order int) func(string) string {
		return func(s string) string {
			var b strings.Builder
			for _, u := range utf16.Encode([]rune(s)) {
				pair := [2]byte{byte(u), byte(u >> 8)}
				b.WriteByte(pair[order])
				b.WriteByte(pair[1-order])
			}
			return b.String()
		}
	}
	each := func(format string) func(string) string {
		return func(s string) string {
			var b strings.Builder
			for i := range len(s) {
				fmt.Fprintf(&b, format, s[i])
			}
			return b.String()
		}
	}
	value := map[string]func(string) string{ // of the value alone
		"two literals":            func(v string) string { return v[:10] + `" + "` + v[10:] },
		"two literals, two lines": func(v string) string { return v[:10] + "\" +\n    \"" + v[10:] },
		"adjacent literals":       func(v string) string { return v[:10] + `" "` + v[10:] },
		"php concatenation":       func(v string) string { return v[:10] + `" . "` + v[10:] },
		"a joined list":           func(v string) string { return v[:10] + `", "` + v[10:] + `"].join("` },
		"a continued line":        func(v string) string { return v[:10] + "\\\n" + v[10:] },
		"zero-width spaces":       func(v string) string { return v[:10] + "\u200b" + v[10:20] + "\u2060" + v[20:] },
		"base64":                  func(v string) string { return base64.StdEncoding.EncodeToString([]byte(v)) },
		"base64 in a sentence":    func(v string) string { return base64.StdEncoding.EncodeToString([]byte("the key is " + v + " ok")) },
		"base64 for URLs":         func(v string) string { return base64.RawURLEncoding.EncodeToString([]byte("key?~" + v)) },
		"base64 twice": func(v string) string {
			return base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString([]byte(v))))
		},
		"hex":                  func(v string) string { return hex.EncodeToString([]byte(v)) },
		"upper-case hex":       func(v string) string { return strings.ToUpper(hex.EncodeToString([]byte(v))) },
		"hex in base64":        func(v string) string { return base64.StdEncoding.EncodeToString([]byte(hex.EncodeToString([]byte(v)))) },
		"percent, whole":       each("%%%02x"),
		"percent, in part":     func(v string) string { return url.QueryEscape(v[:6]) + each("%%%02X")(v[6:9]) + v[9:] },
		"backslash x":          each(`\x%02x`),
		"backslash u":          each(`\u%04x`),
		"octal":                each(`\%03o`),
		"character references": each("&#%d;"),
		"a byte array":         func(v string) string { return strings.TrimSuffix(each("0x%02x, ")(v), ", ") },
		"gitleaks:allow":       func(v string) string { return v + `" // gitleaks:allow nosecret pragma: allowlist secret "` },
	}
	file := map[string]func(string) string{ // of the whole file
		"utf-16 with a mark":            func(s string) string { return "\xff\xfe" + wide(0)(s) },
		"utf-16 without":                wide(0),
		"utf-16 big-endian":             wide(1),
		"a NUL in front":                func(s string) string { return "\x00\x01\x02" + s },
		"a NUL between the letters":     func(s string) string { return strings.ReplaceAll(s, "gh"+"p_", "gh\x00p_") },
		"binary around":                 func(s string) string { return strings.Repeat("\x89\xfe\x00", 3000) + s },
		"old Mac line ends":             func(s string) string { return strings.ReplaceAll(s, "\n", "\r") },
		"one long line":                 func(s string) string { return strings.Repeat("x = 1; ", 20000) + strings.ReplaceAll(s, "\n", " ") },
		"lower in a long file":          func(s string) string { return strings.Repeat("ordinary line\n", 20000) + s },
		"the whole file as base64":      func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
		"the file as base64, 76 a line": func(s string) string { return wrap(base64.StdEncoding.EncodeToString([]byte(s)), 76) },
	}
	for _, k := range []kind{kinds(2)[3], kinds(2)[13], kinds(2)[26], kinds(2)[63]} {
		for name, f := range value {
			t.Run(k.name+" as "+name, func(t *testing.T) {
				t.Parallel()
				text := before + strings.Replace(k.text(), k.value, f(k.value), 1) + after
				hits := d.Scan("main.py", []byte(text))
				if len(hits) == 0 {
					t.Fatalf("not found")
				}
				if hits[0].Line < 3 || hits[0].Line > 4 {
					t.Errorf("found on line %d, want 3", hits[0].Line)
				}
			})
		}
		for name, f := range file {
			t.Run(k.name+" in "+name, func(t *testing.T) {
				t.Parallel()
				if hits := d.Scan("main.py", []byte(f(before+k.text()+after))); len(hits) == 0 {
					t.Fatal("not found")
				}
			})
		}
		for _, name := range []string{"package-lock.json", "logo.svg", "photo.png", "go.sum", "vendor/github.com/x/y.go", "node_modules/x.js", ".gitleaks.toml", "fonts/a.woff2", "dist/app.min.js", "testdata/x.txt", "README.md"} {
			if hits := d.Scan(name, []byte(before+k.text()+after)); len(hits) == 0 {
				t.Errorf("%s in %s: not found", k.name, name)
			}
		}
	}
}

func wrap(s string, n int) string {
	var b strings.Builder
	for len(s) > n {
		b.WriteString(s[:n] + "\n")
		s = s[n:]
	}
	return b.String() + s + "\n"
}

// INV-17: what the harness itself holds is found although it has no format at all.
func TestAKnownValueIsFoundInEveryForm(t *testing.T) {
	t.Parallel()
	value := "correct-horse/battery+staple=1"
	d := detector(t, Known{Name: "model key", Value: value}, Known{Name: "short", Value: "abc"})
	for name, form := range map[string]string{
		"plain":            value,
		"hex":              hex.EncodeToString([]byte(value)),
		"query":            url.QueryEscape(value),
		"backwards":        reversed(value),
		"base64":           base64.StdEncoding.EncodeToString([]byte(value)),
		"base64 shifted 1": base64.StdEncoding.EncodeToString([]byte("\xff" + value + "\xfe\xfd")),
		"base64 shifted 2": base64.StdEncoding.EncodeToString([]byte("\xff\xfe" + value + "\xfc")),
		"split":            value[:12] + `" + "` + value[12:],
	} {
		hits := d.Scan("a.txt", []byte("abc\nx = \""+form+"\"\n"))
		if len(hits) == 0 || hits[0].Rule != "known value: model key" || hits[0].Line != 2 {
			t.Errorf("%s: got %+v", name, hits)
		}
		if hits := detector(t).Scan("a.txt", []byte("x = \""+form+"\"\n")); len(hits) != 0 {
			t.Errorf("control, %s: found without being known: %+v", name, hits)
		}
	}
}

func TestPlaceholdersAreNotCredentials(t *testing.T) {
	t.Parallel()
	d := detector(t)
	for _, text := range []string{
		`api_key = "${API_KEY}"`, `token: {{ .Values.token }}`, `password = os.environ["DB_PASSWORD"]`, `secret: <your-secret-here>`,
		`const token = "your-api-token-goes-here";`, `API_KEY=changeme`, `apiKey: "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"`,
		`AWS_ACCESS_KEY_ID=AKIA` + `IOSFODNN7EXAMPLE`, `Authorization: Bearer $TOKEN`, `token := "test-token-123456789"`, `password: "correct horse battery staple"`,
		`secretName: my-service-tls-secret-v2`, `tokenizer = "cl100k_base_tokenizer_v2"`, `keyFile: "/etc/ssl/private/server.key"`,
		`sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"`, `etag: "33a64df551425fcc55e4d42a148795d9f25f89d4"`,
		`"integrity": "sha512-v2kDEe57lecTulaDIuNTPy3Ry4gLGJ6Z1O3vE1krgXZNrsQ+LFTGHVxVjcXPs17LhbZVGedAJv8XZ1tvj5FvSg=="`,
		`postgres://user:password@localhost:5432/app`, `https://user:${TOKEN}@github.com/x/y`, `id: 123e4567-e89b-12d3-a456-426614174000`,
		`publicKey = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE8xOUetsCa8EfOlDEBAfREhJqspDo"`, `-----BEGIN PUBLIC KEY-----`, `-----BEGIN CERTIFICATE-----`,
		`csrfTokenHeader = "X-CSRF-Token-2024-Version-1"`, `ghp_` + `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx`,
	} {
		if hits := d.Scan("config.yml", []byte(text+"\n")); len(hits) != 0 {
			t.Errorf("%s: found %+v", text, hits)
		}
	}
}

// gitleaks' rules are data with a source: the file says which release and under which licence.
func TestTheRulesNameTheirSource(t *testing.T) {
	t.Parallel()
	if s := string(vendorData[:400]); !strings.Contains(s, "github.com/zricethezav/gitleaks/v8@v8.") || !strings.Contains(s, "MIT License") || !strings.Contains(s, "Copyright") {
		t.Errorf("the source is missing: %s", s)
	}
	v, err := loadRules()
	if err != nil {
		t.Fatal(err)
	}
	if len(v.rules) < 200 {
		t.Errorf("only %d rules", len(v.rules))
	}
	for _, r := range v.rules {
		r.compile()
		if len(r.Keywords) == 0 {
			t.Errorf("%s has no key words and would never run", r.ID)
		}
	}
}

func FuzzScanKeepsLinesInRangeAndStaysSilent(f *testing.F) {
	for _, k := range kinds(3)[:10] {
		f.Add([]byte(before + k.text() + after))
	}
	f.Add([]byte("\xff\xfea\x00b\x00"))
	f.Add([]byte(`x = "\x41\u0042%43" + "&#68;" . "0x41, 0x42"`))
	d := detector(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		most := 2 + strings.Count(string(data), "\n")
		for _, h := range d.Scan("a.env", data) {
			if h.Line < 1 || h.Line > most {
				t.Fatalf("line %d of %d", h.Line, most)
			}
		}
	})
}
