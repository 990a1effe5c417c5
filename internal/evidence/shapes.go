package evidence

import (
	"bytes"
	"strings"
)

// shape is what a well-known kind of credential looks like: a fixed opening, then a run of bytes.
type shape struct {
	open     string
	body     func(c byte) bool
	min, max int
	inWord   bool // the opening may stand inside a word
	// secret narrows the run to its secret part; nil: all of it. to 0: this is no credential.
	secret func(run string) (from, to int)
}

// maxShape is the longest run that is taken for one credential, and so what can be held back.
const maxShape = 8192

// shapes are credentials by their issuers' own prefixes. Lengths are lower bounds only: GitHub's
// installation tokens are getting longer and hold dots.
var shapes = knownShapes()

func knownShapes() []shape {
	all := []shape{
		{open: "eyJ", body: dottedByte, min: 30, max: maxShape, secret: webToken},
		{open: "://", body: userinfoByte, min: 3, max: 1024, inWord: true, secret: password},
		{open: "earer ", body: base64Byte, min: 20, max: maxShape, inWord: true, secret: withDigit},
		{open: "uthorization: Basic ", body: base64Byte, min: 8, max: maxShape, inWord: true},
		{open: "uthorization: basic ", body: base64Byte, min: 8, max: maxShape, inWord: true},
		{open: "AKIA", body: tokenByte, min: 16, max: 64},
		{open: "ASIA", body: tokenByte, min: 16, max: 64},
		{open: "AIza", body: tokenByte, min: 30, max: 64},
	}
	for _, p := range []string{
		"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "gldt-", "glcbt-", "glptt-", "glrt-", "gloas-",
		"sk-", "xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "npm_", "hf_", "dop_v1_",
	} {
		all = append(all, shape{open: p, body: dottedByte, min: 20, max: maxShape, secret: withDigit})
	}
	return all
}

func tokenByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

func dottedByte(c byte) bool { return tokenByte(c) || c == '.' }

func base64Byte(c byte) bool { return dottedByte(c) || c == '+' || c == '/' || c == '=' || c == '~' }

func userinfoByte(c byte) bool {
	return c > ' ' && c < 0x7f && !strings.ContainsRune("/\"'<>`\\", rune(c))
}

// withDigit keeps long names of words ("sk-some-long-package-name") out.
func withDigit(run string) (int, int) {
	if !strings.ContainsAny(run, "0123456789") {
		return 0, 0
	}
	return 0, len(run)
}

func webToken(run string) (int, int) {
	if strings.Count(run, ".") != 2 {
		return 0, 0
	}
	return 0, len(run)
}

// password is the part of user:password@host that is secret.
func password(run string) (int, int) {
	at := strings.LastIndexByte(run, '@')
	colon := strings.IndexByte(run, ':')
	if at < 0 || colon < 0 || colon+1 >= at {
		return 0, 0
	}
	return colon + 1, at
}

// shapeSpans appends the spans of credentials in b by their shape, and returns from where on b may
// hold one that has not ended: len(b) when there is none, and always when b is final.
func shapeSpans(spans []span, b []byte, final bool) ([]span, int) {
	spans, hold := privateKeys(spans, b, final)
	for _, sh := range shapes {
		for at := 0; ; {
			i := bytes.Index(b[at:], []byte(sh.open))
			if i < 0 {
				break
			}
			i += at
			at = i + 1
			if !sh.inWord && i > 0 && tokenByte(b[i-1]) {
				continue
			}
			start := i + len(sh.open)
			end := start
			for end < len(b) && end-start < sh.max && sh.body(b[end]) {
				end++
			}
			if end == len(b) && end-start < sh.max && !final {
				hold = min(hold, i)
				break
			}
			if end-start < sh.min {
				continue
			}
			from, to := 0, end-start
			if sh.secret != nil {
				from, to = sh.secret(string(b[start:end]))
			}
			if to > 0 {
				spans = append(spans, span{start + from, start + to})
			}
		}
		if !final {
			hold = min(hold, partial(b, sh.open))
		}
	}
	return spans, hold
}

// partial is where the longest beginning of word that ends b starts; len(b) when there is none.
func partial(b []byte, word string) int {
	for n := min(len(word)-1, len(b)); n > 0; n-- {
		if string(b[len(b)-n:]) == word[:n] {
			return len(b) - n
		}
	}
	return len(b)
}

// Marks around a private key in PEM.
const (
	pemBegin = "-----BEGIN "
	pemEnd   = "-----END "
	pemTail  = "-----"
	maxPEM   = 16 << 10
)

// privateKeys is shapeSpans for private keys in PEM: everything between the two marks goes. A key
// without an end mark goes up to maxPEM bytes.
func privateKeys(spans []span, b []byte, final bool) ([]span, int) {
	hold := len(b)
	if !final {
		hold = partial(b, pemBegin)
	}
	for at := 0; ; {
		i := bytes.Index(b[at:], []byte(pemBegin))
		if i < 0 {
			return spans, hold
		}
		i += at
		at = i + len(pemBegin)
		head := bytes.Index(b[at:min(len(b), at+64)], []byte(pemTail))
		if head < 0 {
			if len(b) < at+64 && !final {
				return spans, min(hold, i)
			}
			continue
		}
		if !bytes.Contains(b[at:at+head], []byte("PRIVATE KEY")) {
			continue
		}
		from := at + head + len(pemTail)
		end := bytes.Index(b[from:], []byte(pemEnd))
		switch {
		case end >= 0 && end <= maxPEM:
			end += from
		case len(b)-from < maxPEM && !final:
			return spans, min(hold, i)
		default:
			end = min(len(b), from+maxPEM)
		}
		spans = append(spans, span{from, end})
		at = end
	}
}
