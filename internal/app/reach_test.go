package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// INV-7: an agent whose program its user cannot get at is told by name before anything is spent. Where the harness is no
// root the agent is its own user, and with the sandbox off as well: both can enter what is theirs.
func TestAnAgentBehindAClosedDoorIsToldBeforeTheFirstCall(t *testing.T) {
	for _, c := range []struct {
		name, sandbox, argv string
		shut                bool
	}{
		{name: "by its path", sandbox: "auto", argv: "@DIR@/home/bin/my-agent", shut: true},
		{name: "control: the door is open", sandbox: "auto", argv: "@DIR@/home/bin/my-agent"},
		{name: "control: sandbox off", sandbox: "off", argv: "@DIR@/home/bin/my-agent", shut: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := open(t, setting{config: map[string]string{
				"agent": "{name: command, args: ['" + c.argv + "']}", "sandbox": "{mode: " + c.sandbox + "}", "gates": visibleGates,
			}})
			home := filepath.Join(w.dir, "home")
			if err := os.MkdirAll(filepath.Join(home, "bin"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(home, "bin", "my-agent"), []byte("#!/bin/sh\necho right for sure > app/answer.txt\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			root := os.Geteuid() == 0
			if c.shut {
				if err := os.Chmod(home, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if c.shut && root {
				if err := os.Chown(home, 12345, 12345); err != nil {
					t.Fatal(err)
				}
			}
			if !c.shut || !root || c.sandbox == "off" {
				w.label().ended("done", 0, "proctor:review")
				return
			}
			j := w.label().ended("agent_unavailable", 5, "proctor:failed").says("cannot enter "+home, "chmod o+x "+home)
			if len(j.rec.Ticks) != 0 || len(j.rec.Baseline) != 0 || len(w.model.Calls()) != 0 {
				t.Errorf("%d ticks and %d gates ran first", len(j.rec.Ticks), len(j.rec.Baseline))
			}
		})
	}
}

// What the machine holds less tightly is in the record as that, and told once.
func TestTheRecordSaysWhichPartsOfTheConfinementAreOptional(t *testing.T) {
	w := open(t, setting{plan: []tick{{reply(allRight)}}})
	j := w.label().ended("done", 0, "proctor:review")
	optional := 0
	for _, e := range j.rec.Confinement {
		if e.Optional {
			optional++
		}
		said := strings.Count(string(j.run.Log), "here: "+e.Name+" (")
		if want := map[bool]int{true: 0, false: 1}[e.Active]; said != want {
			t.Errorf("%s (active: %v) is told %d times in the log", e.Name, e.Active, said)
		}
	}
	if optional != 4 {
		t.Errorf("%d optional parts, want the four namespaces: %+v", optional, j.rec.Confinement)
	}
	off := again(t, setting{plan: []tick{{reply(allRight)}}, config: map[string]string{"sandbox": "{mode: off}"}})
	for _, e := range off.label().ended("done", 0, "proctor:review").rec.Confinement {
		if e.Optional {
			t.Errorf("with the sandbox off nothing holds what %s would", e.Name)
		}
	}
}
