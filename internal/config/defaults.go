package config

import (
	"time"

	"github.com/proctor-ci/proctor/internal/money"
)

// Default is the configuration of a repository without a file, and what each key means when a file
// leaves it out. Gates are empty: package detect proposes them.
func Default() Config {
	return Config{
		Version:   1,
		Agent:     Agent{Name: "claude-code", Timeout: 20 * time.Minute, Prestart: true},
		Prompt:    Prompt{Anchors: []string{"AGENTS.md", "CLAUDE.md"}, Comments: "writers"},
		Workspace: Workspace{},
		Gates: Gates{
			Acceptance: Acceptance{Attempts: 2, Feedback: "none", MustFailOnBase: "auto"},
			Timeout:    10 * time.Minute,
			Stability:  2,
		},
		Plan:   Plan{From: "off", File: "PLAN.md"},
		Prove:  Prove{TestsFailFirst: "warn"},
		Review: Review{Enabled: true, API: "auto"},
		Stops: Stops{
			MaxTicks:         10,
			MaxCost:          5 * money.Dollar,
			MaxDuration:      45 * time.Minute,
			NoProgressAfter:  3,
			ReviewStallAfter: 4,
			PlanStallAfter:   3,
		},
		Budget: Budget{
			PerIssue:    20 * money.Dollar,
			PerDay:      50 * money.Dollar,
			PerActorDay: 20 * money.Dollar,
			Unpriced:    "refuse",
		},
		Trigger: Trigger{Label: "proctor", Roles: []string{"admin", "maintain", "write"}, Commands: "/proctor", MaxOpen: 3},
		Policy: Policy{
			Allow:         []string{"**"},
			Max:           Max{Files: 100, Lines: 3000, FileBytes: 1_000_000},
			Secrets:       "block",
			TestTampering: "block",
		},
		Sandbox: Sandbox{Mode: "auto"},
		Publish: Publish{Branch: "proctor/issue-{number}", History: "ticks", Signing: "auto"},
		Fix:     Fix{MaxRounds: 2, StaleBase: "merge"},
	}
}
