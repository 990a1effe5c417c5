package detect_test

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/config"
	"github.com/proctor-ci/proctor/internal/detect"
)

var update = flag.Bool("update", false, "write what was detected into the archives")

// describe is one line for each fact and each thing unknown.
func describe(p detect.Proposal) string {
	var b strings.Builder
	for _, f := range p.Facts {
		fmt.Fprintf(&b, "%s: %s [%s: %s]\n", f.About, f.Value, f.Confidence, strings.Join(f.Evidence, ", "))
	}
	for _, u := range p.Unknown {
		fmt.Fprintf(&b, "unknown: %s\n", u)
	}
	return b.String()
}

// Each archive begins with what is right to say about the repository in it.
func TestRepositoriesAreReadFromTheirFiles(t *testing.T) {
	t.Parallel()
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) < 25 {
		t.Fatalf("%d archives, %v", len(archives), err)
	}
	for _, name := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			a := parseArchive(data)
			p := detect.Detect(a.files)
			got := describe(p)
			if *update {
				if err := os.WriteFile(name, append([]byte(got), a.rest...), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(a.comment), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			evidenceExists(t, a.files, p)
			c, assumed := p.Config()
			if len(assumed) == 0 || config.Digest(c) == "" {
				t.Error("nothing is said to be assumed")
			}
		})
	}
}

func evidenceExists(t *testing.T, fsys fs.FS, p detect.Proposal) {
	t.Helper()
	for _, f := range p.Facts {
		if len(f.Evidence) == 0 {
			t.Errorf("%s %q has no evidence", f.About, f.Value)
		}
		for _, e := range f.Evidence {
			if _, err := fs.Stat(fsys, e); err != nil {
				t.Errorf("%s %q rests on %s: %v", f.About, f.Value, e, err)
			}
		}
	}
}

func TestTheProposalBecomesAConfiguration(t *testing.T) {
	t.Parallel()
	p := detect.Detect(fstest.MapFS{
		"package.json":               {Data: []byte(`{"scripts": {"test": "vitest run", "test:acceptance": "vitest run -c acceptance"}, "devDependencies": {"vitest": "2"}}`)},
		"package-lock.json":          {Data: []byte(`{}`)},
		"tests/acceptance/a.test.js": {Data: []byte("x")},
	})
	got, assumed := p.Config()
	want := config.Default()
	want.Setup = []config.Command{config.Shell("npm ci")}
	want.Gates.Iteration = config.Shell("npm test")
	want.Gates.Acceptance.Run = config.Shell("npm run test:acceptance")
	want.Gates.Acceptance.Sealed = []string{"tests/acceptance/**"}
	want.Workspace.Carry = []string{"node_modules"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	wantAssumed := []string{
		"gates.iteration: npm test (by package.json)",
		"setup: npm ci (by package-lock.json)",
		"gates.acceptance.run: npm run test:acceptance (by package.json)",
		"gates.acceptance.sealed: tests/acceptance/** (likely, by tests/acceptance/a.test.js)",
		"workspace.carry: node_modules (likely, by package.json)",
	}
	if diff := cmp.Diff(wantAssumed, assumed); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnEmptyRepositoryIsUnknownAndSaysSo(t *testing.T) {
	t.Parallel()
	p := detect.Detect(fstest.MapFS{})
	c, assumed := p.Config()
	if diff := cmp.Diff(config.Default(), c); diff != "" {
		t.Errorf("(-default +got):\n%s", diff)
	}
	if len(p.Facts) != 0 || len(assumed) == 0 || !strings.Contains(assumed[0], "no stack was recognised") {
		t.Errorf("facts %v, assumed %q", p.Facts, assumed)
	}
}

func TestHostileNamesNeverReachACommand(t *testing.T) {
	t.Parallel()
	p := detect.Detect(fstest.MapFS{
		"$(touch x)/go.mod":       {Data: []byte("module x")},
		"-rf/package.json":        {Data: []byte(`{"scripts": {"test": "x"}}`)},
		"a;b/Cargo.toml":          {Data: []byte("[package]")},
		"ok/pyproject.toml/x.txt": {Data: []byte("a folder by that name")},
		"ok/package.json":         {Data: []byte(`{"scripts": {"test": ["no", "text"]}}`)},
		"Makefile":                {Data: []byte("tests: := x\n\x00\xff")},
	})
	for _, f := range p.Facts {
		if strings.ContainsAny(f.Value, "$;`\"'\\") || strings.Contains(f.Value, "cd -") {
			t.Errorf("%+v", f)
		}
	}
}

func FuzzDetect(f *testing.F) {
	archives, _ := filepath.Glob("testdata/*.txtar")
	for _, name := range archives {
		if data, err := os.ReadFile(name); err == nil {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m := fstest.MapFS{}
		for name, file := range parseArchive(data).files {
			if fs.ValidPath(name) && name != "." {
				m[name] = file
			}
		}
		p := detect.Detect(m)
		for _, fact := range p.Facts {
			if fact.About == "" || fact.Value == "" || len(fact.Evidence) == 0 || strings.ContainsAny(fact.Value, "\n\x00`") {
				t.Errorf("%+v", fact)
			}
		}
	})
}
