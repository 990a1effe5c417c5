package app

import (
	"github.com/proctor-ci/proctor/internal/config"
	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/meter"
	"github.com/proctor-ci/proctor/internal/trigger"
)

// request is what a door asks for. From here on there is one path, whichever door it was.
type request struct {
	// parse reads the trigger once the base commit's configuration has said which label and which
	// commands count.
	parse func(config.Config) (trigger.Trigger, error)

	forge    forge.Forge // nil: no forge, the result stays in the checkout
	checkout string
	base     string // commit id or ref; empty: the checkout's HEAD
	ref      string // the ref that the job was started on, "refs/heads/main"; empty: a person's own checkout
	scratch  string // where workspaces are made
	reports  string // where the record goes
	runURL   string
	toolPath string // PATH of the job, for its toolchains
	home     string // the job's HOME
	heldDir  string // directory with held-out files that the job provides; empty: none
	builder  string // where an image builder listens, as DOCKER_HOST is written; empty: none

	stage    stageName // which part of the run this job does
	handover string    // directory with what the agent's job handed over
	verified string    // what the verify job found, as its output has it

	override config.Override
	dryRun   bool
	local    bool // a person at this machine asks: role and label are theirs to know

	key     meter.Credential
	modelAt string // base URL of the Anthropic API
	openAI  meter.Provider
	gemini  meter.Provider
	secrets []string // for the redactor and the guard

	watch func(evidence.Event) // told every event
	speak func(string)         // one line for people
}
