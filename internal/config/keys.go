package config

func sections() []section {
	return []section{
		{path: "", doc: "The file as a whole."},
		{path: "agent", doc: "Which coding agent works on the issue, and how it is called.", short: "name"},
		{path: "prompt", doc: "What the agent reads besides the issue."},
		{path: "workspace", doc: "What a work tree holds besides the tracked files of the base commit."},
		{path: "gates", doc: "The commands whose exit codes decide. They are read from the base commit."},
		{path: "gates.acceptance", doc: "The held-out gate: it runs only in the pristine checkout, on files the agent never sees.", short: "run"},
		{path: "gates.acceptance.source", doc: "Held-out files of another repository of the same forge, or of another ref of this one. They are fetched with the run's token before anything is spent, lie where neither the agent nor the visible gates can read them, and are laid over the checkout in which the held-out gate runs."},
		{path: "plan", doc: "A checklist that the run works through, one item a tick. Every item has to be ticked off by the harness before the run can be done.", short: "from"},
		{path: "prove", doc: "Further proofs."},
		{path: "review", doc: "The judge, a second model that reads the diff behind green gates. It can reject, never make a gate green."},
		{path: "stops", doc: "What ends a run."},
		{path: "budget", doc: "What bounds money beyond one run, and how models are priced."},
		{path: "trigger", doc: "Who may ask for a run, and with what."},
		{path: "policy", doc: "What a change may touch. Workflow files, this file, gates, rubric and agent instruction files are protected whatever stands here."},
		{path: "policy.max", doc: "How large a change may be."},
		{path: "sandbox", doc: "The confinement of the agent and of gates.", short: "mode"},
		{path: "publish", doc: "What the result looks like on the forge. It is always a draft."},
		{path: "fix", doc: "What the loop does about its own pull request."},
	}
}

func keys() []key {
	var all []key
	for _, part := range [][]key{agentKeys(), gateKeys(), stopKeys(), policyKeys(), publishKeys()} {
		all = append(all, part...)
	}
	return all
}

// agentNames are the adapters that can be written down. What this build has no adapter for, package agent refuses by name.
func agentNames() []string {
	return []string{"anthropic", "claude-code", "codex", "command", "copilot", "gemini", "openai", "opencode", "script"}
}

func agentKeys() []key {
	return []key{
		{
			path: "version", example: "1", min: 1, max: 1, field: func(c *Config) any { return &c.Version },
			doc: "Version of this file's format.",
		},
		{
			path: "agent.name", example: "codex", allowed: agentNames(), field: func(c *Config) any { return &c.Agent.Name },
			doc: "The agent's adapter. `proctor doctor` lists those it can start here.",
		},
		{
			path: "agent.model", example: "claude-opus-4-8", check: optional(checkModel), field: func(c *Config) any { return &c.Agent.Model },
			doc: "The model the agent works with. Empty: the adapter's own default.",
		},
		{
			path: "agent.args", example: `["--verbose"]`, field: func(c *Config) any { return &c.Agent.Args },
			doc: "Further arguments for the agent's command line. `command`: the program and its arguments. `script`: the path of its plan. `anthropic` and `openai`: `--max-turns=N`, `--max-output=TOKENS`, `--context=TOKENS`, and for `openai` `--api=responses` or `--api=chat` and `--effort=WORD`. `opencode` and `copilot`: `--api=responses` or `--api=chat`, `--context=TOKENS`, `--max-output=TOKENS`.",
		},
		{
			path: "agent.timeout", example: "30m", field: func(c *Config) any { return &c.Agent.Timeout },
			doc: "How long one call of the agent may take before it and all it started are ended.",
		},
		{
			path: "agent.prestart", example: "false", field: func(c *Config) any { return &c.Agent.Prestart },
			doc: "Start the next call's process while visible gates run, so that its start is not waited for. It waits for its prompt on stdin, confined, without a request, and is ended where no further tick comes. For `claude-code`, `codex`, `anthropic` and `openai`; the others are started when they are needed, since they do not wait for their prompt or nobody knows whether they do.",
		},
		{
			path: "agent.choices", example: "[claude-code, codex]", allowed: agentNames(), field: func(c *Config) any { return &c.Agent.Choices },
			doc: "Agents that the input of a dispatch or a comment may choose instead of `agent.name`.",
		},
		{
			path: "agent.models", example: "[claude-sonnet-4-5]", check: checkModel, field: func(c *Config) any { return &c.Agent.Models },
			doc: "Models that the input of a dispatch or a comment may choose instead of `agent.model`.",
		},
		{
			path: "prompt.anchors", example: "[AGENTS.md]", check: checkPath, field: func(c *Config) any { return &c.Prompt.Anchors },
			doc: "Instruction files of the repository that the agent is given, read from the base commit. One that is missing is left out. They are protected.",
		},
		{
			path: "prompt.comments", example: "none", allowed: []string{"writers", "none"}, field: func(c *Config) any { return &c.Prompt.Comments },
			doc: "Whose comments on the issue the agent reads: those of people with write access, or none.",
		},
		{
			path: "setup", example: "[npm ci]", field: func(c *Config) any { return &c.Setup },
			doc: "Commands that make a fresh checkout ready for the gates, in order. Each is a line of shell or a list of arguments.",
		},
		{
			path: "workspace.carry", example: "[node_modules]", check: checkPath, field: func(c *Config) any { return &c.Workspace.Carry },
			doc: "Ignored folders that the agent's and the gate's work tree get from the checkout, so that `setup` need not run there. Never given to the proof.",
		},
		{
			path: "workspace.submodules", example: "true", field: func(c *Config) any { return &c.Workspace.Submodules },
			doc: "Fetch the submodules of the base commit and show their files, to the gates of a proof too. Addresses come from .gitmodules of the base commit: on the run's own forge they are fetched with its token, elsewhere over https without one. No change of them is ever pushed; submodules of submodules stay empty.",
		},
		{
			path: "workspace.lfs", example: "true", field: func(c *Config) any { return &c.Workspace.LFS },
			doc: "Not there yet, and refused: large files are shown and pushed as the pointers that the commit holds, byte for byte. Where gates need their content, let an earlier step of the job fetch it into an ignored folder and name that under `workspace.carry`.",
		},
	}
}

