package archtest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/goccy/go-yaml"

	"github.com/proctor-ci/proctor/internal/config"
	"github.com/proctor-ci/proctor/internal/evidence"
)

// Somebody looks a terminal up at night: each has its section, with its exit code and whether it can be resumed.
func TestTheOperatingGuideHasEveryTerminal(t *testing.T) {
	t.Parallel()
	page := read(t, "docs/operating.md")
	sections := map[string]string{}
	for _, part := range strings.Split(page, "\n## ")[1:] {
		head, body, _ := strings.Cut(part, "\n")
		if name := strings.Trim(head, "`"); name != head {
			sections[name] = strings.TrimSpace(body)
		}
	}
	for _, term := range evidence.Terminals() {
		want := "Exit " + strconv.Itoa(term.Exit)
		if term.Resumable {
			want += ", resumable"
		}
		if body := sections[term.Name]; !strings.HasPrefix(body, want+". ") {
			t.Errorf("docs/operating.md: the section of %s does not begin with %q", term.Name, want)
		}
		delete(sections, term.Name)
	}
	for name := range sections {
		t.Errorf("docs/operating.md: %s is no terminal", name)
	}
}

var threat = regexp.MustCompile(`(?m)^\| ([^|]+) \| ([^|]*) \| ([^|]*) \|$`)

// A threat whose test is gone is one that nothing stops.
func TestTheTestsThatTheThreatModelNamesExist(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for _, f := range tracked(t, "*_test.go") {
		all.WriteString(read(t, f))
	}
	rows := 0
	for _, m := range threat.FindAllStringSubmatch(read(t, "docs/threat-model.md"), -1) {
		if strings.HasPrefix(m[1], "**") || m[1] == "threat" {
			continue
		}
		rows++
		names := regexp.MustCompile("`(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(m[3], -1)
		if len(names) == 0 || strings.TrimSpace(m[2]) == "" {
			t.Errorf("%q has no stop or no test", m[1])
		}
		for _, name := range names {
			if !strings.Contains(all.String(), "\nfunc "+name[1]+"(t *testing.T) {") {
				t.Errorf("%q: there is no %s", m[1], name[1])
			}
		}
	}
	if rows < 25 {
		t.Errorf("only %d threats were read", rows)
	}
}

// pages are what users read.
func pages(t *testing.T) []string {
	t.Helper()
	list := slices.DeleteFunc(tracked(t, "*.md"), func(p string) bool { return strings.Contains(p, "testdata/") || strings.HasPrefix(p, "internal/demo/") })
	if len(list) < 15 {
		t.Fatalf("only %d pages: %v", len(list), list)
	}
	return list
}

var link = regexp.MustCompile(`\]\(([^)#\s]*)(#[^)\s]*)?\)`)

// A link leads to a file, and one with an anchor to a heading of it.
func TestLinksBetweenPagesLeadSomewhere(t *testing.T) {
	t.Parallel()
	found, anchored := 0, 0
	for _, page := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(read(t, page), -1) {
			if strings.Contains(m[1], "://") || m[1]+m[2] == "" {
				continue
			}
			found++
			to := page
			if m[1] != "" {
				to = filepath.Join(filepath.Dir(page), m[1])
			}
			if _, err := os.Stat(filepath.Join("../..", to)); err != nil {
				t.Errorf("%s: %s leads nowhere", page, m[1])
				continue
			}
			if m[2] == "" || filepath.Ext(to) != ".md" {
				continue
			}
			anchored++
			if !slices.Contains(anchors(read(t, to)), m[2][1:]) {
				t.Errorf("%s: %s has no heading for %s", page, to, m[2])
			}
		}
	}
	if found < 30 || anchored < 10 {
		t.Errorf("only %d links were found, %d with an anchor", found, anchored)
	}
	want := []string{"one-more-proctor_x", "what-is-it", "what-is-it-1"}
	if got := anchors("# One more: `PROCTOR_X`\n```sh\n# no heading\n```\n## What is it?\n## What *is* it\n"); !slices.Equal(got, want) {
		t.Errorf("the control has the anchors %q, want %q", got, want)
	}
}

