package detect_test

import (
	"testing"

	"github.com/proctor-ci/proctor/internal/detect"
)

func TestManifestsAndLockFilesAreDependencies(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"go.sum": true, "tools/go.mod": true, "package-lock.json": true, "web/pnpm-lock.yaml": true, "bun.lock": true, "bun.lockb": true,
		"requirements.txt": true, "requirements-dev.txt": true, "dev-requirements.txt": true, "requirements/test.txt": true, "Pipfile.lock": true, "uv.lock": true,
		"Cargo.lock": true, "pom.xml": true, "app/build.gradle.kts": true, "gradle/libs.versions.toml": true, "Gemfile": true, "till.gemspec": true,
		"composer.lock": true, "mix.exs": true, "App.csproj": true, "CMakeLists.txt": true,
		"README.md": false, "src/package.go": false, "docs/requirements.md": false, "lock": false, "my-package.json": false, "src/cargo.rs": false, "notes.txt": false,
	} {
		if got := detect.Dependencies(path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}
