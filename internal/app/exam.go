package app

import (
	"context"

	"github.com/proctor-ci/proctor/internal/guard/exam"
)

// maxScript is how much of a file is read to see what a gate runs.
const maxScript = 1 << 20

// readExam follows the gates of the base commit to the files that they run, so that a change to one of those counts.
func (s *session) readExam(ctx context.Context) *exam.Exam {
	var gates []exam.Gate
	for _, g := range s.gateSpecs() {
		if g.Shown == "" {
			gates = append(gates, exam.Gate{Name: "gates." + string(g.Class), Argv: g.Argv})
		}
	}
	for _, p := range s.cfg.Gates.Probes {
		if len(p.Start.Argv) > 0 {
			gates = append(gates, exam.Gate{Name: "gates.probes", Argv: p.Start.Argv})
		}
	}
	for _, c := range s.cfg.Setup {
		gates = append(gates, exam.Gate{Name: "setup", Argv: c.Argv})
	}
	return exam.Read(gates, func(path string) ([]byte, bool) {
		b, err := s.store.ReadFile(ctx, s.store.Base(), path, maxScript)
		return b, err == nil
	})
}
