package doctor

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/config"
	"github.com/proctor-ci/proctor/internal/detect"
)

// examples are the folders that users copy from.
func examples(t *testing.T) map[string]config.Config {
	t.Helper()
	found := map[string]config.Config{}
	files, err := filepath.Glob("../../examples/*/.github/proctor.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Dir(filepath.Dir(f))
		if found[dir], err = config.Load(f, b); err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
	if len(found) != 6 {
		t.Fatalf("%d examples", len(found))
	}
	return found
}

// treeOf is the tree that a commit of the folder would have.
func treeOf(t *testing.T, dir string) Tree {
	t.Helper()
	tree := Tree{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(filepath.Join(dir, path))
		tree[path] = fmt.Sprintf("%x", sha256.Sum256(b))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestTheExamplesAreRightInDoctorsEyes(t *testing.T) {
	t.Parallel()
	stacks := map[string]string{"go": "go", "node": "node", "python": "python", "rust": "rust", "java": "maven", "monorepo": "make"}
	for dir, c := range examples(t) {
		name := filepath.Base(dir)
		for _, f := range Traps(c, treeOf(t, dir)) {
			if f.Status == Failed {
				t.Errorf("%s: %+v", name, f)
			}
		}
		path := filepath.Join(dir, ".github/workflows/proctor.yml")
		workflow, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range Workflow(path, workflow, c) {
			if f.Status == Failed {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if c.Gates.HeldOut() == 0 {
			t.Errorf("%s holds nothing out", name)
		}
		p := detect.Detect(os.DirFS(dir))
		about := ""
		for _, f := range p.Facts {
			about += f.About + ": " + f.Value + "\n"
		}
		if !strings.Contains(about, stacks[name]) || !strings.Contains(about, "gates.iteration: ") {
			t.Errorf("%s: what is detected is\n%s", name, about)
		}
		// The control: the sealed files gone, the trap is seen.
		if found := Traps(c, Tree{"README.md": "1"}); len(failures(found)) == 0 {
			t.Errorf("%s without its held-out files: no trap is seen", name)
		}
	}
}
