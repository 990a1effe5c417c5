package detect

import (
	"path"
	"slices"
	"strings"

	"github.com/proctor-ci/proctor/internal/pattern"
)

var (
	goTests = pattern.Of(`_test\.go$`)
	goUse   = pattern.Of(`(?m)^\s*(?:use\s+)?(\./[A-Za-z0-9_./-]*|\.)\s*$`)
)

func golang(t *tree, dir string) (stack, bool) {
	if work := t.first(dir, "go.work"); work != "" {
		s := stack{name: "go", evidence: []string{work}}
		var patterns []string
		for _, m := range goUse.FindAllStringSubmatch(t.read(work), -1) {
			patterns = append(patterns, strings.TrimSuffix(m[1], "/")+"/...")
		}
		if len(patterns) > 0 {
			s.test = command{line: "go test " + strings.Join(patterns, " "), evidence: []string{work}, confidence: Sure}
		}
		s.more = []Fact{{About: Monorepo, Value: "go workspace", Stack: "go", Dir: dir, Evidence: []string{work}, Confidence: Sure}}
		return s, true
	}
	file := t.first(dir, "go.mod")
	if file == "" {
		return stack{}, false
	}
	s := stack{name: "go", evidence: []string{file}}
	tests := t.match(dir, goTests)
	s.test = command{line: "go test ./...", evidence: append([]string{file}, tests...), confidence: Sure}
	if len(tests) == 0 {
		// It would be green over nothing.
		s.test.confidence = Guess
	}
	return s, true
}

func rust(t *tree, dir string) (stack, bool) {
	file := t.first(dir, "Cargo.toml")
	if file == "" {
		return stack{}, false
	}
	s := stack{name: "rust", evidence: []string{file}}
	line := "cargo test"
	if t.says(file, pattern.Of(`(?m)^\[workspace\]`)) {
		line += " --workspace"
		s.more = []Fact{{About: Monorepo, Value: "cargo workspace", Stack: "rust", Dir: dir, Evidence: []string{file}, Confidence: Sure}}
	}
	if t.first(dir, "Cargo.lock") != "" {
		line += " --locked"
	}
	s.test = command{line: line, evidence: t.has(dir, "Cargo.toml", "Cargo.lock"), confidence: Sure}
	return s, true
}

func swift(t *tree, dir string) (stack, bool) {
	return simple(t, dir, "swift", "Package.swift", "", "swift test")
}

func zig(t *tree, dir string) (stack, bool) {
	s, ok := simple(t, dir, "zig", "build.zig", "", "zig build test")
	if ok && !t.says(s.evidence[0], pattern.Of(`\.step\("test"`)) {
		s.test = command{}
	}
	return s, ok
}

// simple is a stack whose one marker says it all.
func simple(t *tree, dir, name, marker, setup, test string) (stack, bool) {
	file := t.first(dir, marker)
	if file == "" {
		return stack{}, false
	}
	s := stack{name: name, evidence: []string{file}, test: command{line: test, evidence: []string{file}, confidence: Likely}}
	if setup != "" {
		s.setup = []command{{line: setup, evidence: []string{file}, confidence: Likely}}
	}
	return s, true
}

func cmake(t *tree, dir string) (stack, bool) {
	file := t.first(dir, "CMakeLists.txt")
	if file == "" {
		return stack{}, false
	}
	s := stack{name: "cmake", evidence: []string{file}}
	s.setup = []command{{line: "cmake -S . -B build", evidence: []string{file}, confidence: Likely}}
	for _, f := range append([]string{file}, t.match(dir, pattern.Of(`^tests?/CMakeLists\.txt$`))...) {
		if t.says(f, pattern.Of(`(?im)^\s*(enable_testing|add_test|include\s*\(\s*CTest|gtest_discover_tests|catch_discover_tests)\b`)) {
			s.test = command{line: "cmake --build build && ctest --test-dir build --output-on-failure", evidence: []string{f}, confidence: Sure}
			break
		}
	}
	return s, true
}

func meson(t *tree, dir string) (stack, bool) {
	s, ok := simple(t, dir, "meson", "meson.build", "meson setup build", "meson test -C build")
	return s, ok
}

func bazel(t *tree, dir string) (stack, bool) {
	file := t.first(dir, "MODULE.bazel", "WORKSPACE.bazel", "WORKSPACE")
	if file == "" {
		return stack{}, false
	}
	return stack{name: "bazel", evidence: []string{file}, test: command{line: "bazel test //...", evidence: []string{file}, confidence: Likely}}, true
}

