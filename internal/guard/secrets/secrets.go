// Package secrets owns the search for credentials in text. It must never print, store or return a
// value it found: a rule's name, a line and the beginning of a digest are all that leaves it.
//
// The vendors' formats come from gitleaks (MIT, see LICENSE.gitleaks) as data. Its engine as a library was
// measured and left out: 63 modules, 24 MB of resident memory and 38 ms at every start for rules of which
// a change meets two or three. Here a rule is compiled when one of its key words occurs.
package secrets

//go:generate go run -C gen .

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
)

// Known is a value that the harness itself holds, such as the forge's token. Values shorter than eight
// bytes are not looked for: they would be found everywhere.
type Known struct {
	Name  string // printed: "forge token"
	Value string
}

// Hit is one credential.
type Hit struct {
	Rule string // "github-pat"
	Line int    // from 1, in the file as it is
	Via  string // what had to be undone to read it: "base64", "utf-16", … or ""
	sum  [sha256.Size]byte
}

// Digest is the beginning of the SHA-256 of the value, for telling two findings apart.
func (h Hit) Digest() string { return hex.EncodeToString(h.sum[:6]) }

// Key identifies the value across files without holding it.
func (h Hit) Key() [sha256.Size]byte { return h.sum }

// maxHits bounds what one file can cost; more than this is a list of credentials, whichever stands where.
const maxHits = 2000

// Detector is safe for concurrent use.
type Detector struct {
	rules *ruleset
	names assignments
	known []knownValue
}

// New prepares a detector. It compiles nothing yet.
func New(known []Known) (*Detector, error) {
	rules, err := loadRules()
	if err != nil {
		return nil, err
	}
	d := &Detector{rules: rules, names: assignments{nameWords()}}
	for _, k := range known {
		if len(k.Value) >= 8 {
			d.known = append(d.known, encodeKnown(k))
		}
	}
	return d, nil
}

// Scan reads a whole file as text, whatever its name or attributes claim, as it is and with the simple
// encodings undone. Hits are in the order of lines, one per rule and value. The name only tells what an
// unquoted assignment means in a configuration file; no name makes a file exempt, nor does any comment in it.
//
// It does not open archives, images or encrypted data, and cannot know a password that looks like a word.
func (d *Detector) Scan(name string, data []byte) []Hit {
	var hits []Hit
	seen := map[[sha256.Size]byte]bool{}
	var taken []span // of this view: two rules that read the same place are one credential
	add := func(rule string, v view, at int, value string) {
		here := span{at, at + len(value)}
		sum := sha256.Sum256([]byte(value))
		if seen[sum] || len(hits) >= maxHits || slices.ContainsFunc(taken, here.overlaps) {
			return
		}
		seen[sum] = true
		taken = append(taken, here)
		hits = append(hits, Hit{Rule: rule, Line: v.line(at), Via: v.via, sum: sum})
	}
	unquoted := isConfigFile(name)
	for _, v := range views(data) {
		taken = taken[:0]
		for _, k := range d.known {
			if at := k.index(v.text); at >= 0 {
				add("known value: "+k.name, v, at, k.value)
			}
		}
		d.rules.scan(v.text, func(rule string, at int, value string) { add(rule, v, at, value) })
		if !v.loose {
			d.names.scan(v.text, unquoted, func(at int, value string) { add("generic-secret", v, at, value) })
		}
		scanURLs(v.text, func(at int, value string) { add("url-password", v, at, value) })
	}
	slices.SortStableFunc(hits, func(a, b Hit) int { return a.Line - b.Line })
	return hits
}

type span struct{ from, to int }

func (s span) overlaps(o span) bool { return s.from < o.to && o.from < s.to }
