package config

func policyKeys() []key {
	return []key{
		{
			path: "policy.protected", example: "[LICENSE, docs/legal/**]", check: checkGlob, field: func(c *Config) any { return &c.Policy.Protected },
			doc: "Files that no candidate may change; one that does ends the run `safety_halt`. `*` does not cross `/`, `**` does.",
		},
		{
			path: "policy.allow", example: "[src/**, tests/**]", check: checkGlob, field: func(c *Config) any { return &c.Policy.Allow },
			doc: "Files that a candidate may change at all.",
		},
		{
			path: "policy.deny", example: "[infra/**]", check: checkGlob, field: func(c *Config) any { return &c.Policy.Deny },
			doc: "Files that a candidate may not change although `allow` holds them.",
		},
		{
			path: "policy.high_risk", example: "[migrations/**]", check: checkGlob, field: func(c *Config) any { return &c.Policy.HighRisk },
			doc: "Files whose change makes the draft a high-risk one, which its evidence says first.",
		},
		{
			path: "policy.max.files", example: "20", min: 1, field: func(c *Config) any { return &c.Policy.Max.Files },
			doc: "How many files a candidate may change.",
		},
		{
			path: "policy.max.lines", example: "500", min: 1, field: func(c *Config) any { return &c.Policy.Max.Lines },
			doc: "How many lines a candidate may add and remove together.",
		},
		{
			path: "policy.max.file_bytes", example: "2MB", min: 1, field: func(c *Config) any { return &c.Policy.Max.FileBytes },
			doc: "How large one changed file may be. A number of bytes, or with KB, MB, KiB or MiB.",
		},
		{
			path: "policy.secrets", example: "flag", allowed: []string{"block", "flag"}, field: func(c *Config) any { return &c.Policy.Secrets },
			doc: "What a secret in the candidate does. `flag` still shows it to the reviewer, masked.",
		},
		{
			path: "policy.test_tampering", example: "flag", allowed: []string{"block", "flag", "off"}, field: func(c *Config) any { return &c.Policy.TestTampering },
			doc: "What deleted or skipped tests, loosened assertions, lowered thresholds and changes to what the gates run do: the scripts, `package.json` entries and Makefile rules that their commands reach. Those may grow, by new cases in the form of the old ones, and lose nothing.",
		},
		{
			path: "sandbox.mode", example: "strict", allowed: []string{"auto", "strict", "off"}, field: func(c *Config) any { return &c.Sandbox.Mode },
			doc: "`auto` enforces what this machine can and says what it could not; `strict` refuses to start when anything is missing; `off` enforces nothing and says so.",
		},
		{
			path: "sandbox.egress", example: "[registry.example.com:443]", check: checkHostPort, field: func(c *Config) any { return &c.Sandbox.Egress },
			doc: "Hosts that the agent, `setup` and the gates may reach besides the model, as host:port. `*.` in front stands for subdomains. They go through a proxy that `HTTP_PROXY` and `HTTPS_PROXY` name, so programs that do not look there reach nothing. It lets HTTP and TLS through, never to an address inside the runner or its cloud, and each host that was asked for is in the record. In a proof only `setup` has it: what a gate needs from outside, `setup` has to fetch.",
		},
	}
}

func publishKeys() []key {
	return []key{
		{
			path: "publish.branch", example: "bot/{number}", check: checkBranchPattern, field: func(c *Config) any { return &c.Publish.Branch },
			doc: "The branch that is pushed; `{number}` is the issue's.",
		},
		{
			path: "publish.base", example: "develop", check: optional(checkBranch), field: func(c *Config) any { return &c.Publish.Base },
			doc: "The branch the draft is opened against. Empty: the default branch.",
		},
		{
			path: "publish.history", example: "squash", allowed: []string{"ticks", "squash"}, field: func(c *Config) any { return &c.Publish.History },
			doc: "One commit for each tick, or a single one, which is made before the proof.",
		},
		{
			path: "publish.signing", example: "required", allowed: []string{"auto", "required", "off"}, field: func(c *Config) any { return &c.Publish.Signing },
			doc: "Whether the forge signs the commits, which then have other ids and the same trees. GitHub does for a job's own token and an App's. `auto` signs where it can be done and says where it cannot; with `required` nothing unsigned is published, and what can be known is asked before anything is spent; `off` pushes the proved commits as they are.",
		},
		{
			path: "publish.reviewers", example: "[octocat, my-org/maintainers]", check: checkPerson, field: func(c *Config) any { return &c.Publish.Reviewers },
			doc: "Who is asked to review the draft.",
		},
		{
			path: "publish.assignees", example: "[octocat]", check: checkPerson, field: func(c *Config) any { return &c.Publish.Assignees },
			doc: "Who the draft is assigned to.",
		},
		{
			path: "publish.labels", example: "[automated]", check: checkLabel, field: func(c *Config) any { return &c.Publish.Labels },
			doc: "Further labels of the draft.",
		},
		{
			path: "fix.max_rounds", example: "1", max: 100, field: func(c *Config) any { return &c.Fix.MaxRounds },
			doc: "How many rounds one draft gets: a review that requests changes starts one, so does the command fix, and so does CI that fails with on_check_failure. 0: none.",
		},
		{
			path: "fix.stale_base", example: "off", allowed: []string{"merge", "off"}, field: func(c *Config) any { return &c.Fix.StaleBase },
			doc: "What a round does where the default branch has moved since the draft's branch left it: merge it into the branch (a conflict that marks can show is the agent's to settle, any other a person's; all gates run again on the whole), or off to refuse. History that people have reviewed is never rewritten.",
		},
		{
			path: "fix.on_check_failure", example: "true", field: func(c *Config) any { return &c.Fix.OnCheckFailure },
			doc: "Start a round when the draft's own CI fails for a commit that a run pushed: for its failing jobs, within max_rounds, on the account of whoever asked for the work. It takes the webhook with PROCTOR_CHECK_FAILURES, or workflow_run in the workflow.",
		},
	}
}
