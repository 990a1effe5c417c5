package guard

import (
	"crypto/sha256"
	"fmt"
	"sync"

	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/guard/secrets"
)

type digest = [sha256.Size]byte

// scanner remembers what it found in a blob: most blobs of a candidate were there a tick ago.
type scanner struct {
	detector *secrets.Detector
	mu       sync.Mutex
	seen     map[string][]secrets.Hit
}

func (s *scanner) scan(c Change, id git.ID, text []byte) []secrets.Hit {
	// The name matters to how an unquoted assignment is read, so it is part of the key.
	key := string(id) + " " + base(c.Path)
	s.mu.Lock()
	defer s.mu.Unlock()
	if hits, ok := s.seen[key]; ok {
		return hits
	}
	hits := s.detector.Scan(c.Path, text)
	s.seen[key] = hits
	return hits
}

// known says whether the blob need not be read again.
func (s *scanner) known(c Change, id git.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.seen[string(id)+" "+base(c.Path)]
	return ok
}

func (r Rules) secretFindings(c Change, hits []secrets.Hit, onBase map[digest]bool) []Finding {
	level := Block
	if r.Secrets == "flag" {
		level = Flag
	}
	var out []Finding
	for _, h := range hits {
		if onBase[h.Key()] {
			continue
		}
		detail := fmt.Sprintf("looks like a credential (%s, sha256 %s…", h.Rule, h.Digest())
		if h.Via != "" {
			detail += ", " + h.Via
		}
		out = append(out, Finding{
			Rule: Secret, Level: level, Path: c.Path, Line: h.Line, Detail: detail + ")",
			Next: "take it out of the file; read it from the environment, or build an obviously false value in a test",
		})
	}
	return out
}
