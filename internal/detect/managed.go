package detect

import (
	"encoding/json"

	"github.com/proctor-ci/proctor/internal/pattern"
)

func maven(t *tree, dir string) (stack, bool) {
	file := t.first(dir, "pom.xml")
	if file == "" {
		return stack{}, false
	}
	s := stack{name: "maven", evidence: []string{file}}
	line, c := "mvn -B test", Likely
	if t.first(dir, "mvnw") != "" {
		line, c = "./mvnw -B test", Sure
	}
	s.test = command{line: line, evidence: t.has(dir, "pom.xml", "mvnw"), confidence: c}
	if t.says(file, pattern.Of(`<modules>`)) {
		s.more = []Fact{{About: Monorepo, Value: "maven modules", Stack: "maven", Dir: dir, Evidence: []string{file}, Confidence: Sure}}
	}
	return s, true
}

func gradle(t *tree, dir string) (stack, bool) {
	markers := t.has(dir, "build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts")
	if len(markers) == 0 {
		return stack{}, false
	}
	s := stack{name: "gradle", evidence: markers}
	line, c := "gradle test", Likely
	if w := t.first(dir, "gradlew"); w != "" {
		line, c = "./gradlew test", Sure
		markers = append(markers, w)
	}
	s.test = command{line: line, evidence: markers, confidence: c}
	for _, f := range t.has(dir, "settings.gradle", "settings.gradle.kts") {
		if t.says(f, pattern.Of(`(?m)^\s*include\b`)) {
			s.more = []Fact{{About: Monorepo, Value: "gradle projects", Stack: "gradle", Dir: dir, Evidence: []string{f}, Confidence: Sure}}
		}
	}
	return s, true
}

func dotnet(t *tree, dir string) (stack, bool) {
	files := t.match(dir, pattern.Of(`^[^/]+\.(slnx?|csproj|fsproj|vbproj)$`))
	if len(files) == 0 {
		return stack{}, false
	}
	s := stack{name: "dotnet", evidence: files}
	s.setup = []command{{line: "dotnet restore", evidence: files, confidence: Likely}}
	s.test = command{line: "dotnet test", evidence: files, confidence: Guess}
	for _, f := range t.match(dir, pattern.Of(`(?i)test[^/]*\.(cs|fs|vb)proj$`)) {
		s.test = command{line: "dotnet test", evidence: []string{files[0], f}, confidence: Sure}
	}
	return s, true
}

func ruby(t *tree, dir string) (stack, bool) {
	file := t.first(dir, "Gemfile")
	if file == "" {
		return stack{}, false
	}
	s := stack{name: "ruby", evidence: t.has(dir, "Gemfile", "Gemfile.lock")}
	s.setup = []command{{line: "bundle install", evidence: s.evidence, confidence: Sure}}
	specs := t.match(dir, pattern.Of(`^spec/.*_spec\.rb$`))
	rakefile := t.first(dir, "Rakefile")
	switch {
	case t.first(dir, ".rspec") != "" || len(specs) > 0:
		s.test = command{line: "bundle exec rspec", evidence: append(t.has(dir, ".rspec"), specs...), confidence: Sure}
	case t.first(dir, "bin/rails") != "" && len(t.match(dir, pattern.Of(`^test/.*_test\.rb$`))) > 0:
		s.test = command{line: "bin/rails test", evidence: t.has(dir, "bin/rails"), confidence: Sure}
	case rakefile != "" && t.says(rakefile, pattern.Of(`TestTask|task\s+:?["']?test\b`)):
		s.test = command{line: "bundle exec rake test", evidence: []string{rakefile}, confidence: Sure}
	}
	return s, true
}

func php(t *tree, dir string) (stack, bool) {
	file := t.first(dir, "composer.json")
	if file == "" {
		return stack{}, false
	}
	var m struct {
		Scripts    map[string]any `json:"scripts"`
		RequireDev map[string]any `json:"require-dev"`
	}
	_ = json.Unmarshal([]byte(t.read(file)), &m)
	s := stack{name: "php", evidence: t.has(dir, "composer.json", "composer.lock"), carry: "vendor"}
	s.setup = []command{{line: "composer install --no-interaction", evidence: s.evidence, confidence: Sure}}
	unit := t.first(dir, "phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml")
	switch {
	case m.Scripts["test"] != nil:
		s.test = command{line: "composer test", evidence: []string{file}, confidence: Sure}
	case t.first(dir, "artisan") != "":
		s.test = command{line: "php artisan test", evidence: t.has(dir, "artisan"), confidence: Likely}
	case m.RequireDev["pestphp/pest"] != nil:
		s.test = command{line: "vendor/bin/pest", evidence: []string{file}, confidence: Sure}
	case unit != "":
		s.test = command{line: "vendor/bin/phpunit", evidence: []string{unit}, confidence: Sure}
	case m.RequireDev["phpunit/phpunit"] != nil:
		s.test = command{line: "vendor/bin/phpunit tests", evidence: []string{file}, confidence: Guess}
	}
	return s, true
}

func elixir(t *tree, dir string) (stack, bool) {
	s, ok := simple(t, dir, "elixir", "mix.exs", "mix deps.get", "mix test")
	if ok && len(t.has(dir, "test/test_helper.exs")) > 0 {
		s.test.confidence, s.test.evidence = Sure, t.has(dir, "mix.exs", "test/test_helper.exs")
	}
	if ok && t.says(s.evidence[0], pattern.Of(`apps_path:`)) {
		s.more = []Fact{{About: Monorepo, Value: "umbrella project", Stack: "elixir", Dir: dir, Evidence: s.evidence, Confidence: Sure}}
		s.test.confidence = Sure
	}
	return s, ok
}

func dart(t *tree, dir string) (stack, bool) {
	file := t.first(dir, "pubspec.yaml")
	if file == "" {
		return stack{}, false
	}
	tool, name := "dart", "dart"
	if t.says(file, pattern.Of(`(?m)^\s+sdk:\s*flutter`)) {
		tool, name = "flutter", "flutter"
	}
	s, ok := simple(t, dir, name, "pubspec.yaml", tool+" pub get", tool+" test")
	if tests := t.match(dir, pattern.Of(`^test/.*_test\.dart$`)); len(tests) > 0 {
		s.test.confidence, s.test.evidence = Sure, append(s.test.evidence, tests...)
	}
	return s, ok
}

func haskell(t *tree, dir string) (stack, bool) {
	if f := t.first(dir, "stack.yaml"); f != "" {
		return simple(t, dir, "haskell", "stack.yaml", "stack build --only-dependencies --test", "stack test")
	}
	files := append(t.has(dir, "cabal.project"), t.match(dir, pattern.Of(`^[^/]+\.cabal$`))...)
	if len(files) == 0 {
		return stack{}, false
	}
	return stack{name: "haskell", evidence: files, test: command{line: "cabal test all", evidence: files, confidence: Likely}}, true
}

func scala(t *tree, dir string) (stack, bool) {
	return simple(t, dir, "scala", "build.sbt", "", "sbt test")
}
