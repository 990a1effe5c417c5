package guard

import (
	"errors"
	"fmt"

	"github.com/proctor-ci/proctor/internal/guard/exam"
	"github.com/proctor-ci/proctor/internal/guard/secrets"
)

// ForgeFileLimit is what GitHub refuses in a push, whatever a policy allows
// (docs.github.com, "About large files on GitHub"). GitLab.com's default is the same.
const ForgeFileLimit int64 = 100 << 20

// Globs is a compiled list of patterns. Match says which of them holds for a path.
type Globs interface {
	Match(path string) (pattern string, ok bool)
}

// Rules are the policy of the base commit, compiled. Those that forbid must fold as policy.Fold does: on a
// case-insensitive checkout `.GitHub/` is `.github/`.
type Rules struct {
	// Always is the list that holds whatever a user writes: workflows, this product's config, gates,
	// rubric, agent instruction files. It is required, so that it cannot be forgotten.
	Always    Globs
	Protected Globs // nil: nothing more
	Sealed    Globs // nil: nothing
	Allow     Globs // nil: everything
	Deny      Globs // nil: nothing
	HighRisk  Globs // nil: nothing

	MaxFiles     int   // 0: no limit
	MaxLines     int   // added and removed together; 0: no limit
	MaxFileBytes int64 // 0: the forge's limit only

	Secrets       string // "block" (or empty) or "flag"
	TestTampering string // "block" (or empty), "flag" or "off"

	// Exam is what the gates of the base commit run; what takes power from it counts as test tampering. nil: nothing known.
	Exam *exam.Exam

	// Known are values that the harness itself holds; they are found in any of the usual encodings.
	Known []secrets.Known
}

func (r Rules) validate() error {
	if r.Always == nil {
		return errors.New("guard rules: the list of always-protected paths is missing; compile it with the policy package and set Always")
	}
	switch r.Secrets {
	case "", "block", "flag":
	default:
		return fmt.Errorf("guard rules: policy.secrets is %q; write block or flag", r.Secrets)
	}
	switch r.TestTampering {
	case "", "block", "flag", "off":
	default:
		return fmt.Errorf("guard rules: policy.test_tampering is %q; write block, flag or off", r.TestTampering)
	}
	if r.MaxFiles < 0 || r.MaxLines < 0 || r.MaxFileBytes < 0 {
		return errors.New("guard rules: policy.max holds a negative number; write 0 for no limit")
	}
	return nil
}

// fileLimit is the size above which a blob is refused, and never read.
func (r Rules) fileLimit() int64 {
	if r.MaxFileBytes > 0 && r.MaxFileBytes < ForgeFileLimit {
		return r.MaxFileBytes
	}
	return ForgeFileLimit
}
