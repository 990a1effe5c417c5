package app

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
	"github.com/proctor-ci/proctor/internal/forge/github"
	"github.com/proctor-ci/proctor/internal/forge/gitlab"
	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/publish"
)

// sessionOn has a store whose base is one commit on top of the forge's: file, by plain git.
func sessionOn(t *testing.T, client forge.Forge, bare, file, content string) (*session, string) {
	t.Helper()
	checkout := filepath.Join(t.TempDir(), "checkout")
	plain := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull,
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	plain("clone", "-q", bare, checkout)
	if err := os.MkdirAll(filepath.Dir(filepath.Join(checkout, file)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(checkout, file), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	plain("-C", checkout, "add", "-A")
	plain("-C", checkout, "commit", "-qm", "change")
	g, err := git.New(git.Options{Path: os.Getenv("PATH")})
	if err != nil {
		t.Fatal(err)
	}
	store, err := g.OpenStore(t.Context(), git.StoreOptions{Checkout: checkout, Dir: filepath.Join(t.TempDir(), "store")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	r := client.Remote()
	return &session{store: store, remote: git.Remote{URL: r.URL, Username: r.Username, Token: r.Token, DefaultBranch: base}}, string(store.Base())
}

// INV-51: what real git prints of a forge's refusal reaches that forge's client whole, so that a person
// hears what to click. Control: the same push where nothing refuses.
func TestARefusedPushOfRealGitSaysWhatToClick(t *testing.T) {
	t.Parallel()
	const branch = "proctor/issue-1"
	files := fstest.MapFS{"README.md": {Data: []byte("# shop\n")}}
	type world struct {
		client interface {
			forge.Forge
			forge.PushExplainer
		}
		bare string
	}
	onGitHub := func(contents string, set ...forgetest.Setting) func(*testing.T) world {
		return func(t *testing.T) world {
			g, err := forgetest.NewGitHub(forgetest.Options{Dir: t.TempDir(), Files: files})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { g.Close() })
			g.Set(set...)
			token := "of nobody"
			if contents != "" {
				token = g.NewToken(forgetest.Token{Job: true, Permissions: map[string]string{"contents": contents}})
			}
			c, err := github.New(github.Config{BaseURL: g.APIURL(), ServerURL: g.URL(), Owner: g.Owner(), Repo: g.Repo(), Token: token})
			if err != nil {
				t.Fatal(err)
			}
			return world{c, g.GitDir()}
		}
	}
	onGitLab := func(who forgetest.GitLabToken, protect ...string) func(*testing.T) world {
		return func(t *testing.T) world {
			dir := t.TempDir()
			g, err := forgetest.NewGitLab(forgetest.GitLabOptions{Dir: dir, Files: files})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { g.Close() })
			g.AddUser("bot", "developer")
			g.Protect(protect...)
			token := "of nobody"
			if who.Login != "" {
				token = g.NewToken(who)
			}
			c, err := gitlab.New(gitlab.Config{ServerURL: g.URL(), Project: g.Project(), Token: token})
			if err != nil {
				t.Fatal(err)
			}
			return world{c, g.GitDir()}
		}
	}
	bot := forgetest.GitLabToken{Login: "bot"}
	const workflow = ".github/workflows/x.yml"
	for name, c := range map[string]struct {
		world      func(*testing.T) world
		file, body string
		kind       error
		click      string
	}{
		"control: GitHub takes it":   {world: onGitHub("write")},
		"control: GitLab takes it":   {world: onGitLab(bot)},
		"a protected branch":         {world: onGitHub("write", forgetest.Protected(branch)), kind: forge.ErrForbidden, click: "/octo/shop/settings/branches"},
		"a workflow file":            {world: onGitHub("write"), file: workflow, kind: forge.ErrForbidden, click: "Workflows: Read and write"},
		"a file over the limit":      {world: onGitHub("write", forgetest.MaxBlob(1000)), body: strings.Repeat("x", 1001), kind: forge.ErrTooLarge, click: "Git LFS"},
		"no contents: write":         {world: onGitHub("read"), kind: forge.ErrForbidden, click: "`contents: write`"},
		"an archived repository":     {world: onGitHub("write", forgetest.Archived(true)), kind: forge.ErrArchived, click: "unarchive"},
		"a token that is not known":  {world: onGitHub(""), kind: forge.ErrUnauthorized, click: "make a new token"},
		"a protected GitLab branch":  {world: onGitLab(bot, branch), kind: forge.ErrForbidden, click: "/-/settings/repository"},
		"a job's own token":          {world: onGitLab(forgetest.GitLabToken{Login: "bot", Job: true}), kind: forge.ErrForbidden, click: "/-/settings/access_tokens"},
		"a token GitLab never heard": {world: onGitLab(forgetest.GitLabToken{}), kind: forge.ErrUnauthorized, click: "/-/settings/access_tokens"},
	} {
		t.Run("INV-51 "+name, func(t *testing.T) {
			t.Parallel()
			w := c.world(t)
			file, body := c.file, c.body
			if file == "" {
				file = "fix.txt"
			}
			s, commit := sessionOn(t, w.client, w.bare, file, body)
			err := s.Push(t.Context(), branch, commit, "")
			if c.kind == nil {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			var refused *publish.PushError
			if !errors.As(err, &refused) || refused.Output == "" {
				t.Fatalf("%v is no *publish.PushError with git's words", err)
			}
			var told *forge.Error
			if err := w.client.ExplainPush(branch, refused.Output); !errors.Is(err, c.kind) || !errors.As(err, &told) || !strings.Contains(told.Next, c.click) {
				t.Errorf("%v, want %v and %q in the next step; git said:\n%s", err, c.kind, c.click, refused.Output)
			}
			if strings.Contains(refused.Output, w.client.Remote().Token) {
				t.Errorf("the token is in git's words:\n%s", refused.Output)
			}
		})
	}
}
