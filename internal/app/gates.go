package app

import (
	"fmt"
	"strings"

	"github.com/proctor-ci/proctor/internal/config"
	"github.com/proctor-ci/proctor/internal/gate"
	"github.com/proctor-ci/proctor/internal/loop"
	"github.com/proctor-ci/proctor/internal/probe"
)

// gateSpecs are the gates that are configured, in the order in which a proof runs them: of each class the
// command first, then its probes.
func (s *session) gateSpecs() []gate.Spec {
	g := s.cfg.Gates
	var specs []gate.Spec
	add := func(class gate.Class, name string, c config.Command) {
		if len(c.Argv) > 0 {
			specs = append(specs, gate.Spec{Class: class, Name: name, Argv: c.Argv, Timeout: g.Timeout})
		}
	}
	add(gate.Iteration, "iteration", g.Iteration)
	specs = append(specs, probeSpecs(g, gate.Iteration)...)
	add(gate.Regression, "regression", g.Regression)
	specs = append(specs, probeSpecs(g, gate.Regression)...)
	add(gate.Acceptance, "acceptance", g.Acceptance.Run)
	for i, c := range g.Acceptance.Parts {
		add(gate.Acceptance, fmt.Sprintf("acceptance-%d", i+1), c)
	}
	return append(specs, probeSpecs(g, gate.Acceptance)...)
}

func (s *session) specsOf(class gate.Class) []gate.Spec {
	var out []gate.Spec
	for _, g := range s.gateSpecs() {
		if g.Class == class {
			out = append(out, g)
		}
	}
	return out
}

func probeSpecs(g config.Gates, class gate.Class) []gate.Spec {
	var specs []gate.Spec
	for _, p := range g.Probes {
		if p.As != string(class) {
			continue
		}
		spec := gate.Spec{Class: class, Name: p.Name, Timeout: g.Timeout}
		if p.Timeout > 0 {
			spec.Timeout = p.Timeout
		}
		if p.Kind == imageProbe {
			spec.Argv, spec.Shown = []string{imageArgv, p.File, p.Context}, "probe docker-build "+p.File+" in "+p.Context
		} else {
			check := probeSpec(p)
			spec.Argv, spec.Shown = check.Argv(), check.String()
		}
		specs = append(specs, spec)
	}
	return specs
}

func probeSpec(p config.Probe) probe.Spec {
	return probe.Spec{
		Kind: p.Kind, Start: p.Start.Argv, URL: p.URL, Status: p.Status, Body: p.Body, Address: p.Address,
		Within: p.Within, For: p.For, Path: p.Path, Keys: p.Keys, Contains: p.Contains, Absent: p.Absent,
	}
}

// commandOf is a gate's command as a person reads it.
func commandOf(g gate.Spec) string {
	if g.Shown != "" {
		return g.Shown
	}
	return commandLine(g.Argv)
}

// checkTrivial refuses gates that pass whatever the code is. Of a probe it is what it starts that can be so:
// a command that stays up by doing nothing.
func (s *session) checkTrivial() error {
	for _, g := range s.gateSpecs() {
		if g.Shown != "" {
			continue
		}
		if err := gate.CheckTrivial(g.Argv); err != nil {
			return usage(fmt.Errorf("%s: gates.%s: %w", s.configName(), g.Class, err))
		}
	}
	for _, p := range s.cfg.Gates.Probes {
		if p.Kind == probe.Boots && idles(p.Start.Argv) {
			return usage(fmt.Errorf("%s: gates.probes: probe %q proves nothing: `%s` stays up whatever the code is. Next: write the command that starts the program", s.configName(), p.Name, commandLine(p.Start.Argv)))
		}
	}
	return nil
}

// idles knows the usual commands that wait for ever.
func idles(argv []string) bool {
	if len(argv) == 3 && argv[0] == "sh" && argv[1] == "-c" {
		argv = strings.Fields(strings.TrimPrefix(argv[2], "exec "))
	}
	if len(argv) == 0 {
		return true
	}
	switch argv[0] {
	case "sleep", "cat", "yes", "read", "wait":
		return true
	case "tail":
		return strings.Contains(strings.Join(argv, " "), "/dev/null")
	}
	return false
}

// worst is the result that decides for a class of several gates: of equally bad ones the first. The zero now is that of
// a class of which nothing ran yet.
func worst(now, next loop.GateSeen) loop.GateSeen {
	if now == (loop.GateSeen{}) || rank(next.Status) > rank(now.Status) {
		return next
	}
	return now
}

// rank orders what gates can say. One that cannot run at all ends a run before anything is spent, so no red one that
// happens to stand in front may hide it; no answer is the worst of all.
func rank(s loop.GateStatus) int {
	switch s {
	case loop.GatePassed:
		return 0
	case loop.GateStopped:
		return 1
	case loop.GateFailed:
		return 2
	case loop.GateFlaked:
		return 3
	case loop.GateWasted:
		return 4
	}
	return 5
}

// passedAll tells whether a class may go on to its next gate.
func passedAll(seen loop.GateSeen) bool { return seen.Status == "" || seen.Status == loop.GatePassed }
