package tamper

import (
	"path"
	"slices"
	"strings"

	"github.com/proctor-ci/proctor/internal/pattern"
)

// ownConfig are files that a runner takes up by itself, so that a new one can take tests out of a run that needed none before.
var ownConfig = pattern.Of(`(?i)(?:^|/)(?:jest\.config\.\w+|vitest\.\w*\.?\w+|karma\.conf\.\w+|playwright\.config\.\w+|cypress\.config\.\w+|\.mocharc\.?\w*|[^/]*pytest[^/]*|setup\.cfg|tox\.ini|pyproject\.toml|conftest\.py|\.rspec|` +
	`\.cargo/config(?:\.toml)?|nextest\.toml|phpunit\.xml(?:\.dist)?|pest\.php|junit-platform\.properties)$`)

// runners tell for which language a file of ownConfig is.
var runners = []struct {
	dialect string
	path    *pattern.Regexp
}{
	{"python", pattern.Of(`(?i)(?:^|/)(?:[^/]*pytest[^/]*|setup\.cfg|tox\.ini|pyproject\.toml|conftest\.py)$`)},
	{"javascript", pattern.Of(`(?i)(?:^|/)(?:jest|vitest|karma|playwright|cypress|\.mocharc)[^/]*$`)},
}

// newConfigs looks at the settings of new files that a runner takes up. Where the language had no test yet, they can
// take none out of a run; a hook may still change the result of tests that only the proof has.
func (c *Comparison) newConfigs() []Sign {
	var out []Sign
	for _, f := range c.configs {
		if !ownConfig.MatchString(f.Path) {
			continue
		}
		_, added := lineDiff("", string(f.After))
		for _, l := range added {
			for _, s := range weakLine(f, l) {
				s.Weak = s.Weak || s.placed && !c.tested(f.Path)
				out = append(out, s)
			}
		}
	}
	return out
}

// tested tells whether the base had a test of the language that a runner's file is for. What is not known counts as yes.
func (c *Comparison) tested(config string) bool {
	for _, r := range runners {
		if !r.path.MatchString(config) {
			continue
		}
		i := slices.IndexFunc(dialects(), func(d *dialect) bool { return d.name == r.dialect })
		return len(c.paths) == 0 || c.hadTests(dialects()[i])
	}
	return true
}

func (c *Comparison) hadTests(d *dialect) bool {
	for key := range c.before {
		if strings.HasPrefix(key, d.name+" ") {
			return true
		}
	}
	return slices.ContainsFunc(c.paths, func(p string) bool {
		return !c.added[p] && d.speaks(p) && d.isTest(p) && !isRunnerConfig(p)
	})
}

// gradleFinds tells whether a new file of tests has a name that Maven leaves out and Gradle does not, in a repository
// of Gradle's.
func (c *Comparison) gradleFinds(d *dialect, f File) bool {
	if d.name != "jvm" || f.Was || !d.isTest(f.Path) || !c.holds("build.gradle", "build.gradle.kts") || c.holds("pom.xml") {
		return false
	}
	c.gradle = append(c.gradle, f.Path)
	return true
}

// holds tells whether the tree has a file of one of the names that was there before.
func (c *Comparison) holds(names ...string) bool {
	return slices.ContainsFunc(c.paths, func(p string) bool { return slices.Contains(names, path.Base(p)) && !c.added[p] })
}

// named lists the files for which a build file of Gradle's was believed. One that came with the change is not.
func (c *Comparison) named() []Sign {
	var out []Sign
	for _, p := range c.gradle {
		out = append(out, Sign{Path: p, Detail: "a name in which Gradle finds tests and Maven finds none", Next: "name it as Maven's runner expects it", Weak: c.holds("build.gradle", "build.gradle.kts")})
	}
	return out
}
