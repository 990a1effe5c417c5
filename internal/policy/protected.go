package policy

// Protected is one entry of what no run may change, whatever the configuration lists (INV-16).
type Protected struct {
	Pattern string
	Why     string // half a sentence for people: "because it …"
}

// AlwaysProtected is what steers this product, the forge's automation, or a coding agent at its next start.
// Patterns that tools read in any directory are listed for any directory.
func AlwaysProtected() []Protected {
	var out []Protected
	for _, g := range []struct {
		why      string
		patterns []string
	}{
		{"it decides how proctor itself judges a run", []string{
			".github/proctor.yml", ".github/proctor.yaml", ".github/proctor/", "proctor.yml", "proctor.yaml", ".proctor.yml", ".proctor.yaml", ".proctor/",
			".gitlab/proctor.yml", ".gitlab/proctor.yaml",
		}},
		{"it runs with the repository's own permissions and secrets", []string{
			".github/workflows/", ".github/actions/", "**/action.yml", "**/action.yaml", ".gitlab-ci.yml", ".gitlab-ci.yaml", ".gitlab/ci/", ".gitlab/agents/",
			".gitlab/duo/", ".forgejo/workflows/", ".gitea/workflows/", ".circleci/", ".travis.yml", "azure-pipelines.yml", "Jenkinsfile", "bitbucket-pipelines.yml",
			".drone.yml", ".woodpecker.yml", ".woodpecker/", ".buildkite/",
		}},
		{"it decides who reviews, what merges by itself or what updates by itself", []string{
			"CODEOWNERS", ".github/CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS", ".github/settings.yml", ".github/dependabot.yml", ".github/dependabot.yaml",
			".github/mergify.yml", ".mergify.yml", ".mergify/", "renovate.json", "renovate.json5", ".renovaterc", ".renovaterc.json", ".github/renovate.json",
			".github/renovate.json5", ".gitlab/renovate.json",
		}},
		{"it makes git fetch, run or hide something", []string{
			"**/.gitmodules", "**/.gitattributes", "**/.git/", "**/.gitconfig", "**/.lfsconfig", ".githooks/", ".husky/", ".pre-commit-config.yaml",
			".pre-commit-config.yml", "lefthook.yml", ".lefthook.yml", "lefthook-local.yml", ".lefthook/",
		}},
		{"a coding agent or reviewer takes it for instructions or configuration at its next start", []string{
			"**/CLAUDE.md", "**/CLAUDE.local.md", "**/.claude/", "**/.claude.json", "**/.mcp.json", "**/.mcp/",
			"**/AGENTS.md", "**/AGENTS.override.md", "**/AGENT.md", "**/.agents/", "**/.codex/",
			"**/GEMINI.md", "**/.gemini/", "**/.geminiignore",
			"**/.cursor/", "**/.cursorrules", "**/.cursorignore", "**/.windsurf/", "**/.windsurfrules", "**/.clinerules", "**/.roo/", "**/.roorules", "**/.kilocode/",
			"**/.aider.conf.yml", "**/.aider.model.settings.yml", "**/.continue/", "**/.junie/", "**/.kiro/", "**/.amazonq/", "**/.trae/",
			"**/opencode.json", "**/opencode.jsonc", "**/.opencode/", "**/.goosehints",
			".github/copilot-instructions.md", ".github/instructions/", ".github/prompts/", ".github/agents/", ".github/chatmodes/", ".github/skills/", ".github/hooks/", "**/.copilot/",
			".github/copilot/", ".coderabbit.yaml", ".coderabbit.yml", "**/.greptile/",
		}},
		{"an editor or shell runs it when somebody opens the branch", []string{
			"**/.vscode/", "**/.envrc", "**/.devcontainer/", "**/.devcontainer.json",
		}},
	} {
		for _, p := range g.patterns {
			out = append(out, Protected{Pattern: p, Why: g.why})
		}
	}
	return out
}

// ProtectedGlobs are AlwaysProtected and the configuration's own patterns, folded. why gives the
// reason for a pattern that Match names. A *PatternError's index is a place in extra.
func ProtectedGlobs(extra []string) (set Globs, why func(pattern string) string, err error) {
	if _, err := Compile(extra, true); err != nil {
		return Globs{}, nil, err
	}
	always := AlwaysProtected()
	reasons := make(map[string]string, len(always))
	patterns := make([]string, 0, len(always)+len(extra))
	for _, p := range always {
		reasons[p.Pattern] = p.Why
		patterns = append(patterns, p.Pattern)
	}
	set, err = Compile(append(patterns, extra...), true)
	if err != nil {
		return Globs{}, nil, err
	}
	return set, func(p string) string {
		if w, ok := reasons[p]; ok {
			return w
		}
		return "the configuration protects it"
	}, nil
}
