package detect

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/proctor-ci/proctor/internal/pattern"
)

// manifest is what package.json says that matters here. Unknown shapes void a field, not the file.
type manifest struct {
	Scripts         map[string]string `json:"scripts"`
	PackageManager  string            `json:"packageManager"`
	Dependencies    map[string]any    `json:"dependencies"`
	DevDependencies map[string]any    `json:"devDependencies"`
	Workspaces      any               `json:"workspaces"`
}

// noTest is what npm init writes: it always fails, so it is no test.
var noTest = pattern.Of(`no test specified`)

var jsTests = pattern.Of(`(^|/)(__tests__/.*|[^/]+[._](test|spec))\.[cm]?[jt]sx?$`)

func node(t *tree, dir string) (stack, bool) {
	file := t.first(dir, "package.json")
	if file == "" {
		return stack{}, false
	}
	var m manifest
	_ = json.Unmarshal([]byte(t.read(file)), &m)
	manager, install := t.nodeManager(dir, m)
	s := stack{name: "node", evidence: []string{file}, setup: []command{install}, carry: "node_modules"}
	if len(m.Dependencies)+len(m.DevDependencies) == 0 && install.confidence == Guess {
		s.setup, s.carry = nil, "" // nothing to install
	}
	script := func(names ...string) (string, bool) {
		for _, n := range names {
			if line := strings.TrimSpace(m.Scripts[n]); line != "" && !noTest.MatchString(line) {
				return n, true
			}
		}
		return "", false
	}
	if n, ok := script("test", "test:unit", "unit"); ok {
		s.test = command{line: runScript(manager, n), evidence: []string{file}, confidence: Sure}
	} else if runner := m.runner(); runner != "" {
		s.test = command{line: exec(manager) + " " + runner, evidence: []string{file}, confidence: Likely}
	} else if tests := t.match(dir, jsTests); manager == "bun" && len(tests) > 0 {
		s.test = command{line: "bun test", evidence: tests, confidence: Likely}
	}
	further := func(about string, names ...string) {
		if n, ok := script(names...); ok {
			s.more = append(s.more, command{line: runScript(manager, n), evidence: []string{file}, confidence: Sure}.fact(about, stack{name: "node", dir: dir}))
		}
	}
	further(Acceptance, "test:acceptance", "acceptance")
	further(Regression, "test:all", "test:ci", "test:regression")
	if tool := t.first(dir, "pnpm-workspace.yaml", "lerna.json", "nx.json", "turbo.json", "rush.json"); tool != "" || m.Workspaces != nil {
		if tool == "" {
			tool = file
		}
		s.more = append(s.more, Fact{About: Monorepo, Value: "node workspaces", Stack: "node", Dir: dir, Evidence: []string{tool}, Confidence: Sure})
	}
	return s, true
}

// nodeManager reads the manager from the lock file, which is what CI installs from.
func (t *tree) nodeManager(dir string, m manifest) (string, command) {
	named, version, _ := strings.Cut(m.PackageManager, "@")
	berry := t.first(dir, ".yarnrc.yml") != "" || (named == "yarn" && !strings.HasPrefix(version, "1."))
	yarn := "yarn install --frozen-lockfile"
	if berry {
		yarn = "yarn install --immutable"
	}
	var found []string
	var manager, line string
	for _, c := range []struct{ lock, manager, line string }{
		{"bun.lock", "bun", "bun install --frozen-lockfile"},
		{"bun.lockb", "bun", "bun install --frozen-lockfile"},
		{"pnpm-lock.yaml", "pnpm", "pnpm install --frozen-lockfile"},
		{"yarn.lock", "yarn", yarn},
		{"npm-shrinkwrap.json", "npm", "npm ci"},
		{"package-lock.json", "npm", "npm ci"},
	} {
		lock := t.first(dir, c.lock)
		if lock == "" {
			continue
		}
		found = append(found, lock)
		if manager == "" || c.manager == named {
			manager, line = c.manager, c.line
		}
	}
	switch {
	case len(found) == 1 || (len(found) > 1 && manager == named):
		return manager, command{line: line, evidence: found, confidence: Sure}
	case len(found) > 1:
		return manager, command{line: line, evidence: found, confidence: Guess} // two managers' locks
	case slices.Contains([]string{"pnpm", "yarn", "bun"}, named):
		return named, command{line: named + " install", evidence: t.has(dir, "package.json"), confidence: Likely}
	}
	return "npm", command{line: "npm install", evidence: t.has(dir, "package.json"), confidence: Guess}
}

func runScript(manager, name string) string {
	switch {
	case manager == "bun": // "bun test" is bun's own runner
		return "bun run " + name
	case name == "test":
		return manager + " test"
	}
	return manager + " run " + name
}

func exec(manager string) string {
	switch manager {
	case "pnpm":
		return "pnpm exec"
	case "yarn":
		return "yarn run"
	case "bun":
		return "bunx"
	}
	return "npx --no-install"
}

// runner is a test runner among the dependencies, as a command that ends by itself.
func (m manifest) runner() string {
	for _, r := range []struct{ dep, line string }{
		{"vitest", "vitest run"},
		{"jest", "jest"},
		{"mocha", "mocha"},
		{"ava", "ava"},
		{"@playwright/test", "playwright test"},
	} {
		if m.DevDependencies[r.dep] != nil || m.Dependencies[r.dep] != nil {
			return r.line
		}
	}
	return ""
}

func deno(t *tree, dir string) (stack, bool) {
	file := t.first(dir, "deno.json", "deno.jsonc")
	if file == "" || t.first(dir, "package.json") != "" {
		return stack{}, false
	}
	s := stack{name: "deno", evidence: []string{file}}
	s.test = command{line: "deno test", evidence: []string{file}, confidence: Likely}
	if t.says(file, pattern.Of(`"tasks"\s*:\s*\{[^}]*"test"\s*:`)) {
		s.test = command{line: "deno task test", evidence: []string{file}, confidence: Sure}
	}
	return s, true
}
