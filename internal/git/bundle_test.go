package git

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// INV-51, INV-27: a bundle gives the commit to whoever has the base, and holds none of the base's sealed files. The control reads the
// change out of it.
func TestABundleHoldsTheChangeAndNothingOfTheBase(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"sha1", "sha256"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			checkout := initRepo(t, sample(), "--object-format="+kind)
			sp := newSpace(t, checkout, heldOut)
			put(t, sp.agent.Dir(), "pkg/sum.go", "package pkg\n")
			id := sp.snapshot(t, sp.store.Base()).Commit
			file := filepath.Join(t.TempDir(), "a.bundle")
			if err := sp.store.Bundle(t.Context(), file, "proctor/issue-1", id); err != nil {
				t.Fatal(err)
			}
			sealed := strings.TrimSpace(plain(t, checkout, "rev-parse", "HEAD:tests/acceptance/sum_test.txt"))
			if _, err := tryPlain(checkout, "cat-file", "-e", string(id)); err == nil {
				t.Fatal("the checkout has the commit already, so the bundle shows nothing")
			}
			// Alone it holds the change's objects only.
			bare := t.TempDir()
			plain(t, bare, "init", "-q", "--bare", "--object-format="+kind)
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			pack := filepath.Join(bare, "objects", "pack", "pack-x.pack")
			if err := os.WriteFile(pack, b[bytes.Index(b, []byte("\n\nPACK"))+2:], 0o644); err != nil {
				t.Fatal(err)
			}
			plain(t, bare, "index-pack", pack)
			listed := plain(t, bare, "cat-file", "--batch-all-objects", "--batch-check")
			if strings.Contains(listed, sealed) || !strings.Contains(listed, string(id)) {
				t.Errorf("the pack holds\n%s\nthe sealed file is %s, the commit %s", listed, sealed, id)
			}
			plain(t, checkout, "fetch", "-q", file, "proctor/issue-1")
			if got := plain(t, checkout, "show", string(id)+":pkg/sum.go"); got != "package pkg\n" {
				t.Errorf("the fetched commit holds %q", got)
			}
		})
	}
}
