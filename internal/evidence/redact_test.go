package evidence

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"reflect"
	"strings"
	"testing"
)

// through writes text in pieces of the given sizes, over and over, and returns what came out.
func through(t testing.TB, r *Redactor, text string, sizes ...int) string {
	t.Helper()
	var out bytes.Buffer
	w := r.Writer(&out)
	for i := 0; len(text) > 0; i++ {
		n := min(max(1, sizes[i%len(sizes)]), len(text))
		if _, err := io.WriteString(w, text[:n]); err != nil {
			t.Fatal(err)
		}
		text = text[n:]
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func wrap(s, with string, n int) string {
	var b strings.Builder
	for i := 0; i < len(s); i += n {
		b.WriteString(s[i:min(len(s), i+n)])
		b.WriteString(with)
	}
	return b.String()
}

func TestSecretsAreRedactedInEveryFormAndHoweverSplit(t *testing.T) {
	t.Parallel()
	secrets := map[string]string{
		"shortest":     "k9$xQz",
		"token":        "tok" + "_3f9A.b2C-77e1" + "aa90Q/+=z",
		"long":         strings.Repeat("a1B2c3.D4-", 60),
		"not ASCII":    "pässwörd-日本-🔑",
		"quotes":       `a"b\c<d>&e'f`,
		"repeating":    "abababab",
		"with newline": "first-line-of-key\nsecond-line-of-key\r\nthird-line-of-key",
	}
	forms := map[string]func(string) string{
		"plain":           func(s string) string { return s },
		"hex":             func(s string) string { return hex.EncodeToString([]byte(s)) },
		"upper hex":       func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) },
		"spaced hex":      func(s string) string { return wrap(hex.EncodeToString([]byte(s)), " ", 4) },
		"query":           url.QueryEscape,
		"path":            url.PathEscape,
		"lower query":     func(s string) string { return lowerEscapes(url.QueryEscape(s)) },
		"JSON":            func(s string) string { return strings.Trim(fmt.Sprintf("%q", s), `"`) },
		"base64 wrapped":  func(s string) string { return wrap(base64.StdEncoding.EncodeToString([]byte(s)), "\n", 76) },
		"base64 indented": func(s string) string { return wrap(base64.StdEncoding.EncodeToString([]byte(s)), "\r\n      ", 10) },
	}
	for shift := range 3 {
		pad := strings.Repeat("x", shift)
		forms[fmt.Sprintf("base64 +%d", shift)] = func(s string) string { return base64.StdEncoding.EncodeToString([]byte(pad + s + "yz")) }
		forms[fmt.Sprintf("base64url +%d", shift)] = func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(pad + s + "yz")) }
	}
	for sname, secret := range secrets {
		for fname, form := range forms {
			t.Run("INV-34 "+sname+" "+fname, func(t *testing.T) {
				t.Parallel()
				value := form(secret)
				text := "before: " + value + " :after\n"
				r := NewRedactor(secret, "another-secret-value")
				// Control: with nothing to look for the value passes, so the test sees what it looks for.
				if got := through(t, NewRedactor(), text, 3); !strings.Contains(got, value) {
					t.Fatalf("control: the value does not pass: %q", got)
				}
				for _, sizes := range [][]int{{1}, {2, 5}, {7}, {64, 1}, {1 << 20}} {
					got := through(t, r, text, sizes...)
					if leaks(got, value, strings.HasPrefix(fname, "base64")) || strings.Contains(got, secret) {
						t.Errorf("pieces of %v: leaked: %q", sizes, got)
					}
					if !strings.HasPrefix(got, "before: ") || !strings.HasSuffix(got, " :after\n") {
						t.Errorf("pieces of %v: what is no secret changed: %q", sizes, got)
					}
					if one := r.String(text); one != got {
						t.Errorf("pieces of %v: %q, in one: %q", sizes, got, one)
					}
				}
			})
		}
	}
}

// leaks tells whether got still holds six characters in a row of the value, blanks aside. At either
// end of base64 up to six digits say more about the neighbours than about the value.
func leaks(got, value string, base64 bool) bool {
	got = strings.TrimSuffix(strings.TrimPrefix(got, "before: "), " :after\n")
	got = strings.ReplaceAll(got, Redacted, "\x00")
	squeeze := strings.NewReplacer(" ", "", "\n", "", "\r", "")
	g, v := squeeze.Replace(got), squeeze.Replace(value)
	if base64 {
		v = v[2:max(2, len(v)-6)]
	}
	for i := 0; i+6 <= len(v); i++ {
		if strings.Contains(g, v[i:i+6]) {
			return true
		}
	}
	return !strings.Contains(got, "\x00")
}

