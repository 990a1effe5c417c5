package evidence

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/url"
	"reflect"
	"strings"
)

// Redacted stands where a secret stood.
const Redacted = "[redacted]"

// MinSecret is the shortest value that is looked for, in bytes: shorter ones occur in ordinary text.
const MinSecret = 6

// Redactor takes secrets out of text (INV-34): the exact values it was given, as they are, line by
// line, base64 in every alignment and alphabet, hex, URL- and JSON-encoded, wrapped over lines or
// not; then anything in the shape of a well-known token. A nil Redactor knows the shapes only.
// It is safe for concurrent use; what Writer returns is not.
type Redactor struct {
	plain   *automaton // values as they appear byte for byte
	encoded *automaton // base64 and hex, matched with white space between the digits
	ignored int
}

// NewRedactor looks for the given values. Any alphabet and any length from MinSecret on will do.
func NewRedactor(secrets ...string) *Redactor {
	r := &Redactor{}
	plain, encoded := map[string]bool{}, map[string]bool{}
	for _, s := range secrets {
		if len(strings.TrimSpace(s)) < MinSecret {
			if s != "" {
				r.ignored++
			}
			continue
		}
		for _, v := range append(strings.FieldsFunc(s, isLineEnd), s) {
			if v = strings.TrimSpace(v); len(v) >= MinSecret {
				addForms(v, plain, encoded)
			}
		}
	}
	r.plain, r.encoded = newAutomaton(plain), newAutomaton(encoded)
	return r
}

// Ignored counts the values that were too short to look for: say so in the log.
func (r *Redactor) Ignored() int { return r.ignored }

func isLineEnd(c rune) bool { return c == '\n' || c == '\r' }

// addForms adds every form in which the value v may turn up.
func addForms(v string, plain, encoded map[string]bool) {
	plain[v] = true
	for _, e := range []string{url.QueryEscape(v), url.PathEscape(v)} {
		plain[e] = true
		plain[lowerEscapes(e)] = true
	}
	if j, err := json.Marshal(v); err == nil {
		plain[string(j[1:len(j)-1])] = true
	}
	var unescaped bytes.Buffer
	enc := json.NewEncoder(&unescaped)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) == nil {
		plain[strings.Trim(unescaped.String(), "\"\n")] = true
	}
	encoded[hex.EncodeToString([]byte(v))] = true
	encoded[strings.ToUpper(hex.EncodeToString([]byte(v)))] = true
	for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for shift := range 3 {
			encoded[aligned(alphabet, v, shift)] = true
		}
	}
}

// aligned is the part of v's base64 that is the same whatever stands before and after v, when v
// starts shift bytes into a group of three.
func aligned(e *base64.Encoding, v string, shift int) string {
	s := e.EncodeToString([]byte(strings.Repeat("\x00", shift) + v))
	from := (shift*8 + 5) / 6
	to := (shift + len(v)) * 8 / 6
	return s[from:to]
}

// lowerEscapes turns %2F into %2f: both are in use.
func lowerEscapes(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], bytes.ToLower(b[i+1:i+3]))
			i += 2
		}
	}
	return string(b)
}

// String returns s without secrets.
func (r *Redactor) String(s string) string {
	st := stream{r: r}
	out := st.feed(nil, []byte(s), true)
	if string(out) == s {
		return s
	}
	return string(out)
}

// Mask returns text without secrets and with all its lines: where a secret goes over several, each says so.
func (r *Redactor) Mask(text []byte) []byte {
	var spans []span
	if r != nil {
		spans, _ = r.plain.matches(spans, text)
		spans, _ = r.encoded.spacedMatches(spans, text)
	}
	if spans, _ = shapeSpans(spans, text, true); len(spans) == 0 {
		return text
	}
	var out []byte
	at := 0
	for _, m := range merge(spans) {
		out = append(out, text[at:m.from]...)
		for line := range bytes.Lines(text[m.from:m.to]) {
			bare := bytes.TrimRight(line, "\r\n")
			if len(bare) > 0 {
				out = append(out, Redacted...)
			}
			out = append(out, line[len(bare):]...)
		}
		at = m.to
	}
	return append(out, text[at:]...)
}

// Error returns an error whose text holds no secret and that still unwraps to err. nil stays nil.
func (r *Redactor) Error(err error) error {
	if err == nil {
		return nil
	}
	return &redactedError{text: r.String(err.Error()), err: err}
}

type redactedError struct {
	text string
	err  error
}

func (e *redactedError) Error() string { return e.text }
func (e *redactedError) Unwrap() error { return e.err }

// Writer passes what is written on to w without secrets, however they are split over writes. Only
// bytes that may still become a secret are held back; Close passes the rest on and leaves w open.
func (r *Redactor) Writer(w io.Writer) io.WriteCloser {
	return &redactingWriter{w: w, st: stream{r: r}}
}

type redactingWriter struct {
	w   io.Writer
	st  stream
	out []byte
}

func (w *redactingWriter) Write(p []byte) (int, error) {
	w.out = w.st.feed(w.out[:0], p, false)
	if len(w.out) == 0 {
		return len(p), nil
	}
	if _, err := w.w.Write(w.out); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (w *redactingWriter) Close() error {
	w.out = w.st.feed(w.out[:0], nil, true)
	if len(w.out) == 0 {
		return nil
	}
	_, err := w.w.Write(w.out)
	return err
}

// Record returns a copy of rec with every string redacted.
func (r *Redactor) Record(rec Record) Record { return redacted(r, rec) }

// redacted is a deep copy of v with every string redacted.
func redacted[T any](r *Redactor, v T) T { return r.value(reflect.ValueOf(v)).Interface().(T) }

// value copies v deeply as far as strings can hide in it: structs, slices and pointers of this package.
func (r *Redactor) value(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	switch v.Kind() {
	case reflect.String:
		out.SetString(r.String(v.String()))
	case reflect.Pointer:
		if !v.IsNil() {
			out.Set(reflect.New(v.Type().Elem()))
			out.Elem().Set(r.value(v.Elem()))
		}
	case reflect.Slice:
		if !v.IsNil() {
			out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
			for i := range v.Len() {
				out.Index(i).Set(r.value(v.Index(i)))
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out.Field(i).Set(r.value(v.Field(i)))
			}
		}
	}
	return out
}
