package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Fingerprint names a failure so that the same one is known again: over reruns it is equal, for another
// failure it differs. What varies without meaning is normalised (durations, times, addresses, ports,
// process numbers, seeds, temporary paths, hashes, line numbers, which move when a file is edited), and
// so is the order of lines. What a test expected and got stays. A sealed result is known by its status
// alone.
func Fingerprint(r Result) string {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%s\n%s\n", r.Class, r.Status)
	if !r.Sealed && r.Output != nil {
		_, _ = fmt.Fprintf(h, "%d %s\n", r.ExitCode, r.Signal)
		for _, line := range normalLines(clean(r.Output)) {
			_, _ = fmt.Fprintln(h, line)
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:32]
}

func normalLines(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		line = normalLine(line)
		if line != "" {
			out = append(out, line)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func normalLine(line string) string {
	for _, n := range noise() {
		line = n.what.ReplaceAllString(line, n.with)
	}
	return strings.Join(strings.Fields(line), " ")
}

type replacement struct {
	what *regexp.Regexp
	with string
}

// noise is applied in order: what contains numbers of its own kind comes before plainer ones.
var noise = sync.OnceValue(func() []replacement {
	rs := []struct{ what, with string }{
		// Go's and the C library's, mktemp's and pytest's temporary places; the name below stays.
		{`(/private)?(/var/folders/[^/\s]+/[^/\s]+/[A-Z]|/var/tmp|/tmp|/dev/shm)(/[^\s/:"')\]]+)*`, "TMP"},
		{`\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b`, "UUID"},
		{`\b\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d([.,]\d+)?)?(Z|[+-]\d\d:?\d\d)?)?\b`, "TIME"},
		{`\b\d{4}/\d\d/\d\d \d\d:\d\d:\d\d(\.\d+)?\b`, "TIME"},
		{`\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? [A-Za-z0-9: ,]*\d\d:\d\d(:\d\d)?( [A-Z]{2,4})?( \d{4})?\b`, "TIME"},
		{`\b\d{1,2}:\d\d:\d\d([.,]\d+)?\b`, "TIME"},
		{`\b0x[0-9a-fA-F]+\b`, "ADDRESS"},
		{`\b(127\.0\.0\.1|0\.0\.0\.0|localhost|\[::1?\]):\d+\b`, "$1:PORT"},
		{`(?i)\bport[ :=]+\d+\b`, "port PORT"},
		{`(?i)\b(pid|process|tid|thread|goroutine|worker|gw)[ :=#]*\d+\b`, "$1 N"},
		{`(?i)\b(seed|shuffle|random order|rand)\b[^0-9\n]{0,12}\d+\b`, "$1 N"},
		{`\bgithub-[0-9]+|\[\d{3,}\]|\(\d{4,}\)`, "N"},
		{`(?i)\b\d+(\.\d+)?\s?(ns|µs|μs|us|ms|secs?|seconds?|mins?|minutes?|hours?|[smh])\b`, "DURATION"},
		{`\(cached\)`, "DURATION"},
		{`\b\d+(\.\d+)?\s?(bytes|[KMG]i?B|B)(/s|/op)?\b`, "SIZE"},
		{`\b[0-9a-f]{12,64}\b`, "HASH"},
		{`(\.[A-Za-z][A-Za-z0-9]{0,5})(:\d+)+\b`, "$1:LINE"},
		{`\.([A-Za-z][A-Za-z0-9]{0,5})\(\d+(,\d+)?\)`, ".$1:LINE"},
		{`(?i)\b(line|row|column|col) \d+\b`, "$1 LINE"},
		{`\+ADDRESS\b`, ""},
	}
	out := make([]replacement, len(rs))
	for i, r := range rs {
		out[i] = replacement{regexp.MustCompile(r.what), r.with}
	}
	return out
})
