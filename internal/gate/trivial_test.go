package gate_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/gate"
)

// line is a gate as a line of shell, as the configuration makes it.
func line(s string) []string { return []string{"sh", "-c", s} }

// TestTrivialGatesAreRefused is INV-26.
func TestTrivialGatesAreRefused(t *testing.T) {
	t.Parallel()
	lines := []string{
		"", " ", "# nothing", "\n\n", "true", ":", "exit 0", "exit 00", "echo ok", "printf 'all good\\n'", "sleep 1",
		"/bin/true", "/usr/bin/env true", `tr\ue`, `"true"`, "'tr''ue'", "true;", "(true)", "{ true; }", "! false",
		"npm test || true", "npm test || :", "npm test || exit 0", "npm test || echo failed", "npm test || (echo failed; true)",
		"npm test; true", "npm test; exit 0", "npm test; echo done", "npm test\necho done", "npm test &", "npm test & wait",
		"npm test | tee log", "npm test 2>&1 | cat", "npm test | tail -20", "npm test | sed s/a/b/ | head", "set +o pipefail; npm test | tee log",
		"if npm test; then echo ok; fi", "if npm test; then echo ok; else echo failed; fi", "if true; then true; fi",
		"trap 'exit 0' EXIT; npm test", "trap 'rm -f x; exit  0' 0\nnpm test",
		"set -e; true", "set -e; echo a; echo b", "x=1", "export CI=1", "f() { npm test; }", "f() { true; }; f", "for i in 1 2; do echo $i; done",
		"while false; do npm test; done", "case $x in a) true;; *) :;; esac", "[ 1 = 1 ]", "test 1 -eq 1", "[ -z '' ]", "[[ a == a ]]", "test yes",
		"eval true", "eval 'npm test || true'", "set -e; npm test || true", "npm test || { echo failed; exit 0; }", "cd web; true", "time true",
		"command -v node", "which node", "git status", "git diff", "env X=1 true", "timeout 5 true", "nice -n 5 true", "nohup true", "exec true",
		"xargs true", "true | xargs", "bash -c true", "bash -c 'sh -c \"true\"'", "bash -ec 'npm test || true'", "sh -c ''", "bash", "sudo -u nobody true",
		"make -n", "make -n test", "make --dry-run test", "make -kn test", "make -i test", "make test -q", "ninja -n", "just --list", "rake -T",
		"pytest --collect-only", "pytest --co -q", "python -m pytest --collect-only", "python3.12 -u -m pytest --co", "poetry run pytest --collect-only",
		"uv run pytest --co", "pytest --version", "python -c pass", "python3 -c 'import sys; sys.exit(0)'", "python -c \"print('ok')\"", "node -e ''", "node -e 'process.exit(0)'", "node -e \"console.log('ok')\"",
		"ruby -e ''", "perl -e 1", "python", "go test -run 'XXX^' ./...", "go test -run '^$' ./...", "go test -run=^NONE$ ./...", "go test ./... -list .", "go test -list=. ./...", "go test -c ./x", "go test -n ./...",
		"go test -skip . ./...", "go test -count=0 ./...", "go version", "go env", "npm test --if-present", "npm run test --if-present", "npm --version", "yarn test --if-present",
		"npx jest --listTests", "npm exec -- jest --listTests", "vitest list", "mocha --dry-run", "npx true", "playwright test --list",
		"cargo test --no-run", "cargo +nightly test --no-run", "cargo test -- --list", "cargo nextest list", "ctest -N", "ctest --show-only=json-v1", "meson test --list",
		"mvn test -DskipTests", "mvn -B verify -Dmaven.test.skip=true", "mvn -fn test", "mvn test -Dmaven.test.failure.ignore=true", "./gradlew test --dry-run", "./gradlew test -m", "./gradlew check -x test",
		"dotnet test --list-tests", "rspec --dry-run", "bundle exec rspec --dry-run", "phpunit --list-tests", "tox -l", "tox --notest", "nox -l", "deno test --no-run", "swift test list", "bazel build --nobuild //...",
	}
	argvs := map[string][]string{
		"nothing": nil, "empty program": {""}, "true": {"true"}, "wrapped true": {"timeout", "-k", "5", "10", "env", "-i", "A=b", "nice", "/bin/true"},
		"make": {"make", "-n"}, "env split": {"env", "-S", "true"}, "shell options": {"bash", "--norc", "-o", "pipefail", "-euc", "true"},
		"pipefail off": {"bash", "-c", "npm test | tee log"}, "shell without a script": {"sh"}, "echo": {"echo", "npm", "test"},
	}
	for _, l := range lines {
		argvs[l] = line(l)
	}
	for name, argv := range argvs {
		t.Run("INV-26 "+name, func(t *testing.T) {
			t.Parallel()
			err := gate.CheckTrivial(argv)
			var trivial *gate.TrivialError
			if !errors.As(err, &trivial) {
				t.Fatalf("%q was not refused (%v)", argv, err)
			}
			if trivial.Why == "" || trivial.Instead == "" {
				t.Errorf("it does not say why or what to write instead: %v", err)
			}
		})
	}
}

