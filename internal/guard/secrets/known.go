package secrets

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"
)

// knownValue is a value with the forms in which it may stand in a file.
type knownValue struct {
	name, value string
	forms       []string
}

func encodeKnown(k Known) knownValue {
	raw := []byte(k.Value)
	forms := []string{k.Value, url.QueryEscape(k.Value), url.PathEscape(k.Value), hex.EncodeToString(raw), strings.ToUpper(hex.EncodeToString(raw)), reversed(k.Value)}
	for shift := range 3 {
		// Base64 of a longer text that holds the value: the characters that do not depend on the neighbours.
		padded := append(make([]byte, shift), raw...)
		padded = padded[:len(padded)-len(padded)%3]
		for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			if inner := enc.EncodeToString(padded); shift == 0 {
				forms = append(forms, inner)
			} else {
				forms = append(forms, inner[4:])
			}
		}
	}
	forms = slices.DeleteFunc(forms, func(f string) bool { return len(f) < 8 })
	slices.Sort(forms)
	return knownValue{name: k.Name, value: k.Value, forms: slices.Compact(forms)}
}

// index is where any form begins, or -1.
func (k knownValue) index(text string) int {
	for _, f := range k.forms {
		if at := strings.Index(text, f); at >= 0 {
			return at
		}
	}
	return -1
}

func reversed(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}
