package guard

import (
	"strings"

	"github.com/proctor-ci/proctor/internal/policy"
)

// dependencyKind says what a file of a package manager is: "manifest", "lock file" or "".
func dependencyKind(path string) string {
	name := policy.Fold(base(path))
	switch name {
	case "go.mod", "package.json", "pyproject.toml", "setup.py", "setup.cfg", "pipfile", "environment.yml", "environment.yaml",
		"cargo.toml", "pom.xml", "build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "libs.versions.toml",
		"gemfile", "composer.json", "directory.packages.props", "packages.config", "nuget.config", "mix.exs", "pubspec.yaml",
		"package.swift", "podfile", "deno.json", "deno.jsonc", "flake.nix", "conanfile.txt", "conanfile.py", "vcpkg.json",
		".npmrc", ".yarnrc", ".yarnrc.yml", "pip.conf", "bunfig.toml":
		return "manifest"
	case "go.sum", "go.work.sum", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "bun.lockb",
		"poetry.lock", "pipfile.lock", "pdm.lock", "uv.lock", "cargo.lock", "gradle.lockfile", "gemfile.lock", "composer.lock",
		"packages.lock.json", "mix.lock", "pubspec.lock", "package.resolved", "podfile.lock", "deno.lock", "flake.lock":
		return "lock file"
	}
	switch {
	case strings.HasPrefix(name, "requirements") && (strings.HasSuffix(name, ".txt") || strings.HasSuffix(name, ".in")),
		strings.HasSuffix(name, ".gemspec"), strings.HasSuffix(name, ".csproj"), strings.HasSuffix(name, ".fsproj"), strings.HasSuffix(name, ".cabal"):
		return "manifest"
	}
	return ""
}

func checkDependency(c Change) []Finding {
	kind := dependencyKind(c.Path)
	if kind == "" {
		return nil
	}
	return []Finding{{Rule: Dependency, Level: Flag, Path: c.Path, Detail: describe(c) + " a dependency " + kind}}
}
