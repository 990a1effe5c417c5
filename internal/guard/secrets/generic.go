package secrets

import (
	"path"
	"regexp"
	"strings"
)

// A value that is assigned to a name which says that it is secret. Only values that look random count: a
// person's password that is a word cannot be told from any other word.
var (
	secretName = `([a-zA-Z0-9_.\-]{0,60}(?i:secret|token|passw(?:or)?d|passphrase|pwd|api[_.-]?key|access[_.-]?key|auth[_.-]?key|private[_.-]?key|client[_.-]?key|signing[_.-]?key|encryption[_.-]?key|master[_.-]?key|credentials?|creds)[a-zA-Z0-9_.\-]{0,40})`
	quoted     = regexp.MustCompile(secretName + "[\"'`\\]]{0,2}[ \\t]{0,3}(?:::?|=>|:=|={1,3}|\\(|,)[ \\t]{0,3}(?:[a-zA-Z]{0,2})[\"'`]([^\\s\"'`]{16,256})[\"'`]")
	bare       = regexp.MustCompile(`(?m)` + secretName + `[ \t]{0,3}[:=][ \t]{0,3}([^\s"'#;,]{16,256})(?:[ \t]*(?:#.*)?\r?$)`)
	words      = regexp.MustCompile(`(?i)secret|token|passw|pwd|passphrase|key|cred`)
)

func isConfigFile(name string) bool {
	base := strings.ToLower(path.Base(name))
	switch path.Ext(base) {
	case ".env", ".yml", ".yaml", ".properties", ".ini", ".cfg", ".conf", ".toml", ".tfvars", ".sh", ".envrc", ".npmrc", ".txt":
		return true
	}
	return strings.HasPrefix(base, ".env") || strings.HasPrefix(base, "dockerfile") || base == "makefile"
}

func scanAssignments(text string, unquoted bool, found func(at int, value string)) {
	if !words.MatchString(text) {
		return
	}
	res := []*regexp.Regexp{quoted}
	if unquoted {
		res = append(res, bare)
	}
	for from := 0; from < len(text); {
		to := from + strings.IndexByte(text[from:]+"\n", '\n')
		line := text[from:to]
		if words.MatchString(line) {
			for _, re := range res {
				for _, m := range re.FindAllStringSubmatchIndex(line, -1) {
					name, value := line[m[2]:m[3]], line[m[4]:m[5]]
					if namesSecret(name) && looksRandom(value) {
						found(from+m[4], value)
					}
				}
			}
		}
		from = to + 1
	}
}

var notSecretName = regexp.MustCompile(`(?i)(?:public|hash|digest|checksum|sha\d+|[_.-]?(?:ids?|names?|ur[li]s?|paths?|files?|types?|lengths?|size|fields?|headers?|prefix|suffix|patterns?|regex|endpoint|format|labels?|placeholder|hint|title|text|message|errors?|arn|ttl|expir\w*|count|index|algorithm|issuer|audience|kind|class|version|ref|store))$|public|checksum|integrity|fingerprint`)

func namesSecret(name string) bool { return !notSecretName.MatchString(name) }

var (
	uuid       = regexp.MustCompile(`(?i)^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	alphabet   = regexp.MustCompile(`^[A-Za-z0-9+/=_.~!@#$%^&*:-]+$`)
	hexOnly    = regexp.MustCompile(`^[0-9a-fA-F]+$`)
	humanWords = regexp.MustCompile(`(?i)test|fake|dummy|mock|sample|example|token|secret|passw|user|name|value|config|service|account|client|server|admin|default|local|demo|change|your|insert|replace|todo|null|true|false|hash|data|valid|expired|unknown|wrong|some|super|this|that|with|from|into|here|should|never|please|foo|bar|baz|hello|world|string|type|file|path|http|json|yaml|html`)
	parts      = regexp.MustCompile(`[-_./:]+`)
	wordy      = regexp.MustCompile(`^(?:[A-Za-z]+\d{0,3}|\d{1,4}|v\d+)?$`)
)

// looksRandom says whether a value is one a machine made up.
func looksRandom(value string) bool {
	if len(value) < 16 || isPlaceholder(value) || uuid.MatchString(value) || !alphabet.MatchString(value) || strings.Contains(value, "://") {
		return false
	}
	if hexOnly.MatchString(value) {
		return len(value) >= 24 && entropy(value) >= 3 && countDigits(value) >= 4
	}
	if humanWords.MatchString(value) || countDigits(value) < 2 || !strings.ContainsAny(strings.ToLower(value), "abcdefghijklmnopqrstuvwxyz") {
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

var userinfo = regexp.MustCompile("[a-zA-Z][a-zA-Z0-9+.-]{1,15}://[^\\s:/@\"'`<>]{0,64}:([^\\s/@\"'`<>]{8,200})@[a-zA-Z0-9.-]+")

// scanURLs finds passwords that stand in a URL (postgres://user:…@host).
func scanURLs(text string, found func(at int, value string)) {
	if !strings.Contains(text, "://") || !strings.Contains(text, "@") {
		return
	}
	for _, m := range userinfo.FindAllStringSubmatchIndex(text, -1) {
		value := text[m[2]:m[3]]
		if !isPlaceholder(value) && !humanWords.MatchString(value) && countDigits(value) >= 2 && entropy(value) >= 2.8 {
			found(m[2], value)
		}
	}
}
