package secrets

import (
	"path"
	"strings"

	"github.com/proctor-ci/proctor/internal/pattern"
)

// A value that is assigned to a name which says that it is secret. Only values that look random count: a
// person's password that is a word cannot be told from any other word.

// nameWords are what such names hold. The words that are too common alone need a second one: see secretName.
func nameWords() *keywords {
	k := &keywords{}
	for _, w := range []string{"secret", "token", "passw", "passphrase", "pwd", "key", "cred"} {
		k.add(w, 0)
	}
	return k
}

var (
	secretName    = pattern.Of(`(?i)secret|token|passw(?:or)?d|passphrase|pwd|(?:api|access|auth|private|client|signing|encryption|master)[_.-]?key|credential|creds`)
	notSecretName = pattern.Of(`(?i)(?:public|hash|digest|checksum|sha\d+|[_.-]?(?:ids?|names?|ur[li]s?|paths?|files?|types?|lengths?|size|fields?|headers?|prefix|suffix|patterns?|regex|endpoint|format|labels?|placeholder|hint|title|text|message|errors?|arn|ttl|expir\w*|count|index|algorithm|issuer|audience|kind|class|version|ref|store))$|public|checksum|integrity|fingerprint`)
)

func isConfigFile(name string) bool {
	base := strings.ToLower(path.Base(name))
	switch path.Ext(base) {
	case ".env", ".yml", ".yaml", ".properties", ".ini", ".cfg", ".conf", ".toml", ".tfvars", ".sh", ".envrc", ".npmrc", ".txt":
		return true
	}
	return strings.HasPrefix(base, ".env") || strings.HasPrefix(base, "dockerfile") || base == "makefile"
}

// assignments finds names that say they are secret and what is assigned to them.
type assignments struct{ words *keywords }

func (a assignments) scan(text string, unquoted bool, found func(at int, value string)) {
	done := 0
	for _, p := range a.words.in(text, 1)[0] {
		if p < done {
			continue
		}
		from, to := p, p
		for from > 0 && p-from < 60 && inName(text[from-1]) {
			from--
		}
		for to < len(text) && to-p < 60 && inName(text[to]) {
			to++
		}
		done = to
		name := text[from:to]
		at, value, ok := assigned(text, to, unquoted)
		if ok && secretName.MatchString(name) && !notSecretName.MatchString(name) && looksRandom(value) && !strings.Contains(strings.ToLower(value), strings.ToLower(name)) {
			found(at, value)
		}
	}
}

func inName(c byte) bool { return isWord(c) || c == '.' || c == '-' }

func isQuote(c byte) bool { return c == '"' || c == '\'' || c == '`' }

// assigned reads what follows a name: a closing quote or bracket, a sign, a value.
func assigned(text string, i int, unquoted bool) (at int, value string, ok bool) {
	skip := func(most int, in string) {
		for n := 0; n < most && i < len(text) && strings.IndexByte(in, text[i]) >= 0; n++ {
			i++
		}
	}
	skip(2, "\"'`]")
	skip(3, " \t")
	sign := i
	skip(3, ":=>")
	equals := i > sign
	if !equals {
		skip(1, "(,")
	}
	if i == sign {
		return 0, "", false
	}
	skip(3, " \t")
	for n := 0; n < 2; n++ { // a string's prefix: b"…", rb"…"
		if i+n+1 < len(text) && isLetter(text[i]) && (n == 0 || isLetter(text[i+1])) && isQuote(text[i+n+1]) {
			i += n + 1
			break
		}
	}
	if i < len(text) && isQuote(text[i]) {
		at = i + 1
		end := at
		for end < len(text) && end-at <= 256 && !isQuote(text[end]) && text[end] > ' ' {
			end++
		}
		return at, text[at:end], end < len(text) && isQuote(text[end])
	}
	if !unquoted || !equals {
		return 0, "", false
	}
	at = i
	end := at
	for end < len(text) && end-at <= 256 && text[end] > ' ' && strings.IndexByte("\"'#;,", text[end]) < 0 {
		end++
	}
	rest, _, _ := strings.Cut(text[end:min(len(text), end+200)], "\n")
	rest = strings.TrimSpace(rest)
	return at, text[at:end], rest == "" || rest[0] == '#'
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

var (
	uuid       = pattern.Of(`(?i)^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	alphabet   = pattern.Of(`^[A-Za-z0-9+/=_.~!@#$%^&*:-]+$`)
	hexOnly    = pattern.Of(`^[0-9a-fA-F]+$`)
	humanWords = pattern.Of(`(?i)test|fake|dummy|mock|sample|example|token|secret|passw|user|name|value|config|service|account|client|server|admin|default|local|demo|change|your|insert|replace|todo|null|true|false|hash|data|valid|expired|unknown|wrong|some|super|this|that|with|from|into|here|should|never|please|foo|bar|baz|hello|world|string|type|file|path|http|json|yaml|html`)
	parts      = pattern.Of(`[-_./:=]+`)
	wordy      = pattern.Of(`^(?:[A-Za-z]+\d{0,4}|\d{1,4}|v\d+)?$`)
)

// looksRandom says whether a value is one a machine made up.
func looksRandom(value string) bool {
	if len(value) < 16 || len(value) > 256 || isPlaceholder(value) || uuid.MatchString(value) || !alphabet.MatchString(value) || strings.Contains(value, "://") {
		return false
	}
	if hexOnly.MatchString(value) {
		return len(value) >= 24 && entropy(value) >= 3 && countDigits(value) >= 4
	}
	if humanWords.MatchString(value) || countDigits(value) < 2 || !strings.ContainsFunc(value, func(r rune) bool { return r < 0x80 && isLetter(byte(r)) }) {
		return false
	}
	if strings.HasPrefix(value, "/") || strings.HasPrefix(value, "./") || strings.HasPrefix(value, "sha") {
		return false
	}
	allWords := true
	for _, p := range parts.Split(value, -1) {
		allWords = allWords && wordy.MatchString(p)
	}
	return !allWords && entropy(value) >= 3.4
}

func countDigits(s string) int {
	n := 0
	for i := range len(s) {
		if s[i] >= '0' && s[i] <= '9' {
			n++
		}
	}
	return n
}

var userinfo = pattern.Of("^://[^\\s:/@\"'`<>]{0,64}:([^\\s/@\"'`<>]{8,200})@[a-zA-Z0-9.-]+")

// scanURLs finds passwords that stand in a URL (postgres://user:…@host).
func scanURLs(text string, found func(at int, value string)) {
	for from := 0; ; {
		i := strings.Index(text[from:], "://")
		if i < 0 {
			return
		}
		at := from + i
		from = at + 3
		m := userinfo.FindStringSubmatchIndex(text[at:min(len(text), at+400)])
		if m == nil {
			continue
		}
		value := text[at+m[2] : at+m[3]]
		if !isPlaceholder(value) && !humanWords.MatchString(value) && countDigits(value) >= 2 && entropy(value) >= 2.8 {
			found(at+m[2], value)
		}
	}
}
