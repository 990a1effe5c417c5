package forgetest_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/forge/forgetest"
)

// Git itself verifies what the forge signs; what GitHub would not sign is not signed here either.
func TestACommitOfABotIsSignedAndGitVerifiesIt(t *testing.T) {
	t.Parallel()
	g := newGitHub(t, forgetest.Options{})
	g.AddUser("alice", "write")
	job := g.NewToken(forgetest.Token{Job: true, Permissions: map[string]string{"contents": "write"}})
	reader := g.NewToken(forgetest.Token{Job: true, Permissions: map[string]string{"contents": "read"}})
	person := g.NewToken(forgetest.Token{Login: "alice"})
	parent := g.Branch("main")
	tree, err := gitCmd(t, g.GitDir(), "rev-parse", "main^{tree}")
	if err != nil {
		t.Fatal(tree)
	}
	signers := filepath.Join(t.TempDir(), "signers")
	if err := os.WriteFile(signers, []byte(g.AllowedSigners()), 0o600); err != nil {
		t.Fatal(err)
	}
	ask := map[string]any{"message": "Work\n", "tree": strings.TrimSpace(tree), "parents": []string{parent}}
	with := func(key string, value any) map[string]any {
		out := map[string]any{key: value}
		for k, v := range ask {
			if k != key {
				out[k] = v
			}
		}
		return out
	}
	for _, c := range []struct {
		name, token string
		body        map[string]any
		off         bool
		status      int
		signed      bool
	}{
		{name: "a job's token", token: job, body: ask, status: 201, signed: true},
		{name: "with an author", token: job, body: with("author", map[string]string{"name": "A", "email": "a@example.com", "date": "2026-01-02T03:04:05Z"}), status: 201},
		{name: "with a committer", token: job, body: with("committer", map[string]string{"name": "A", "email": "a@example.com", "date": "2026-01-02T03:04:05Z"}), status: 201},
		{name: "a person's token", token: person, body: ask, status: 201},
		{name: "a server that does not sign", token: job, body: ask, off: true, status: 201},
		{name: "without write access", token: reader, body: ask, status: 403},
		{name: "a tree that is not there", token: job, body: with("tree", parent), status: 422},
		{name: "a parent that is not there", token: job, body: with("parents", []string{strings.Repeat("ab", 20)}), status: 422},
	} {
		g.Set(forgetest.CommitSigning(!c.off))
		b, err := json.Marshal(c.body)
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.APIURL()+"/repos/octo/shop/git/commits", bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+c.token)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		var made struct {
			SHA          string
			Verification struct{ Verified bool }
		}
		_ = json.NewDecoder(resp.Body).Decode(&made)
		resp.Body.Close()
		if resp.StatusCode != c.status || made.Verification.Verified != c.signed {
			t.Errorf("%s: %d, verified %v", c.name, resp.StatusCode, made.Verification.Verified)
		}
		if c.status != 201 {
			continue
		}
		out, err := gitCmd(t, g.GitDir(), "-c", "gpg.format=ssh", "-c", "gpg.ssh.allowedSignersFile="+signers, "verify-commit", made.SHA)
		if (err == nil) != c.signed {
			t.Errorf("%s: git says %v: %s", c.name, err, out)
		}
	}
}