// TestRealGatesAreNotRefused is the positive control of INV-26.
func TestRealGatesAreNotRefused(t *testing.T) {
	t.Parallel()
	lines := []string{
		"npm test", "npm ci && npm test", "npm test && true", "true && npm test", "echo start; npm test", "npm test; exit $?", "npm test; rc=$?; echo done; exit $rc", "npm test; exit",
		"set -e; npm test; echo done", "set -euo pipefail; npm test | tee log; true", "set -o pipefail; npm test | tee log", "set -o errexit\nnpm test\nexit 0", "npm test | grep -q passed",
		"if npm test; then echo ok; else exit 1; fi", "if ! npm test; then exit 1; fi", "if [ -f package.json ]; then npm test; fi", "npm test || exit 1", "npm test || { echo failed; exit 1; }", "npm test || npm run test:retry", "npm test || (cat log; false)",
		"[ -f x ] || exit 0; npm test", "command -v node || exit 1; npm test", "command -v node && npm test", "cd web && npm test", "(cd web; npm test)", "{ npm test; }", "! grep -r TODO src",
		"f() { npm test; }; f", "for d in a b; do make -C $d test || exit 1; done", "while true; do npm test && exit 0; done", "until npm test; do sleep 1; done", "f() { f; f; f; }; f; npm test", "while ! curl -f localhost:80; do sleep 1; done", "case $x in a) npm test;; esac", "x=$(npm test)", "npm test & wait $!",
		"trap 'rm -f x' EXIT; npm test", "test -f dist/app.js", "[ \"$(cat version)\" = 1 ]", "[[ $a == b ]]", "git diff --exit-code", "git diff --quiet", "eval \"$CMD\"", "$RUN", "${CMD:-true}", "source ./env; npm test", ". ./test.sh",
		"./test.sh", "sh test.sh", "bash -n script.sh", "bash -o pipefail -c 'npm test | tee log'", "bash -eo pipefail -c 'npm test | tee log; true'", "bash -c \"$CMD\"", "sh -c 'echo start; npm test'",
		"env X=1 npm test", "timeout 5 npm test", "nice -n 5 npm test", "time npm test", "xargs npm test", "sudo npm test", "make", "make test", "make -k test", "make -j4 -C sub test", "make -Cnested test", "make -f nightly.mk",
		"pytest", "pytest -q -x", "pytest -n 4", "python -m pytest", "python -m unittest", "python -c 'import app; app.check()'", "python test.py", "python manage.py test", "tox -e py312", "nox -s tests", "coverage run -m pytest",
		"go test ./...", "go test -run TestX ./...", "go test -run 'TestA|TestB' ./...", "go test -run '^TestX$/^sub$' ./...", "go test -run '^Test' ./...", "go test -run ^$ -bench . ./...", "go test -run XXX -bench=. ./...", "go test -race -shuffle=on -count=1 ./...", "go test -run '^(TestA|TestB)$' .", "go test -run . .", "go test ./... -args -list",
		"go vet ./...", "go build ./...", "go run ./cmd/check", "staticcheck ./...", "npm run test:all", "npm run list", "npx jest", "npx jest --passWithNoTests --ci", "yarn test", "pnpm -r test", "bun test", "vitest run", "mocha", "playwright test",
		"node --test", "node test.js", "cargo test", "cargo test -- --nocapture", "cargo nextest run", "cargo clippy -- -D warnings", "cargo run -- version", "ctest --output-on-failure", "mvn -B test", "mvn -DskipTests package", "mvn test -DskipTests=false",
		"./gradlew test", "./gradlew build -x test", "dotnet test", "rspec", "bundle exec rspec", "vendor/bin/phpunit", "mix test", "swift test", "deno test", "bazel test //...", "rake", "rake test", "just test", "task test", "ninja test",
		"terraform validate", "docker build .", "curl -fsS localhost:8080/health", "grep -q ok file", "diff a b", "false", "exit 1", "no-such-program", "npm test >/dev/null 2>&1", "hack/test.sh || exit $?", "npm test &&", "if npm test", "test",
	}
	for _, l := range lines {
		t.Run(l, func(t *testing.T) {
			t.Parallel()
			if err := gate.CheckTrivial(line(l)); err != nil {
				t.Error(err)
			}
		})
	}
	for _, argv := range [][]string{{"npm", "test"}, {"./test.sh"}, {"env", "A=b", "npm", "test"}, {"bash", "-euo", "pipefail", "-c", "npm test | tee log"}} {
		if err := gate.CheckTrivial(argv); err != nil {
			t.Error(err)
		}
	}
}

func TestARefusalTeaches(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ gate, why, instead string }{
		{"npm test || true", "what follows `||` swallows its failure", "stand alone"},
		{"npm test; echo done", "its exit code is that of its last command", "set -e"},
		{"npm test | tee log", "a pipe has the exit code of its last command", "pipefail"},
		{"npm test --if-present", "passes when the script is missing", "leave --if-present out"},
		{"pytest --collect-only", "collects tests and runs none", "exit code decides"},
		{"", "it is empty", "write the command"},
	} {
		err := gate.CheckTrivial(line(c.gate))
		if err == nil || !strings.Contains(err.Error(), c.why) || !strings.Contains(err.Error(), c.instead) || !strings.Contains(err.Error(), "gate `sh -c ") {
			t.Errorf("%q: %v", c.gate, err)
		}
	}
}

func FuzzCheckTrivial(f *testing.F) {
	for _, s := range []string{"npm test || true", "f() { f; }; f", "a && b || c; d | e & wait", "if a; then b; elif c; then d; fi", "$(x) `y` ${z:-1}", "[[ a =~ b ]]", "bash -c 'bash -c \"true\"'", "case x in esac"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if err := gate.CheckTrivial(line(s)); err != nil && len(err.Error()) > 3000 {
			t.Errorf("a message of %d bytes", len(err.Error()))
		}
	})
}
