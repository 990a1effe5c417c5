package trigger

import "strings"

// normaliseLines turns CRLF and lone CR into LF: browsers send CRLF, APIs return either.
func normaliseLines(s string) string {
	if !strings.ContainsRune(s, '\r') {
		return s
	}
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
}