func terraform(t *tree, dir string) (stack, bool) {
	files := t.match(dir, pattern.Of(`^[^/]+\.tf$`))
	if len(files) == 0 {
		return stack{}, false
	}
	s := stack{name: "terraform", evidence: files}
	s.setup = []command{{line: "terraform init -backend=false -input=false", evidence: files, confidence: Likely}}
	if tests := t.match(dir, pattern.Of(`^(tests/)?[^/]+\.tftest\.(hcl|json)$`)); len(tests) > 0 {
		s.test = command{line: "terraform test", evidence: tests, confidence: Sure}
	} else {
		s.test = command{line: "terraform validate", evidence: files, confidence: Guess}
	}
	return s, true
}

// makeTarget finds a target with a recipe or a prerequisite: an empty one proves nothing.
var makeTarget = pattern.Of(`(?m)^(test|check|tests)\s*:(?:[^=\n]*\S.*|[ \t]*\n\t.*\S.*)$`)

var justRecipe = pattern.Of(`(?m)^test(?:\s+[^:=]*)?:(?:[^=].*)?\n[ \t]+\S`)

var taskRecipe = pattern.Of(`(?m)^tasks:(?:\n.*)*?\n {2}test:`)

// runner is the project's own word for all its tests.
func (t *tree) runner() (Fact, bool) {
	for _, f := range t.has("", "Makefile", "makefile", "GNUmakefile") {
		if m := makeTarget.FindStringSubmatch(t.read(f)); m != nil {
			return Fact{About: Iteration, Value: "make " + m[1], Stack: "make", Evidence: []string{f}, Confidence: Sure}, true
		}
	}
	for _, f := range t.has("", "justfile", "Justfile", ".justfile") {
		if t.says(f, justRecipe) {
			return Fact{About: Iteration, Value: "just test", Stack: "just", Evidence: []string{f}, Confidence: Sure}, true
		}
	}
	for _, f := range t.has("", "Taskfile.yml", "Taskfile.yaml") {
		if t.says(f, taskRecipe) {
			return Fact{About: Iteration, Value: "task test", Stack: "task", Evidence: []string{f}, Confidence: Sure}, true
		}
	}
	return Fact{}, false
}

// layout adds what the folders tell: acceptance tests to seal, files whose change is a risk, several projects.
func (p *Proposal) layout(t *tree, found, nested []stack) {
	seen := map[string]bool{}
	for _, f := range t.files {
		dir := path.Dir(f)
		for d := dir; d != "." && d != "/"; d = path.Dir(d) {
			if seen[d] {
				break
			}
			seen[d] = true
			switch {
			case d == "acceptance" || strings.HasSuffix(d, "/acceptance"):
				p.Facts = append(p.Facts, Fact{About: Sealed, Value: d + "/**", Evidence: []string{f}, Confidence: Likely})
			case path.Base(d) == "migrations" || strings.HasSuffix(d, "db/migrate"):
				p.Facts = append(p.Facts, Fact{About: HighRisk, Value: d + "/**", Evidence: []string{f}, Confidence: Likely})
			}
		}
	}
	for _, f := range t.has("", "LICENSE", "LICENSE.md", "LICENSE.txt", "COPYING") {
		p.Facts = append(p.Facts, Fact{About: Protected, Value: f, Evidence: []string{f}, Confidence: Likely})
	}
	// Members of the root's own kind (a solution's projects, a workspace's crates) are parts of one project.
	nested = slices.DeleteFunc(slices.Clone(nested), func(n stack) bool {
		return slices.ContainsFunc(found, func(s stack) bool { return s.dir == "" && s.name == n.name })
	})
	dirs := map[string]bool{}
	for _, s := range nested {
		dirs[s.dir] = true
	}
	if len(found) > 0 && found[0].dir == "" && len(dirs) > 0 {
		dirs[""] = true
	}
	if len(dirs) > 1 && len(p.about(Monorepo)) == 0 {
		fact := Fact{About: Monorepo, Value: "several projects", Confidence: Likely}
		for _, s := range nested {
			fact.Evidence = append(fact.Evidence, s.evidence[0])
		}
		fact.Evidence = fact.Evidence[:min(len(fact.Evidence), 5)]
		p.Facts = append(p.Facts, fact)
	}
	if len(found) == 0 {
		if f, ok := t.runner(); ok && len(p.about(Stack)) == 0 {
			p.Facts = append(p.Facts, Fact{About: Stack, Value: f.Stack, Stack: f.Stack, Evidence: f.Evidence, Confidence: Sure})
		}
	}
}
