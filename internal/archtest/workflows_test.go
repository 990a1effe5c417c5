package archtest

import (
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// workflow is what is asked of each of them.
type workflow struct {
	On          any
	Permissions *map[string]string
	Concurrency map[string]any
	Jobs        map[string]struct {
		Permissions *map[string]string
		Timeout     any `yaml:"timeout-minutes"`
		Uses        string
		Steps       []struct {
			Uses string
			Run  string
			With map[string]any
		}
	}
}

var (
	pinned = regexp.MustCompile(`(?m)\buses: ([^\s#,}]+)(.*)$`)
	bySHA  = regexp.MustCompile(`^[\w.-]+(/[\w.-]+)+@[0-9a-f]{40}$`)
	tagged = regexp.MustCompile(`^ # v\d+(\.\d+)*$`)
)

// What this repository's own CI runs is what a stranger would attack: nothing moves under it, no job has more than it needs, and no text
// of an event becomes part of a script.
func TestWorkflowsAreDeniedByDefaultAndPinned(t *testing.T) {
	t.Parallel()
	files := tracked(t, ".github/workflows/*.yml", "templates/github/*.yml", "examples/*/.github/workflows/*.yml")
	if len(files) < 13 {
		t.Fatalf("only %d workflows", len(files))
	}
	for _, f := range files {
		text := read(t, f)
		for _, wrong := range faultsOf(t, text) {
			t.Errorf("%s: %s", f, wrong)
		}
	}
	const bad = `on: {pull_request_target: {}}
permissions: {contents: write}
jobs:
  a:
    runs-on: x
    steps:
      - uses: actions/checkout@v4
      - {uses: actions/cache@v4}
      - run: echo ${{ github.event.issue.title }}
`
	if got := faultsOf(t, bad); len(got) != 8 {
		t.Errorf("the control has %d faults: %q", len(got), got)
	}
}

// An example is the template with a toolchain in front; what the template learns, the examples have.
func TestExamplesAreTheTemplateWithAToolchain(t *testing.T) {
	t.Parallel()
	template := read(t, "templates/github/proctor.yml")
	toolchain := regexp.MustCompile(`(?m)^      - uses: actions/setup-\w+@.*\n        with: .*\n`)
	limit := regexp.MustCompile(`timeout-minutes: \d+`)
	same := func(example string) bool {
		example = toolchain.ReplaceAllString(example, "")
		return limit.ReplaceAllString(example, "") == limit.ReplaceAllString(template, "")
	}
	files := tracked(t, "examples/*/.github/workflows/proctor.yml")
	if len(files) != 6 {
		t.Fatalf("%d examples", len(files))
	}
	for _, f := range files {
		if !same(read(t, f)) {
			t.Errorf("%s is not templates/github/proctor.yml with a toolchain: bring over what differs", f)
		}
	}
	if same(strings.Replace(read(t, files[0]), "pull_request_review:", "pull_request:", 1)) {
		t.Error("control: an example of another event passes")
	}
}

// Who calls the reusable workflow waits in the same groups as who has the workflow itself, and grants what it asks for: a called job that asks for more ends before
// it begins.
func TestACallerHasTheTemplatesGroupsAndTheCalledJobsRights(t *testing.T) {
	t.Parallel()
	of := func(file string) (w workflow) {
		if err := yaml.Unmarshal([]byte(read(t, "templates/github/"+file)), &w); err != nil {
			t.Fatal(err)
		}
		return w
	}
	caller, called, template := of("caller.yml"), of("reusable.yml"), of("proctor.yml")
	if fmt.Sprint(caller.Concurrency) != fmt.Sprint(template.Concurrency) || caller.Concurrency == nil {
		t.Errorf("caller.yml waits in %v, proctor.yml in %v", caller.Concurrency, template.Concurrency)
	}
	grants, asks := caller.Jobs["proctor"].Permissions, called.Jobs["proctor"].Permissions
	if grants == nil || asks == nil || !maps.Equal(*grants, *asks) || len(*asks) == 0 {
		t.Errorf("caller.yml grants %v, reusable.yml asks for %v", grants, asks)
	}
}

// own is this project's action, which a template names by its moving tag.
const own = "proctor-ci/proctor"

func faultsOf(t *testing.T, text string) (wrong []string) {
	t.Helper()
	var w workflow
	if err := yaml.Unmarshal([]byte(text), &w); err != nil {
		return []string{err.Error()}
	}
	on, ok := w.On.(map[string]any)
	if !ok {
		return []string{"on: is no mapping"}
	}
	if _, found := on["pull_request_target"]; found {
		wrong = append(wrong, "pull_request_target gives a stranger's branch the secrets")
	}
	if w.Permissions == nil || len(*w.Permissions) != 0 {
		wrong = append(wrong, "the top does not say permissions: {}")
	}
	for name, j := range w.Jobs {
		if j.Uses != "" {
			continue
		}
		if j.Permissions == nil {
			wrong = append(wrong, "job "+name+" does not say what it may do")
		}
		if j.Timeout == nil {
			wrong = append(wrong, "job "+name+" has no time limit")
		}
		for _, s := range j.Steps {
			if strings.HasPrefix(s.Uses, "actions/checkout@") && s.With["persist-credentials"] != false {
				wrong = append(wrong, "job "+name+" leaves the token in the checkout")
			}
			if strings.Contains(s.Run, "${{") {
				wrong = append(wrong, "job "+name+": an expression in a script; hand it over by env")
			}
		}
	}
	for _, m := range pinned.FindAllStringSubmatch(text, -1) {
		uses := strings.Trim(m[1], `"'`)
		if strings.HasPrefix(uses, own+"@") || strings.HasPrefix(uses, own+"/host@") || strings.HasPrefix(uses, "my-org/") {
			continue
		}
		if !bySHA.MatchString(uses) || !tagged.MatchString(m[2]) {
			wrong = append(wrong, uses+" is not pinned by a commit with its version behind it")
		}
	}
	return wrong
}

// A release is what `make program` builds at its tag: the reproducible build compares them, and the same flags have to stand in both files.
func TestAReleaseIsBuiltWithTheMakefilesFlags(t *testing.T) {
	t.Parallel()
	var release struct {
		Builds []struct {
			ID             string
			Tags           []string
			Flags, Ldflags []string
			Env            []string
		}
		Archives []struct {
			ID           string
			NameTemplate string `yaml:"name_template"`
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, ".goreleaser.yaml")), &release); err != nil {
		t.Fatal(err)
	}
	makefile := read(t, "Makefile")
	value := func(name string) string {
		m := regexp.MustCompile(`(?m)^` + name + ` *[?:]?= *(.*)$`).FindStringSubmatch(makefile)
		if m == nil {
			t.Fatalf("the Makefile has no %s", name)
		}
		return m[1]
	}
	flags := strings.NewReplacer("$(APP)", value("APP"), "$(VERSION)", "{{ .Tag }}", "$(COMMIT)", "{{ .FullCommit }}", "$(DATE)", "{{ .CommitDate }}").Replace(value("LDFLAGS"))
	if len(release.Builds) != 2 {
		t.Fatalf("%d builds", len(release.Builds))
	}
	for _, b := range release.Builds {
		if len(b.Ldflags) != 1 || b.Ldflags[0] != flags {
			t.Errorf("%s: ldflags %q, and the Makefile's are %q", b.ID, b.Ldflags, flags)
		}
		build := strings.Join(b.Env, " ") + " $(GO) build " + strings.Join(b.Flags, " ") + " -ldflags '$(LDFLAGS)'"
		if build != value("BUILD") {
			t.Errorf("%s: built by %s, and by make with %s", b.ID, build, value("BUILD"))
		}
	}
	if a := release.Archives[0]; a.NameTemplate != "proctor_{{ .Os }}_{{ .Arch }}" || !strings.Contains(read(t, "host/install"), "file=proctor_linux_$arch") {
		t.Errorf("host/install asks for another file than %s", a.NameTemplate)
	}
}

// The CLIs of the image, which the host action installs as well, are the ones that the end-to-end tests drive.
func TestTheImagesCLIsAreTheOnesThatAreTried(t *testing.T) {
	t.Parallel()
	var tried struct {
		Dependencies map[string]string
	}
	from := func(path string, into any) {
		if err := yaml.Unmarshal([]byte(read(t, path)), into); err != nil {
			t.Fatal(err)
		}
	}
	from("e2e/agents/package.json", &tried)
	for agent, name := range map[string]string{"claude-code": "@anthropic-ai/claude-code-linux-", "codex": "@openai/codex-linux-"} {
		var image struct {
			OptionalDependencies map[string]string `yaml:"optionalDependencies"`
		}
		from("image/agents/"+agent+"/package.json", &image)
		x64, arm := image.OptionalDependencies[name+"x64"], image.OptionalDependencies[name+"arm64"]
		if x64 == "" || x64 != tried.Dependencies[name+"x64"] || strings.Replace(x64, "-x64", "-arm64", 1) != arm {
			t.Errorf("%s: image %q and %q, end-to-end tests %q", name, x64, arm, tried.Dependencies[name+"x64"])
		}
	}
}
