package exam

import (
	"path"
	"regexp"
	"strings"

	"github.com/proctor-ci/proctor/internal/guard/tamper"
)

// shadow is a kind of file that a runner reads or loads without being told, so that adding one changes every gate
// that starts the runner.
type shadow struct {
	tools  []string // any of them is started by a gate; nil: any gate
	match  *regexp.Regexp
	text   *regexp.Regexp // has to occur in the new lines; nil: the file itself is enough
	change bool           // a changed file counts as well as a new one
	what   string
}

func shadows() []shadow {
	re := regexp.MustCompile
	python := []string{"python", "pypy", "pytest", "py.test", "tox", "nox", "unittest", "coverage", "nose"}
	node := []string{"npm", "pnpm", "yarn", "bun", "node", "nodejs", "jest", "vitest", "mocha", "ava", "tsx"}
	return []shadow{
		{tools: python, match: re(`(?:^|/)(?:sitecustomize|usercustomize)(?:\.py|/__init__\.py)$|\.pth$`), what: "Python runs this file at every start, before any test"},
		{tools: python, match: re(`^(?:[^/]+/)?(?:_?pytest|pluggy|iniconfig|unittest|doctest|coverage|nose2?|tox|nox|pytest_\w+)(?:\.py$|/)`), what: "Python would load this file instead of the runner's own module"},
		{tools: []string{"pytest", "py.test", "tox", "coverage"}, match: re(`(?:^|/)\.?pytest\.ini$`), what: "pytest would read this file instead of its configuration"},
		{tools: []string{"pytest", "py.test"}, match: re(`(?:^|/)(?:tox\.ini|setup\.cfg|pyproject\.toml)$`), text: re(`\[(?:tool[:.])?pytest`), change: true, what: "pytest's configuration was added here"},
		{tools: node, match: re(`(?:^|/)(?:\.npmrc|\.yarnrc(?:\.yml)?|\.pnpmfile\.cjs|bunfig\.toml|\.env)$`), text: re(`(?i)script-?shell|node[-_]?options|ignore-?scripts|if-?present|preload|yarn-?path|npm_config`), change: true, what: "the package manager would run the gate's scripts in another way"},
		{tools: node, match: re(`(?:^|/)node_modules/`), what: "a program or module of that name would run instead of the installed one"},
		{tools: []string{"jest", "npm", "pnpm", "yarn"}, match: re(`(?:^|/)jest\.config\.\w+$`), what: "jest would read this file"},
		{tools: []string{"vitest", "npm", "pnpm", "yarn"}, match: re(`(?:^|/)vitest\.(?:config|workspace)\.\w+$`), what: "vitest would read this file"},
		{tools: []string{"mocha", "npm", "pnpm", "yarn"}, match: re(`(?:^|/)\.mocharc(?:\.\w+)?$`), what: "mocha would read this file"},
		{tools: []string{"go"}, match: re(`(?:^|/)go\.work$`), what: "go would build another set of modules"},
		{tools: []string{"cargo"}, match: re(`(?:^|/)\.cargo/config(?:\.toml)?$`), change: true, what: "cargo's aliases, runner and flags come from this file"},
		{tools: []string{"rspec", "bundle", "rake"}, match: re(`(?:^|/)\.rspec(?:-local)?$`), change: true, what: "rspec's options come from this file"},
		{match: re(`(?:^|/)\.(?:bashrc|bash_profile|profile|bash_env|shrc|kshrc|zshenv)$`), what: "a shell may run this file at its start"},
	}
}

// shadows says whether a file would come between a gate and what it runs.
func (e *Exam) shadows(f tamper.File) []tamper.Sign {
	if !f.Is || len(e.tools) == 0 {
		return nil
	}
	var out []tamper.Sign
	for _, s := range shadows() {
		switch {
		case f.Was && !s.change, !s.match.MatchString(f.Path):
			continue
		case s.tools != nil && !e.uses(s.tools...):
			continue
		case s.text != nil && len(s.text.FindAll(f.After, -1)) <= len(s.text.FindAll(f.Before, -1)):
			continue
		}
		out = append(out, tamper.Sign{Path: f.Path, Detail: "between a gate and its runner: " + s.what, Next: putBack})
	}
	if e.namesProgram(f) {
		out = append(out, tamper.Sign{Path: f.Path, Detail: "between a gate and its runner: a program of a name that a gate starts", Next: "give it another name", Weak: true})
	}
	return out
}

// namesProgram: a new file that is called like a runner. It only runs where PATH has its directory, which ours has
// not; a script may put it there.
func (e *Exam) namesProgram(f tamper.File) bool {
	name := path.Base(f.Path)
	if f.Was || strings.Contains(name, ".") {
		return false
	}
	return e.uses(name) && !isShell(name) || name == "sh" || name == "bash"
}
