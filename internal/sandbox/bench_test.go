//go:build linux

package sandbox_test

import (
	"testing"

	"github.com/proctor-ci/proctor/internal/sandbox"
)

// BenchmarkATree is the whole life of the smallest tree, with namespaces and without.
func BenchmarkATree(b *testing.B) {
	for _, c := range []struct {
		name    string
		mode    sandbox.Mode
		pretend sandbox.Capability
	}{
		{"namespaces", sandbox.Auto, sandbox.Capability{}},
		{"no namespaces", sandbox.Auto, weaker},
		{"no network namespace", sandbox.Auto, sandbox.Capability{Without: sandbox.Namespaces{Network: true}}},
		{"no process namespace", sandbox.Auto, sandbox.Capability{Without: sandbox.Namespaces{Processes: true}}},
		{"no private /tmp", sandbox.Auto, sandbox.Capability{Without: sandbox.Namespaces{Temp: true}}},
		{"off", sandbox.Off, sandbox.Capability{}},
	} {
		b.Run(c.name, func(b *testing.B) {
			l := newLab(b, sandbox.Config{Pretend: c.pretend, Mode: c.mode})
			cmd := l.command("true")
			for b.Loop() {
				if r, err := l.box.Run(b.Context(), cmd); err != nil || r.ExitCode != 0 {
					b.Fatalf("%+v %v", r, err)
				}
			}
		})
	}
}