func TestShapesOfTokensAreRedactedWithoutKnowingTheValue(t *testing.T) {
	t.Parallel()
	tail := strings.Repeat("a1B2", 10)
	for name, c := range map[string]struct{ text, want string }{
		"github":        {"t=ghs" + "_" + tail + "\n", "t=ghs_" + Redacted + "\n"},
		"github dots":   {"ghs" + "_" + tail + "." + tail + " x", "ghs_" + Redacted + " x"},
		"gitlab":        {"glpat" + "-" + tail, "glpat-" + Redacted},
		"model key":     {"key sk" + "-ant-api03-" + tail + ",", "key sk-" + Redacted + ","},
		"aws":           {"AKIA" + "ABCDEFGHIJKLMNOP", "AKIA" + Redacted},
		"web token":     {"eyJ" + tail + "." + tail + "." + tail + ";", "eyJ" + Redacted + ";"},
		"bearer":        {"authorization: Bearer " + tail + "\r\n", "authorization: Bearer " + Redacted + "\r\n"},
		"basic":         {"Authorization: Basic " + tail, "Authorization: Basic " + Redacted},
		"url":           {"https://me:" + "hunter2@host/x", "https://me:" + Redacted + "@host/x"},
		"private key":   {"-----BEGIN RSA PRIVATE KEY-----\nMII\nabc\n-----END RSA PRIVATE KEY-----\nx", "-----BEGIN RSA PRIVATE KEY-----" + Redacted + "-----END RSA PRIVATE KEY-----\nx"},
		"cut key":       {"-----BEGIN PRIVATE KEY-----\nMII", "-----BEGIN PRIVATE KEY-----" + Redacted},
		"certificate":   {"-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----", "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----"},
		"words":         {"task-force sk-learn-is-a-long-package-name https://example.com:8080/a@b bearer of news", "task-force sk-learn-is-a-long-package-name https://example.com:8080/a@b bearer of news"},
		"inside a word": {"risk-" + tail, "risk-" + tail},
		"too short":     {"ghp_abc eyJhbGci.x.y", "ghp_abc eyJhbGci.x.y"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var none *Redactor
			for _, r := range []*Redactor{none, NewRedactor("unrelated-value")} {
				if got := r.String(c.text); got != c.want {
					t.Errorf("whole: %q, want %q", got, c.want)
				}
				for _, n := range []int{1, 3, 11} {
					if got := through(t, r, c.text, n); got != c.want {
						t.Errorf("pieces of %d: %q, want %q", n, got, c.want)
					}
				}
			}
		})
	}
}

func TestOverlappingSecretsAreMaskedAsOne(t *testing.T) {
	t.Parallel()
	r := NewRedactor("abc123xyz", "xyz789000", "abc123xyz789000-long-tail")
	for text, want := range map[string]string{
		"<abc123xyz789000>":                Redacted,
		"<abc123xyz789000-long-tail>":      Redacted,
		"<abc123xyz789000-long-other>":     Redacted + "-long-other",
		"<abc123xyzabc123xyz>":             Redacted + Redacted,
		"<abc123xy>":                       "abc123xy",
		"<abc123xyz abc123xyz789000-long>": Redacted + " " + Redacted + "-long",
	} {
		for _, n := range []int{1, 2, 4, 100} {
			if got := through(t, r, text, n); got != "<"+want+">" {
				t.Errorf("%s in pieces of %d: %s, want <%s>", text, n, got, want)
			}
		}
	}
}

func TestOnlyWhatMayBeASecretIsHeldBack(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := NewRedactor("super-secret-value").Writer(&out)
	io.WriteString(w, "12 tests passed\nsuper")
	if got := out.String(); got != "12 tests passed\n" {
		t.Errorf("passed on at once: %q", got)
	}
	io.WriteString(w, " bowl")
	if got := out.String(); got != "12 tests passed\nsuper bowl" {
		t.Errorf("after the value did not come: %q", got)
	}
	// A flood of beginnings is passed on, not kept.
	for range 1000 {
		io.WriteString(w, strings.Repeat("super-secret-valu ", 100))
	}
	if held := len(w.(*redactingWriter).st.buf); held > 100 {
		t.Errorf("%d bytes held back", held)
	}
}

