package doctor

import (
	"slices"
	"sort"
	"strings"

	"github.com/proctor-ci/proctor/internal/config"
	"github.com/proctor-ci/proctor/internal/policy"
)

// Tree is the base commit: the path of each file and the id of its content.
type Tree map[string]string

// Traps finds what loads and still does not do what its author believes.
func Traps(c config.Config, tree Tree) []Finding {
	var found []Finding
	found = append(found, heldOut(c, tree)...)
	found = append(found, files(c, tree)...)
	found = append(found, purse(c)...)
	return whole("config.traps", "held-out files, named files and budgets are as they should be", found)
}

func heldOut(c config.Config, tree Tree) []Finding {
	a := c.Gates.Acceptance
	if c.Gates.HeldOut() == 0 {
		return []Finding{noted("acceptance.none", "add `gates.acceptance: {run: \"…\", sealed: [\"tests/acceptance/**\"]}`", "no gate is held out: the agent sees all it is judged by")}
	}
	return sealed(a.Sealed, tree)
}

// sealed looks at each pattern, and for content that lies outside as well.
func sealed(patterns []string, tree Tree) []Finding {
	var found []Finding
	hidden := map[string]string{} // content → the sealed path
	inside := map[string]bool{}
	for _, p := range patterns {
		globs, err := policy.Compile([]string{p}, true)
		if err != nil {
			continue // the loader has refused it
		}
		any := false
		for path, id := range tree {
			if _, ok := globs.Match(path); ok {
				any, inside[path] = true, true
				if old, known := hidden[id]; !known || path < old {
					hidden[id] = path
				}
			}
		}
		if !any {
			found = append(found, failed("acceptance.sealed", "commit the files, or correct the pattern", "gates.acceptance.sealed: %q matches no file of the base commit", p))
		}
	}
	var copies, names []string
	for path, id := range tree {
		if at, ok := hidden[id]; ok && !inside[path] && id != emptyBlob {
			copies = append(copies, path+" is the same file as the sealed "+at)
			names = append(names, quote(path))
		}
	}
	sort.Strings(copies)
	sort.Strings(names)
	if len(copies) > 0 {
		found = append(found, failed("acceptance.readable", "`git rm "+strings.Join(names, " ")+" && git commit -m \"Remove copies of sealed files\" && git push`, or add them to gates.acceptance.sealed", "sealed files can be read elsewhere: %s", few(copies)))
	}
	return found
}

// emptyBlob is the id of an empty file in SHA-1 repositories.
const emptyBlob = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"

// files that the configuration names.
func files(c config.Config, tree Tree) []Finding {
	var found []Finding
	for _, p := range c.Review.Criteria {
		if _, there := tree[p]; !there {
			found = append(found, failed("review.criteria", "commit the file, or take it out of review.criteria", "review.criteria: the base commit has no %s, so the reviewer would judge without it", p))
		}
	}
	allow := slices.Equal(c.Policy.Allow, []string{"**"})
	if globs, err := policy.Compile(c.Policy.Allow, false); err == nil && !allow {
		any := false
		for path := range tree {
			_, ok := globs.Match(path)
			any = any || ok
		}
		if !any {
			found = append(found, failed("policy.allow", "correct policy.allow so that it names files of the repository", "policy.allow matches no file of the base commit, so hardly any change would be let through"))
		}
	}
	return found
}

// purse tells where the ceilings stop nothing. What contradicts itself the loader has refused.
func purse(c config.Config) []Finding {
	var found []Finding
	if c.Budget.Unpriced == "allow" {
		found = append(found, noted("budget.unpriced", "set budget.unpriced: refuse, and budget.price for your own models", "models without a price are let through, and of those no ceiling in dollars can stop anything"))
	}
	if c.Agent.Name == "command" {
		found = append(found, noted("budget.command", "have the program use the base URL that it is given", "the agent is a program of your own: what it spends past the meter is not seen, and only time and ticks bound it"))
	}
	return found
}

// quote makes one word of a shell's out of a path.
func quote(path string) string {
	if strings.IndexFunc(path, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("._-/", r))
	}) < 0 && !strings.HasPrefix(path, "-") {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

func few(list []string) string {
	if len(list) > 3 {
		return strings.Join(list[:3], "; ") + "; and more"
	}
	return strings.Join(list, "; ")
}
