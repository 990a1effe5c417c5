package trigger

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Options are the product's names in one installation. Empty fields take DefaultLabel and
// DefaultPrefix.
type Options struct {
	Label  string // the trigger label
	Prefix string // what a comment command starts with
	Self   Actor  // our own account, as far as it is known: ID, Login or both
}

// The names a fresh installation has.
const (
	DefaultLabel  = "proctor"
	DefaultPrefix = "/proctor"
)

func (o Options) withDefaults() Options {
	if o.Label == "" {
		o.Label = DefaultLabel
	}
	if o.Prefix == "" {
		o.Prefix = DefaultPrefix
	}
	return o
}

// Is reports whether a and b are the same account. Ids decide where both are known; the login is
// the fallback, compared without case as both forges do. Two unknown accounts are not the same.
func (a Actor) Is(b Actor) bool {
	if a.ID != 0 && b.ID != 0 {
		return a.ID == b.ID
	}
	return a.Login != "" && strings.EqualFold(a.Login, b.Login)
}

// sameLabel compares label names as GitHub does, which keeps one label per name without case.
func sameLabel(a, b string) bool { return strings.EqualFold(a, b) }

// decode reads body into the few fields that v names. Unknown members are skipped but checked as
// JSON; trailing bytes, a BOM and anything but an object are malformed; a bad UTF-8 byte becomes
// U+FFFD. Member names match by case: an attacker-chosen "Label" must not stand in for "label".
func decode(body []byte, v any) error {
	if first := bytes.TrimLeft(body, " \t\r\n"); len(first) == 0 || first[0] != '{' {
		return malformed("the body is not a JSON object")
	}
	if err := json.Unmarshal(body, v, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)); err != nil {
		return malformed("%w", err)
	}
	return nil
}
