package detect

import (
	"path"

	"github.com/proctor-ci/proctor/internal/pattern"
)

// dependencyFile knows manifests and lock files of the stacks that Detect knows: what a setup command
// installs from.
var dependencyFile = pattern.Of(`(?i)^(?:` +
	`go\.(?:mod|sum|work|work\.sum)|package\.json|package-lock\.json|npm-shrinkwrap\.json|yarn\.lock|\.yarnrc\.yml|\.npmrc|pnpm-lock\.yaml|pnpm-workspace\.yaml|bun\.lockb?|deno\.(?:jsonc?|lock)|` +
	`pyproject\.toml|setup\.(?:py|cfg)|poetry\.lock|pipfile(?:\.lock)?|pdm\.lock|uv\.lock|(?:.*[-_.])?requirements(?:[-_.].*)?\.(?:txt|in)|constraints.*\.txt|environment\.ya?ml|` +
	`cargo\.(?:toml|lock)|pom\.xml|build\.gradle(?:\.kts)?|settings\.gradle(?:\.kts)?|gradle\.(?:lockfile|properties)|libs\.versions\.toml|` +
	`.*\.(?:csproj|fsproj|vbproj|gemspec|cabal)|directory\.packages\.props|packages\.lock\.json|gemfile(?:\.lock)?|composer\.(?:json|lock)|mix\.(?:exs|lock)|` +
	`package\.(?:swift|resolved)|podfile(?:\.lock)?|pubspec\.(?:yaml|lock)|stack\.yaml(?:\.lock)?|build\.sbt|build\.zig\.zon|module\.bazel(?:\.lock)?|cmakelists\.txt|conanfile\.(?:py|txt)|vcpkg\.json|meson\.build|\.terraform\.lock\.hcl|flake\.(?:nix|lock))$`)

// Dependencies tells whether a path is a manifest or a lock file: when it changes, what was installed before
// is no longer what the repository asks for.
func Dependencies(p string) bool {
	base := path.Base(p)
	return dependencyFile.MatchString(base) || path.Base(path.Dir(p)) == "requirements" && path.Ext(base) == ".txt"
}
