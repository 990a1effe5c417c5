package archtest

import (
	"encoding/json"
	"errors"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/proctor-ci/proctor/"

// layers is DESIGN §3 in code: a package may import packages of lower layers and those that its own
// row names. Packages of one layer do not know each other but where a line says so.
var layers = [][]string{
	{"internal/pattern", "internal/secureurl"},
	{"", "internal/clock", "internal/money", "internal/trigger", "internal/forge", "internal/evidence", "internal/loop", "internal/detect", "internal/egress", "internal/failfirst", "internal/config", "internal/prompt", "internal/ci", "internal/git", "internal/inert", "internal/linediff", "internal/sandbox", "internal/guard/secrets", "templates"},
	{"internal/policy", "internal/meter", "internal/gate", "internal/probe", "internal/forge/wire", "internal/agent/agenttest", "internal/telemetry", "internal/scaffold", "internal/manifest", "internal/patch"},
	{"internal/agent", "internal/guard", "internal/judge", "internal/doctor", "internal/forge/github", "internal/forge/gitlab", "internal/demo"},
	{"internal/publish", "internal/webhook"},
	{"internal/forge/forgetest", "internal/webhook/claimtest", "internal/webhook/oidctest"},
	{"internal/app", "internal/forge/forgesuite"},
	{"cmd/action", "cmd/webhook", "cmd/proctor"},
}

// sideways are the edges within a layer that are meant.
var sideways = map[string][]string{
	"internal/loop":     {"internal/money"},
	"internal/evidence": {"internal/inert", "internal/money"},
	"internal/config":   {"internal/money"},
	"internal/detect":   {"internal/config"},
	"internal/prompt":   {"internal/inert", "internal/money"},
	// The two halves of test tampering: what tests are, and what gates run.
	"internal/guard/exam": {"internal/guard/tamper"},
}

type listed struct {
	ImportPath string
	Imports    []string
	Dir        string
}

func packages(t *testing.T) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,Dir", "./...")
	cmd.Dir = "../.."
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []listed
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p listed
		switch err := dec.Decode(&p); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// relative is the path below the module, "" for its root.
func relative(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, strings.TrimSuffix(module, "/")), "/")
}

func layerOf(path string) int {
	for i, l := range layers {
		for _, p := range l {
			if path == p || strings.HasPrefix(path, p+"/") && !slices.Contains(slices.Concat(layers...), path) {
				return i
			}
		}
	}
	return -1
}

// wrong lists the imports of p that go up or sideways.
func wrong(p listed) []string {
	var bad []string
	from := relative(p.ImportPath)
	at := layerOf(from)
	for _, imp := range p.Imports {
		to, ours := strings.CutPrefix(imp, module)
		if imp == strings.TrimSuffix(module, "/") {
			continue // the root holds the action's metadata and knows nothing
		}
		if !ours || strings.HasPrefix(to, from+"/") || strings.HasPrefix(from, to+"/") {
			continue
		}
		if l := layerOf(to); l < at || l == at && slices.Contains(sideways[from], to) {
			continue
		}
		bad = append(bad, to)
	}
	return bad
}

func TestImportsGoDownTheLayers(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		name := relative(p.ImportPath)
		if strings.Contains(name, "archtest") || strings.HasPrefix(name, "e2e") {
			continue
		}
		if layerOf(name) < 0 {
			t.Errorf("%s stands in no layer: add it to the table of this test and to docs/architecture.md", name)
			continue
		}
		for _, to := range wrong(p) {
			t.Errorf("%s imports %s, which does not lie below it", name, to)
		}
	}
	control := listed{ImportPath: module + "internal/loop", Imports: []string{module + "internal/git", module + "internal/app"}}
	if got := wrong(control); len(got) != 2 {
		t.Errorf("a loop that imports git and app passes: %v", got)
	}
}

func TestEveryPackageSaysWhatItOwnsAndWhatItMustNeverDo(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		name := relative(p.ImportPath)
		base := name[strings.LastIndex(name, "/")+1:]
		if slices.Contains([]string{"util", "common", "helpers", "types", "models"}, base) {
			t.Errorf("%s: a name that says nothing", name)
		}
		if !strings.HasPrefix(name, "internal/") {
			continue
		}
		// Line breaks fall anywhere in a comment.
		if text := strings.Join(strings.Fields(packageComment(t, p.Dir)), " "); !strings.Contains(text, "must never") {
			t.Errorf("%s: its doc comment does not say what it must never do: %q", name, text)
		}
	}
}

// packageComment is the longest package comment of a directory's own files.
func packageComment(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	longest := ""
	for _, f := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), f, nil, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			t.Fatal(err)
		}
		if c := parsed.Doc.Text(); !strings.HasSuffix(f, "_test.go") && len(c) > len(longest) {
			longest = c
		}
	}
	return longest
}

// The sandbox's scrubber takes secrets out of the environment, so it has to read it.
func TestOnlyTheWiringReadsTheEnvironment(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("git", "-C", "../..", "grep", "-nE", `os\.(Getenv|LookupEnv|Environ)\(`, "--", "internal/*.go", ":!*_test.go", ":!internal/app/", ":!internal/sandbox/harden_linux.go").CombinedOutput()
	if err == nil {
		t.Errorf("the environment is read outside internal/app and cmd:\n%s", out)
	}
}
