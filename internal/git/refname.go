package git

import (
	"fmt"
	"strings"
)

// checkRefName applies git's own rules for a full ref name (git-check-ref-format(1)), and refuses what
// a command line or a refspec would read otherwise.
func checkRefName(name string) error {
	bad := func(why string) error { return fmt.Errorf("ref name %q: %s", name, why) }
	if !strings.HasPrefix(name, "refs/") || len(name) > 255 {
		return bad("give a full name such as refs/heads/topic, at most 255 bytes")
	}
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "":
			return bad("it has an empty component")
		case strings.HasPrefix(part, "."), strings.HasSuffix(part, ".lock"):
			return bad("a component may neither begin with a dot nor end in .lock")
		}
	}
	for _, seq := range []string{"..", "@{"} {
		if strings.Contains(name, seq) {
			return bad("it holds " + seq)
		}
	}
	for i := range len(name) {
		if c := name[i]; c <= ' ' || c == 0x7f || strings.IndexByte(`~^:?*[\`, c) >= 0 {
			return bad(fmt.Sprintf("it holds the character %q", c))
		}
	}
	if strings.HasSuffix(name, ".") {
		return bad("it ends in a dot")
	}
	return nil
}
