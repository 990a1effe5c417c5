package meter

import (
	"net/http"
	"strings"
	"unicode"
)

// op is what a served request asks for.
type op int

const (
	opCall op = iota + 1 // a model call that is paid for
	opFree               // counting tokens: forwarded, not booked
)

// dialect is what the meter must know of one vendor's API. Each has a file of its own.
type dialect interface {
	// owns says whether a path is of this API, served or not: so that a refusal has its shape.
	owns(path string) bool
	// route tells what a request is, and its path and query behind the provider's base URL.
	route(r *http.Request) (kind op, path, query string, ok bool)
	authorize(h http.Header, cred Credential)
	requestHeader(name string) bool  // canonical name, beside the common ones
	responseHeader(name string) bool // likewise
	// ask reads a request once and strictly: a second reading of the same bytes must not differ.
	ask(r *http.Request, body []byte) (ask, error)
	counter(stream bool) counter
	fail(w http.ResponseWriter, f failure)
}

// shownKey is what a client shows as its key, in whichever header its API has for it.
func shownKey(h http.Header) string {
	for _, name := range []string{"X-Api-Key", "X-Goog-Api-Key"} {
		if v := h.Get(name); v != "" {
			return v
		}
	}
	scheme, v, _ := strings.Cut(h.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "Bearer") {
		return v
	}
	return ""
}

// ask is what a request wants, as far as it decides about money.
type ask struct {
	model             string
	maxOutput         int64
	open              bool // the request caps no output: maxOutput is the largest that any model gives
	bytes             int64
	images, documents int64
	cache, longCache  bool
}

// Tokens that a request may cost beyond its bytes. The provider adds a system text of its own, and
// pictures and documents are counted by what they show, not by their size.
const (
	hiddenTokens   = 8_192
	imageTokens    = 8_000
	documentTokens = 1_000_000
)

// Some clients leave the cap on the output to the provider. Such a call can cost openOutput tokens, and
// that is what holds the ceiling; it is reserved at openReserve, which few answers reach.
const (
	openOutput  = 131_072
	openReserve = 32_768
)

// capOutput notes how much output a request allows; 0 tokens is no cap of its own.
func (a *ask) capOutput(tokens int64) {
	if tokens <= 0 {
		tokens, a.open = openOutput, true
	}
	a.maxOutput = min(tokens, windowTokens)
}

// estimate is what the call is expected to use at most; limit is what it cannot exceed: a token
// holds at least one byte.
func (a ask) estimate(r Reserve) Usage {
	out := a.maxOutput
	if a.open {
		out = out / openOutput * openReserve
	}
	if r.MaxOutput > 0 {
		out = min(out, r.MaxOutput)
	}
	return a.asUsage(a.bytes/r.BytesPerToken+1+a.images*imageTokens/4+a.documents*documentTokens/20, out)
}

func (a ask) limit() Usage {
	return a.asUsage(a.bytes+hiddenTokens+a.images*imageTokens+a.documents*documentTokens, a.maxOutput)
}

// windowTokens is beyond any model's context window: what a request claims to hold above it cannot
// be run, and would only take the sums below out of their range.
const windowTokens = 2_000_000

// asUsage puts the input where it costs most.
func (a ask) asUsage(in, out int64) Usage {
	in, out = min(in, windowTokens), min(out, windowTokens)
	switch {
	case a.longCache:
		return Usage{CacheWrite1h: in, Output: out}
	case a.cache:
		return Usage{CacheWrite5m: in, Output: out}
	}
	return Usage{Input: in, Output: out}
}

// failure is an answer of the meter's own.
type failure struct {
	status  int
	message string
}

// printable makes client text fit for an error message.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
	if len(s) > 80 {
		s = strings.ToValidUTF8(s[:80], "") + "…"
	}
	return `"` + s + `"`
}
