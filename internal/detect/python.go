package detect

import (
	"path"

	"github.com/proctor-ci/proctor/internal/pattern"
)

var (
	pyTests    = pattern.Of(`(^|/)(test_[^/]+|[^/]+_test)\.py$`)
	saysPytest = pattern.Of(`(?m)\[tool\.pytest|\[pytest\]|\[tool:pytest\]|["'\s]pytest["'\s<>=~!\[,]|^pytest`)
	saysPoetry = pattern.Of(`(?m)^\[tool\.poetry`)
	testExtra  = pattern.Of(`(?m)^(test|tests|testing|dev)\s*=\s*\[`)
)

func python(t *tree, dir string) (stack, bool) {
	markers := t.has(dir, "pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "Pipfile", "tox.ini", "noxfile.py", "manage.py")
	if len(markers) == 0 {
		return stack{}, false
	}
	s := stack{name: "python", evidence: markers}
	prefix, setup, ok := t.pythonManager(dir)
	if ok {
		s.setup = setup
	}
	s.test = t.pythonTest(dir, prefix)
	return s, true
}

// pythonManager is what goes before a command to run it in the project's environment, and what makes
// that environment.
func (t *tree) pythonManager(dir string) (prefix string, setup []command, ok bool) {
	one := func(line string, c Confidence, evidence ...string) []command {
		return []command{{line: line, evidence: evidence, confidence: c}}
	}
	project := t.first(dir, "pyproject.toml")
	if f := t.first(dir, "uv.lock"); f != "" {
		return "uv run ", one("uv sync --locked", Sure, f), true
	}
	if f := t.first(dir, "poetry.lock"); f != "" {
		return "poetry run ", one("poetry install", Sure, f), true
	}
	if project != "" && t.says(project, saysPoetry) {
		return "poetry run ", one("poetry install", Likely, project), true
	}
	if f := t.first(dir, "pdm.lock"); f != "" {
		return "pdm run ", one("pdm install --frozen-lockfile", Sure, f), true
	}
	if f := t.first(dir, "Pipfile.lock"); f != "" {
		return "pipenv run ", one("pipenv sync --dev", Sure, f), true
	}
	if f := t.first(dir, "Pipfile"); f != "" {
		return "pipenv run ", one("pipenv install --dev", Likely, f), true
	}
	for _, f := range t.has(dir, "requirements.txt", "requirements-dev.txt", "dev-requirements.txt", "requirements-test.txt") {
		setup = append(setup, command{line: "python -m pip install -r " + path.Base(f), evidence: []string{f}, confidence: Likely})
	}
	if project == "" {
		project = t.first(dir, "setup.py")
	}
	if project != "" {
		line := "python -m pip install -e ."
		if m := testExtra.FindStringSubmatch(t.read(project)); m != nil {
			line = "python -m pip install -e '.[" + m[1] + "]'"
		}
		setup = append(setup, command{line: line, evidence: []string{project}, confidence: Likely})
	}
	return "", setup, len(setup) > 0
}

func (t *tree) pythonTest(dir, prefix string) command {
	tests := t.match(dir, pyTests)
	for _, f := range t.has(dir, "pytest.ini", "conftest.py", "tests/conftest.py") {
		return command{line: prefix + "pytest", evidence: []string{f}, confidence: Sure}
	}
	for _, f := range t.has(dir, "pyproject.toml", "setup.cfg", "tox.ini", "setup.py", "requirements.txt", "requirements-dev.txt", "dev-requirements.txt", "requirements-test.txt", "Pipfile") {
		if t.says(f, saysPytest) {
			return command{line: prefix + "pytest", evidence: append([]string{f}, tests...), confidence: Sure}
		}
	}
	if f := t.first(dir, "manage.py"); f != "" {
		return command{line: prefix + "python manage.py test", evidence: []string{f}, confidence: Likely}
	}
	if f := t.first(dir, "tox.ini"); f != "" {
		return command{line: prefix + "tox", evidence: []string{f}, confidence: Likely}
	}
	if f := t.first(dir, "noxfile.py"); f != "" {
		return command{line: prefix + "nox", evidence: []string{f}, confidence: Likely}
	}
	if len(tests) > 0 {
		if t.says(tests[0], pattern.Of(`(?m)^\s*(import|from) unittest`)) {
			return command{line: prefix + "python -m unittest discover", evidence: tests, confidence: Likely}
		}
		return command{line: prefix + "python -m pytest", evidence: tests, confidence: Guess}
	}
	return command{}
}
