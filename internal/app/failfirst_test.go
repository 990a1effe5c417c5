package app

import (
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/evidence"
)

// The unit under test in Python, wrong on the base, and tests for it that an agent adds.
const (
	wrongTotal  = "def total(prices, member=False):\n    return sum(prices)\n"
	rightTotal  = "def total(prices, member=False):\n    return sum(prices) * (0.9 if member else 1)\n"
	oldTest     = "import unittest\nfrom shop import total\n\n\nclass Total(unittest.TestCase):\n    def test_sum(self):\n        self.assertEqual(total([1, 2]), 3)\n"
	failsFirst  = oldTest + "\n    def test_member(self):\n        self.assertAlmostEqual(total([10], member=True), 9)\n"
	passesFirst = oldTest + "\n    def test_more(self):\n        self.assertEqual(total([1, 2, 3]), 6)\n"
	cannotLoad  = oldTest + "\n    def test_member(self):\n        from shop import discount\n        self.assertEqual(discount, 0.1)\n"
)

func firstSetting(mode string, plan ...tick) setting {
	return setting{
		files: map[string]string{"shop.py": wrongTotal, "tests/__init__.py": "", "tests/test_total.py": oldTest, "tests/run.sh": "", "sealed/check.sh": ""},
		plan:  plan,
		config: map[string]string{
			"gates": "{iteration: python3 -m unittest tests.test_total, timeout: 30s, stability: 1}", "prove": "{tests_fail_first: " + mode + "}",
			"stops": "{max_ticks: 2, no_progress_after: 3, max_cost_usd: 1, max_duration: 5m}",
		},
	}
}

func TestAddedTestsHaveToFailOnTheBaseCodeWhereThatIsRequired(t *testing.T) {
	// INV-31
	fix, tests := write("shop.py", rightTotal), func(text string) tick { return tick{write("shop.py", rightTotal), write("tests/test_total.py", text)} }
	for _, c := range []struct {
		name, mode string
		plan       []tick
		end        string
		exit       int
		label      string
		verdicts   []string // per tick
		level      string   // of the finding in the first tick; "" none
	}{
		{"required, and they do", "require", []tick{tests(failsFirst)}, "done", 0, "proctor:review", []string{"assertion"}, ""},
		{"required, and they pass", "require", []tick{tests(passesFirst)}, "tick_cap", 2, "proctor:needs-human", []string{"passed", "passed"}, "block"},
		{"required, and they do not get to their assertion", "require", []tick{{write("shop.py", rightTotal+"\n\ndiscount = 0.1\n"), write("tests/test_total.py", cannotLoad)}}, "tick_cap", 2, "proctor:needs-human", []string{"error", "error"}, "block"},
		{"required, and the second attempt does", "require", []tick{tests(passesFirst), tests(failsFirst)}, "done", 0, "proctor:review", []string{"passed", "assertion"}, "block"},
		{"required, and none was added", "require", []tick{{fix}}, "done", 0, "proctor:review", []string{"none"}, ""},
		{"warn, and they pass", "warn", []tick{tests(passesFirst)}, "done", 0, "proctor:review", []string{"passed"}, "flag"},
		{"the control: off", "off", []tick{tests(passesFirst)}, "done", 0, "proctor:review", []string{""}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := open(t, firstSetting(c.mode, c.plan...))
			j := w.label().ended(c.end, c.exit, c.label)
			for i, want := range c.verdicts {
				got := ""
				if f := j.rec.Ticks[i].First; f != nil {
					got = f.Verdict
				}
				if got != want {
					t.Errorf("tick %d: the added tests: %q, want %q: %+v", i+1, got, want, j.rec.Ticks[i].First)
				}
			}
			if level := findingLevel(j.rec.Ticks[0], "tests-fail-first"); level != c.level {
				t.Errorf("the finding is %q, want %q", level, c.level)
			}
			if c.end != "done" {
				w.unpublished()
				return
			}
			if body := w.hub.Pulls()[0].Body; c.level == "flag" && !strings.Contains(body, "do not test the change") {
				t.Errorf("the pull request says nothing of the added tests:\n%s", body)
			}
		})
	}
}

func findingLevel(t evidence.Tick, rule string) string {
	for _, f := range t.Guard {
		if f.Rule == rule {
			return f.Level
		}
	}
	return ""
}

func TestTheRunOnTheBaseCodeKeepsItsOwnLogAndTheGatesOwn(t *testing.T) {
	w := open(t, firstSetting("require", tick{write("shop.py", rightTotal), write("tests/test_total.py", failsFirst)}))
	j := w.label().ended("done", 0, "proctor:review")
	first, logs := j.rec.Ticks[0].First, readAll(t, j.reports)
	if first == nil || first.Gate == nil || first.Gate.Log == "" || first.Gate.Log == j.rec.Ticks[0].Gates[0].Log {
		t.Fatalf("the run on the base code: %+v; the gate's: %+v", first, j.rec.Ticks[0].Gates)
	}
	said := func(name string) string {
		for path, text := range logs {
			if strings.HasSuffix(path, "/"+name) || path == name {
				return text
			}
		}
		t.Errorf("there is no %s", name)
		return ""
	}
	if got := said(first.Gate.Log); !strings.Contains(got, "FAILED (failures=1)") {
		t.Errorf("the log of the run on the base code:\n%s", got)
	}
	if got := said(j.rec.Ticks[0].Gates[0].Log); !strings.Contains(got, "OK") || strings.Contains(got, "FAILED") {
		t.Errorf("the log of the gate:\n%s", got)
	}
}