var heading = regexp.MustCompile("(?m)^#{1,6} +(.+?) *#*$")

// anchors are what GitHub makes of a page's headings: small letters, dashes for blanks, other signs gone, a number where one comes again.
func anchors(page string) []string {
	var out []string
	seen := map[string]int{}
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
		name := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, m[1])
		again := seen[name]
		seen[name]++
		if again > 0 {
			name += "-" + strconv.Itoa(again)
		}
		out = append(out, name)
	}
	return out
}

var fenced = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")

// Every block of YAML in README and docs is loaded by what would read it: a configuration by the configuration's own strict loader,
// a workflow's step and a GitLab job by a parser, and their inputs are compared with the action's and the component's.
func TestEveryBlockOfYAMLInTheDocsIsOneThatWorks(t *testing.T) {
	t.Parallel()
	kinds := map[string]int{}
	for _, page := range pages(t) {
		for _, m := range fenced.FindAllStringSubmatch(read(t, page), -1) {
			if m[1] != "yaml" {
				continue
			}
			kind, err := loadBlock(t, page, m[2])
			if err != nil {
				t.Errorf("%s: %v in\n%s", page, err, m[2])
			}
			kinds[kind]++
		}
	}
	for kind, least := range map[string]int{"configuration": 6, "steps": 2, "gitlab": 2} {
		if kinds[kind] < least {
			t.Errorf("only %d blocks are a %s: %v", kinds[kind], kind, kinds)
		}
	}
	for _, bad := range []string{"version: 1\ngates: {iterations: make}\n", "- uses: proctor-ci/proctor@v0\n  with: {isue: 1}\n", "include:\n  - local: x\n    inputs: {max-cost: 1}\n", "a: [\n"} {
		if _, err := loadBlock(t, "control", bad); err == nil {
			t.Errorf("the control is taken:\n%s", bad)
		}
	}
}

// loadBlock says what a block is and whether it would be taken.
func loadBlock(t *testing.T, page, text string) (kind string, err error) {
	t.Helper()
	if strings.HasPrefix(text, "version:") || strings.Contains(text, "\nversion:") {
		_, err := config.Load(page, []byte(text))
		return "configuration", err
	}
	var steps []struct {
		Uses string
		With map[string]string
	}
	if strings.HasPrefix(strings.TrimSpace(text), "- ") {
		if err := yaml.Unmarshal([]byte(text), &steps); err != nil {
			return "steps", err
		}
		for _, s := range steps {
			path, ours := strings.CutPrefix(s.Uses, own)
			if path, _, _ = strings.Cut(path, "@"); !ours {
				continue
			}
			var action struct{ Inputs map[string]any }
			if err := yaml.Unmarshal([]byte(read(t, strings.TrimPrefix(path+"/action.yml", "/"))), &action); err != nil {
				return "steps", err
			}
			for name := range s.With {
				if _, ok := action.Inputs[name]; !ok {
					return "steps", fmt.Errorf("%s has no input %s", s.Uses, name)
				}
			}
		}
		return "steps", nil
	}
	var jobs map[string]any
	if err := yaml.Unmarshal([]byte(text), &jobs); err != nil {
		return "gitlab", err
	}
	var included struct {
		Include []struct{ Inputs map[string]any }
	}
	if err := yaml.Unmarshal([]byte(text), &included); err != nil {
		return "gitlab", err
	}
	head, _, _ := strings.Cut(read(t, "templates/proctor.yml"), "\n---\n")
	var component struct {
		Spec struct{ Inputs map[string]any }
	}
	if err := yaml.Unmarshal([]byte(head), &component); err != nil {
		return "gitlab", err
	}
	for _, i := range included.Include {
		for name := range i.Inputs {
			if _, ok := component.Spec.Inputs[name]; !ok {
				return "gitlab", fmt.Errorf("the component has no input %s", name)
			}
		}
	}
	return "gitlab", nil
}