func gateKeys() []key {
	return []key{
		{
			path: "gates.iteration", example: "npm test", field: func(c *Config) any { return &c.Gates.Iteration },
			doc: "Runs at every tick; what it prints when it fails is the agent's feedback. A line of shell, or a list of arguments. Empty: proposed from the repository.",
		},
		{
			path: "gates.acceptance.run", example: "npm run test:acceptance", field: func(c *Config) any { return &c.Gates.Acceptance.Run },
			doc: "The held-out gate's command. The agent hears no more than that it failed. Empty: there is none.",
		},
		{
			path: "gates.acceptance.sealed", example: "[tests/acceptance/**]", check: checkGlob, field: func(c *Config) any { return &c.Gates.Acceptance.Sealed },
			doc: "Files that only the proof sees. They are protected too.",
		},
		{
			path: "gates.acceptance.parts", example: "[npm run test:limits, npm run test:errors]", field: func(c *Config) any { return &c.Gates.Acceptance.Parts },
			doc: "Further held-out commands, run after `run`. Each is a gate of its own, so that `feedback: count` has something to count.",
		},
		{
			path: "gates.acceptance.source.repo", example: "acme/exams", check: optional(checkRepository), field: func(c *Config) any { return &c.Gates.Acceptance.Source.Repo },
			doc: "The repository, on the same forge; the run's token has to be able to read it. Empty: this repository.",
		},
		{
			path: "gates.acceptance.source.ref", example: "held-out", check: optional(checkRef), field: func(c *Config) any { return &c.Gates.Acceptance.Source.Ref },
			doc: "A branch, a tag, a full ref name or a commit id. The commit it stood on is recorded. Empty: the default branch.",
		},
		{
			path: "gates.acceptance.source.path", example: "exams/till", check: optional(checkPath), field: func(c *Config) any { return &c.Gates.Acceptance.Source.Path },
			doc: "A folder of the source whose files are laid over the root of the checkout. Empty: all files of the source, at their own paths.",
		},
		{
			path: "gates.acceptance.dir", example: "input", check: optional(checkHeldDir), field: func(c *Config) any { return &c.Gates.Acceptance.Dir },
			doc: "Held-out files in a directory that the job provides outside the checkout. `input`: its path is the input `acceptance-dir` (GitLab: the variable `PROCTOR_ACCEPTANCE_DIR`; on a command line `--acceptance-dir`), which is better than an absolute path here, since the agent reads this file. It is copied once, before the first tick.",
		},
		{
			path: "gates.acceptance.overwrite", example: "true", field: func(c *Config) any { return &c.Gates.Acceptance.Overwrite },
			doc: "Whether held-out files of `source` or `dir` may replace files that the base commit has at the same path. Without it such a file ends the run before anything is spent, for the proof would not test what the candidate says there. Files that only the candidate has give way in any case, and the record says how many did.",
		},
		{
			path: "gates.acceptance.attempts", example: "1", min: 1, max: 100, field: func(c *Config) any { return &c.Gates.Acceptance.Attempts },
			doc: "How often a candidate may fail the held-out gate before the run ends `overfit`.",
		},
		{
			path: "gates.acceptance.feedback", example: "count", allowed: []string{"none", "count"}, field: func(c *Config) any { return &c.Gates.Acceptance.Feedback },
			doc: "What the agent hears of a failure: that it failed, or also how many of the held-out gates did (`run`, `parts` and probes; two or more are needed). Nothing that a gate prints is read for it. Each attempt then tells more than one bit about the exam, so keep `attempts` low.",
		},
		{
			path: "gates.acceptance.must_fail_on_base", example: "always", allowed: []string{"auto", "always", "never"},
			field: func(c *Config) any { return &c.Gates.Acceptance.MustFailOnBase },
			doc:   "Whether the held-out gate has to fail on the base commit before anything is spent. `auto`: a gate that passes there ends the run `already_satisfied` when no other gate is red.",
		},
		{
			path: "gates.regression", example: "npm run test:all", field: func(c *Config) any { return &c.Gates.Regression },
			doc: "Has to pass on the base commit and still pass on the candidate. Empty: there is none.",
		},
		{
			path: "gates.probes", example: `[{name: serves, http: {start: npm start, url: "http://127.0.0.1:3000/health"}}]`, field: func(c *Config) any { return &c.Gates.Probes },
			doc: "Gates that are checks of ours instead of commands: no file of the repository can stand for one. What they start runs confined like any gate, and they reach it on loopback inside that confinement.",
		},
		{
			path: "gates.timeout", example: "5m", field: func(c *Config) any { return &c.Gates.Timeout },
			doc: "How long one gate may take before it and all it started are ended.",
		},
		{
			path: "gates.stability", example: "3", min: 1, max: 20, field: func(c *Config) any { return &c.Gates.Stability },
			doc: "How often each gate runs on the unchanged base first. Runs that disagree end the run `gate_flaky` before anything is spent.",
		},
		{
			path: "plan.from", example: "issue", allowed: []string{"off", "issue", "file", "auto"}, field: func(c *Config) any { return &c.Plan.From },
			doc: "Where the items come from: the issue's own task list, the checklist of `plan.file`, or with `auto` the file where the base commit has one with open items, else the issue. With `auto`, and with an issue that has no open task, a run without items goes on without a plan.",
		},
		{
			path: "plan.file", example: "docs/PLAN.md", check: checkPath, field: func(c *Config) any { return &c.Plan.File },
			doc: "The checklist, Markdown with `- [ ]` lines, read from the base commit. A run never changes it: what the agent ticks off there counts as its claim only.",
		},
		{
			path: "prove.tests_fail_first", example: "require", allowed: []string{"off", "warn", "require"}, field: func(c *Config) any { return &c.Prove.TestsFailFirst },
			doc: "Whether tests that the agent adds have to fail on the base code, by an assertion. They are run there, without the rest of the change, when the visible gates are green. `warn`: what came of it stands in the pull request. `require`: anything but failed assertions bars `done` and is fed back. That is known for go test, pytest, unittest, jest, vitest, mocha, node:test, cargo, JUnit under Maven and Gradle, RSpec and minitest; what another runner prints counts as unknown, never as proof. A change that adds no test is let through: nothing was added that could prove nothing.",
		},
		{
			path: "review.enabled", example: "false", field: func(c *Config) any { return &c.Review.Enabled },
			doc: "Ask the judge before the proof.",
		},
		{
			path: "review.model", example: "claude-sonnet-4-5", check: optional(checkModel), field: func(c *Config) any { return &c.Review.Model },
			doc: "The judge's model. Empty: the judge's own default, a model of Anthropic's.",
		},
		{
			path: "review.api", example: "chat", allowed: []string{"auto", "anthropic", "responses", "chat", "gemini"}, field: func(c *Config) any { return &c.Review.API },
			doc: "The API that `review.model` is asked over: Anthropic Messages, OpenAI Responses, Chat Completions of OpenAI or of any compatible server, Gemini. `auto`: by the model's name, `gpt-…`, `codex-…`, `o3` and the like by Responses, `gemini-…` by Gemini, all others by Anthropic Messages. The job needs that API's key.",
		},
		{
			path: "review.criteria", example: "[docs/rubric.md]", check: checkPath, field: func(c *Config) any { return &c.Review.Criteria },
			doc: "Files with the criteria the judge applies, read from the base commit. They are protected.",
		},
		{
			path: "review.command", example: "./scripts/review", field: func(c *Config) any { return &c.Review.Command },
			doc: "A program that judges instead of the built-in judge. It reads one JSON object on stdin (`user` holds the issue, the criteria and the diff; `nonce` has to come back; `schema` is the shape of the answer), prints a verdict and exits 0: anything else is no verdict. It runs confined like a gate, without a key, in a checkout of the base commit. Empty: the built-in judge.",
		},
	}
}

