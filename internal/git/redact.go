package git

import (
	"encoding/base64"
	"net/url"
	"regexp"
	"strings"
)

// userinfo finds credentials in a URL wherever git repeats one in its messages.
var userinfo = regexp.MustCompile(`(://)[^/@\s'"]+@`)

// redact removes every secret, also base64 and URL encoded, and the user part of every URL, and makes
// control characters harmless but for line breaks and tabs.
func redact(text string, secrets []string) string {
	for _, secret := range secrets {
		if secret == "" {
			continue
		}
		for _, form := range []string{secret, url.QueryEscape(secret), url.PathEscape(secret), base64.StdEncoding.EncodeToString([]byte(secret))} {
			text = strings.ReplaceAll(text, form, "[redacted]")
		}
	}
	text = userinfo.ReplaceAllString(text, "${1}[redacted]@")
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, text)
}
