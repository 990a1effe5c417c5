package archtest

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/proctor-ci/proctor/"

// layers is DESIGN §3 in code: a package may import packages of lower layers and those that its own
// row names. Packages of one layer do not know each other but where a line says so.
var layers = [][]string{
	{"internal/money", "internal/trigger", "internal/forge", "internal/evidence", "internal/loop", "internal/detect", "internal/config", "internal/prompt", "internal/ci", "internal/git", "internal/sandbox", "internal/guard/secrets", "templates", "internal/demo"},
	{"internal/policy", "internal/meter", "internal/gate", "internal/forge/wire"},
	{"internal/agent", "internal/guard", "internal/judge", "internal/forge/github", "internal/forge/gitlab"},
	{"internal/publish", "internal/webhook", "internal/agent/agenttest"},
	{"internal/forge/forgetest", "internal/forge/forgesuite", "internal/webhook/claimtest"},
	{"internal/app"},
	{"cmd/action", "cmd/webhook", "cmd/proctor"},
}

// sideways are the edges within a layer that are meant.
var sideways = map[string][]string{
	"internal/loop":     {"internal/money"},
	"internal/evidence": {"internal/money"},
	"internal/config":   {"internal/money"},
	"internal/detect":   {"internal/config"},
}

type listed struct {
	ImportPath string
	Imports    []string
	Doc        string
}

func packages(t *testing.T) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,Doc", "./...")
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
	from := strings.TrimPrefix(p.ImportPath, module)
	at := layerOf(from)
	for _, imp := range p.Imports {
		to, ours := strings.CutPrefix(imp, module)
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
		name := strings.TrimPrefix(p.ImportPath, module)
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
		name := strings.TrimPrefix(p.ImportPath, module)
		base := name[strings.LastIndex(name, "/")+1:]
		if slices.Contains([]string{"util", "common", "helpers", "types", "models"}, base) {
			t.Errorf("%s: a name that says nothing", name)
		}
		if strings.HasPrefix(name, "internal/") && (!strings.Contains(p.Doc, "own") && !strings.Contains(p.Doc, "hold")) {
			t.Errorf("%s: its doc comment does not say what it owns: %q", name, p.Doc)
		}
	}
}

func TestOnlyTheWiringReadsTheEnvironment(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("git", "-C", "../..", "grep", "-nE", `os\.(Getenv|LookupEnv|Environ)\(`, "--", "internal/*.go", ":!*_test.go", ":!internal/app/").CombinedOutput()
	if err == nil {
		t.Errorf("the environment is read outside internal/app and cmd:\n%s", out)
	}
}