func stopKeys() []key {
	return []key{
		{
			path: "stops.max_ticks", example: "5", min: 1, max: 1000, field: func(c *Config) any { return &c.Stops.MaxTicks },
			doc: "How many ticks a run may take.",
		},
		{
			path: "stops.max_cost_usd", example: "2.50", field: func(c *Config) any { return &c.Stops.MaxCost },
			doc: "What a run may spend, the judge included. It is reserved before each model call.",
		},
		{
			path: "stops.max_duration", example: "1h30m", field: func(c *Config) any { return &c.Stops.MaxDuration },
			doc: "How long a run may take. Keep the CI job's own time-out above it.",
		},
		{
			path: "stops.no_progress_after", example: "2", min: 1, max: 1000, field: func(c *Config) any { return &c.Stops.NoProgressAfter },
			doc: "Ticks without progress (same tree, same failure, or a cycle) that end a run.",
		},
		{
			path: "stops.review_stall_after", example: "2", min: 1, max: 1000, field: func(c *Config) any { return &c.Stops.ReviewStallAfter },
			doc: "Rejections by the judge in a row that end a run.",
		},
		{
			path: "stops.plan_stall_after", example: "2", min: 1, max: 1000, field: func(c *Config) any { return &c.Stops.PlanStallAfter },
			doc: "Ticks in a row without an item of the plan getting done that end a run.",
		},
		{
			path: "budget.per_issue_usd", example: "10", field: func(c *Config) any { return &c.Budget.PerIssue },
			doc: "What all runs of one issue may spend together.",
		},
		{
			path: "budget.per_day_usd", example: "100", field: func(c *Config) any { return &c.Budget.PerDay },
			doc: "What all runs of the repository may spend in a day (UTC).",
		},
		{
			path: "budget.per_actor_day_usd", example: "25", field: func(c *Config) any { return &c.Budget.PerActorDay },
			doc: "What the runs that one person asked for may spend in a day (UTC).",
		},
		{
			path: "budget.unpriced", example: "allow", allowed: []string{"refuse", "allow"}, field: func(c *Config) any { return &c.Budget.Unpriced },
			doc: "What happens with `agent.model` or `review.model` when its price is unknown. `allow`: only time and ticks bound the run. Any other model without a price is refused.",
		},
		{
			path: "budget.price", example: "{my-model: {input: 3, output: 15}}", field: func(c *Config) any { return &c.Budget.Price },
			doc: "Prices of models that the built-in table does not know, in US dollars per million tokens: `input` and `output`, and `cache_read` and `cache_write` where the provider has them.",
		},
		{
			path: "trigger.label", example: "proctor", check: checkLabel, field: func(c *Config) any { return &c.Trigger.Label },
			doc: "The label that asks for a run. Its state is told by labels of the same name with `:running`, `:review`, `:needs-human` or `:failed` behind it.",
		},
		{
			path: "trigger.roles", example: "[admin, maintain]", allowed: []string{"admin", "maintain", "write"}, field: func(c *Config) any { return &c.Trigger.Roles },
			doc: "Roles that may ask. On GitLab: Owner, Maintainer, Developer.",
		},
		{
			path: "trigger.bots", example: "[41898282]", min: 1, field: func(c *Config) any { return &c.Trigger.Bots },
			doc: "Bots that may ask, and whose comments and reviews are heard where a person's would be, by account id. A login can be imitated, an id cannot. Their role counts as a person's does; Proctor's own account never asks.",
		},
		{
			path: "trigger.commands", example: "/proctor", check: checkCommandPrefix, field: func(c *Config) any { return &c.Trigger.Commands },
			doc: "What a comment command begins with.",
		},
		{
			path: "trigger.max_open", example: "5", min: 1, max: 1000, field: func(c *Config) any { return &c.Trigger.MaxOpen },
			doc: "How many drafts of the loop may be open at a time; further runs are refused until one is closed. Runs under way do not count, so requests made at one time can open more.",
		},
	}
}

// optional lets a text be written as "", where that means something.
func optional(check func(string) error) func(string) error {
	return func(s string) error {
		if s == "" {
			return nil
		}
		return check(s)
	}
}