func TestPiecesAndWholeAgreeOnRandomText(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	secrets := []string{"aabbaabb", "bbaabbcc", "abcabcabc", "cccccc"}
	r := NewRedactor(secrets...)
	for range 2000 {
		b := make([]byte, rng.IntN(80))
		for i := range b {
			b[i] = "aabbcc \n"[rng.IntN(8)]
		}
		text := string(b)
		want := r.String(text)
		for _, s := range secrets {
			if strings.Contains(want, s) {
				t.Fatalf("%q: %q leaked: %q", text, s, want)
			}
		}
		if got := through(t, r, text, 1+rng.IntN(9), 1+rng.IntN(3)); got != want {
			t.Fatalf("%q: pieces %q, whole %q", text, got, want)
		}
	}
}

func TestShortSecretsAreCountedAsIgnored(t *testing.T) {
	t.Parallel()
	r := NewRedactor("", "abc", "long-enough", " 12 ")
	if r.Ignored() != 2 {
		t.Errorf("ignored %d, want 2", r.Ignored())
	}
	if got := r.String("abc long-enough"); got != "abc "+Redacted {
		t.Errorf("got %q", got)
	}
}

func TestRedactedErrorsKeepTheirKind(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("push to https://x:%s@host: %w", "the-token-1", io.ErrUnexpectedEOF)
	got := NewRedactor("the-token-1").Error(err)
	if strings.Contains(got.Error(), "the-token-1") || !errors.Is(got, io.ErrUnexpectedEOF) {
		t.Errorf("INV-34: %v", got)
	}
	if NewRedactor().Error(nil) != nil {
		t.Error("nil error became an error")
	}
}

func FuzzPiecesAndWholeAgree(f *testing.F) {
	f.Add("super-secret", "x super-sec", "ret y", 3)
	f.Add("a\nb\nlonger line here", "bG9uZ2VyIGxpbmUgaGVyZQ", "==\n", 1)
	f.Add("key", "-----BEGIN PRIVATE KEY-----abc", "-----END PRIVATE KEY-----", 5)
	f.Add("hunter22", "https://u:hunter22@", "h eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJlMTIz", 2)
	f.Fuzz(func(t *testing.T, secret, head, tail string, size int) {
		r := NewRedactor(secret)
		text := head + secret + tail
		whole := r.String(text)
		if got := through(t, r, text, size%17, 1); got != whole {
			t.Errorf("pieces %q, whole %q", got, whole)
		}
		if s := strings.TrimSpace(secret); len(s) >= MinSecret && !strings.Contains(Redacted, s) && strings.Contains(whole, s) {
			t.Errorf("%q leaked: %q", s, whole)
		}
	})
}

// INV-34: no field of a record is of a kind in which Record would leave a secret.
func TestEveryFieldOfARecordIsReached(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-hunter2"
	reached := map[string]bool{}
	var fill func(v reflect.Value, at string)
	fill = func(v reflect.Value, at string) {
		switch v.Kind() {
		case reflect.String:
			v.SetString("a " + secret)
			reached[at] = true
		case reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), at)
		case reflect.Slice:
			if v.Type().Elem().Kind() == reflect.Uint8 {
				t.Errorf("%s is bytes: Redactor.value does not look into them", at)
			}
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
			fill(v.Index(1), at+"[]")
		case reflect.Struct:
			for i := range v.NumField() {
				if f := v.Type().Field(i); f.IsExported() {
					fill(v.Field(i), at+"."+f.Name)
				} else if f.Type.PkgPath() != "" && v.Type().PkgPath() != "time" {
					t.Errorf("%s.%s is not exported: nothing could reach it", at, f.Name)
				}
			}
		case reflect.Map, reflect.Interface, reflect.Array, reflect.Func, reflect.Chan:
			t.Errorf("%s is a %s: Redactor.value does not look into it", at, v.Kind())
		}
	}
	var rec Record
	fill(reflect.ValueOf(&rec).Elem(), "record")
	if len(reached) < 80 {
		t.Fatalf("only %d fields of text", len(reached))
	}
	before, err := json.Marshal(rec)
	if err != nil {
		t.Fatal(err)
	}
	after, err := json.Marshal(NewRedactor(secret).Record(rec))
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(before, []byte(secret)); n < 80 {
		t.Errorf("control: %d secrets in the record that was filled", n)
	}
	if bytes.Contains(after, []byte(secret)) {
		t.Errorf("left in the record:\n%s", after)
	}
}
