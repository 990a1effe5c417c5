package forgesuite

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
)

// inRepository runs git in the forge's own repository.
func (w World) inRepository(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("git", append([]string{"--git-dir=" + w.Site.GitDir()}, args...)...).Output()
	must(t, err)
	return strings.TrimSpace(string(out))
}

// makeCommit: a client that can make no commits the forge signs says so by not having the call.
func makeCommit(t *testing.T, w World) {
	maker, ok := w.Forge.(forge.CommitMaker)
	if ok != w.Signs {
		t.Fatalf("the client makes commits: %v, and its forge signs them: %v", ok, w.Signs)
	}
	if !ok {
		return
	}
	ctx := t.Context()
	if why := maker.Unsigned(); why != "" {
		t.Errorf("the token is a bot's, and it is said that nothing is signed: %s", why)
	}
	first := w.branch(t, "one")
	second := w.branch(t, "two")
	ask := forge.NewCommit{Tree: w.inRepository(t, "rev-parse", first+"^{tree}"), Parents: []string{second, first}, Message: "Work on é\n\nProctor-Run: r1\n"}
	must(t, w.Site.Fail("POST /repos/*/*/git/commits", 1, forgetest.DoneBut502())) // a lost answer is asked again
	made, err := maker.MakeCommit(ctx, ask)
	must(t, err)
	if made.Tree != ask.Tree || !slices.Equal(made.Parents, ask.Parents) || !made.Verified || made.Reason != "valid" || !strings.HasPrefix(made.Signature, "-----BEGIN ") {
		t.Errorf("made %+v", made)
	}
	if got := w.inRepository(t, "cat-file", "commit", made.ID); !strings.Contains(got, "\ngpgsig -----BEGIN ") || !strings.HasSuffix(made.Payload, "\n\n"+ask.Message) || !strings.Contains(made.Payload, "author "+w.Bot+" <") {
		t.Errorf("signed was %q, stored is %q", made.Payload, got)
	}
	if refs := w.inRepository(t, "for-each-ref", "--points-at="+made.ID); refs != "" {
		t.Errorf("INV-20 making a commit moved %s", refs)
	}
	ask.Tree = strings.Repeat("ab", 20)
	if _, err := maker.MakeCommit(ctx, ask); !errors.Is(err, forge.ErrInvalid) {
		t.Errorf("a tree that is not there: %v", err)
	}
}
