package publish_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/publish"
	"github.com/proctor-ci/proctor/internal/publish/publishtest"
)

// Each refusal leaves the commit where it is kept and says what to click (INV-51).
func TestEveryRefusalOfAPullRequestKeepsTheBranchAndSaysWhatToClick(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind error
		on   string // forge
		said string
		next string // as the forge client says
		want []string
	}{
		"Actions may not open pull requests": {
			kind: forge.ErrPullRequestsForbidden, said: "GitHub Actions is not permitted to create or approve pull requests",
			want: []string{"Allow GitHub Actions to create and approve pull requests", "https://git.example/octo/shop/settings/actions", "/compare/main...proctor/issue-42?expand=1"},
		},
		"the job's token on GitLab": {
			kind: forge.ErrPullRequestsForbidden, on: "gitlab",
			want: []string{"project access token", "/-/merge_requests/new?merge_request%5Bsource_branch%5D=proctor%2Fissue-42"},
		},
		"no drafts in this plan": {kind: forge.ErrDraftUnsupported, want: []string{"plan has no draft", "/compare/main..."}},
		"expired token":          {kind: forge.ErrUnauthorized, want: []string{"expired", "/compare/main..."}},
		"not allowed":            {kind: forge.ErrForbidden, said: "Resource not accessible by integration", want: []string{"write access", "/compare/"}},
		"deleted repository":     {kind: forge.ErrNotFound, want: []string{"still exists", "/compare/"}},
		"invalid":                {kind: forge.ErrInvalid, said: "No commits between main and proctor/issue-42", want: []string{"/compare/"}},
		"rate limit":             {kind: forge.ErrRateLimited, want: []string{"rate limit resets"}},
		"forge down":             {kind: forge.ErrUnavailable, want: []string{"answers again"}},
		"the client knows":       {kind: forge.ErrForbidden, next: "grant pull-requests: write", want: []string{"grant pull-requests: write; or open it by hand"}},
	} {
		t.Run("INV-51 "+name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			if c.on != "" {
				w.forge.Kind = c.on
			}
			w.forge.Before = func(op string) error {
				if op == "CreatePullRequest" {
					return publishtest.Error("create pull request", c.kind, 403, c.said, c.next)
				}
				return nil
			}
			res, err := w.publish(t, proved(headID), w.aim(t))
			f := failure(t, err)
			if f.Step != publish.StepPullRequest || !errors.Is(err, c.kind) || f.Pushed != branch || res.Branch != branch || w.forge.Heads[branch] != headID {
				t.Errorf("step %s, pushed %q, branch at %s: %v", f.Step, f.Pushed, w.forge.Heads[branch], err)
			}
			for _, want := range c.want {
				if !strings.Contains(f.Next, want) {
					t.Errorf("next %q, want %q in it", f.Next, want)
				}
			}
			if strings.Contains(f.Reason(), f.Next) || strings.Contains(f.Reason(), "Next:") {
				t.Errorf("the reason repeats the next step: %s", f.Reason())
			}
			r := proved(headID)
			f.Settle(&r)
			if r.Terminal != evidence.PublishFailed || r.ExitCode != 6 || evidence.Validate(r) != nil || r.Published.Branch != branch {
				t.Errorf("record: %s %d %v", r.Terminal, r.ExitCode, evidence.Validate(r))
			}
		})
	}
	t.Run("control: the same run publishes where nothing refuses", func(t *testing.T) {
		t.Parallel()
		w := newWorld()
		mustPublish(t, w, headID)
	})
}

func TestEveryRefusalOfAPushKeepsTheCommitAndSaysWhatToClick(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		on, said string
		kind     error
		want     string
	}{
		"workflows permission": {"github", "refusing to allow a GitHub App to create or update workflow `.github/workflows/x.yml` without `workflows` permission", forge.ErrForbidden, "Workflows: Read and write"},
		"protected branch":     {"github", "remote: error: GH006: Protected branch update failed for refs/heads/proctor/issue-42.", forge.ErrForbidden, "https://git.example/octo/shop/settings/branches"},
		"rule set":             {"github", "remote: error: GH013: Repository rule violations found", forge.ErrForbidden, "https://git.example/octo/shop/rules"},
		"push protection":      {"github", "remote: error: GH013: Repository rule violations found\nremote: - GITHUB PUSH PROTECTION", forge.ErrForbidden, "secret"},
		"protected on GitLab":  {"gitlab", "remote: GitLab: You are not allowed to push code to protected branches on this project.", forge.ErrForbidden, "/-/settings/repository"},
		"expired token":        {"github", "fatal: Authentication failed for 'https://git.example/octo/shop.git/'", forge.ErrUnauthorized, "make a new token"},
		"no token at all":      {"github", "fatal: could not read Username for 'https://git.example': terminal prompts disabled", forge.ErrUnauthorized, "make a new token"},
		"an HTTP code alone":   {"github", "fatal: unable to access 'https://git.example/': The requested URL returned error: 403", forge.ErrForbidden, "contents: write"},
		"read-only token":      {"github", "remote: Permission to octo/shop.git denied to github-actions[bot].", forge.ErrForbidden, "contents: write"},
		"job token on GitLab":  {"gitlab", "remote: You are not allowed to upload code. fatal: The requested URL returned error: 403", forge.ErrForbidden, "project access token"},
		"deleted repository":   {"github", "remote: Repository not found.", forge.ErrNotFound, "still exists"},
		"archived":             {"github", "remote: This repository was archived so it is read-only.", forge.ErrArchived, "unarchive"},
		"renamed repository":   {"gitlab", "fatal: unable to access 'https://git.example/': The requested URL returned error: 301", forge.ErrMoved, "renamed"},
		"rewritten base":       {"github", "! [remote rejected] x -> x (shallow update not allowed)", forge.ErrConflict, "was rewritten meanwhile"},
		"server hook":          {"github", "! [remote rejected] x -> x (pre-receive hook declined)", forge.ErrForbidden, "hook of the server"},
		"a branch is a folder": {"gitlab", "! [remote rejected] x -> x/y (cannot lock ref)", forge.ErrConflict, "publish.branch"},
		"no network":           {"github", "fatal: unable to access 'https://git.example/': Could not resolve host", forge.ErrUnavailable, "could not be reached"},
		"something new":        {"github", "remote: the moon is full", forge.ErrInvalid, "what git said"},
	} {
		t.Run("INV-51 "+name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			w.forge.Kind = c.on
			target := w.aim(t)
			w.push.Before = func() error {
				return &publish.PushError{Output: "remote: with canary-secret-1\n" + c.said, Err: errors.New("push with canary-secret-1")}
			}
			_, err := w.publish(t, proved(headID), target)
			f := failure(t, err)
			if f.Step != publish.StepPush || !errors.Is(err, c.kind) || !strings.Contains(f.Next, c.want) || f.Pushed != "" {
				t.Errorf("step %s, next %q, want %q and %v: %v", f.Step, f.Next, c.want, c.kind, err)
			}
			if strings.Contains(f.Reason(), f.Next) {
				t.Errorf("the reason repeats the next step: %s", f.Reason())
			}
			if !strings.Contains(err.Error(), headID+" is kept on refs/proctor/42/run-42-1") {
				t.Errorf("the commit is not told to be kept: %v", err)
			}
			if strings.Contains(err.Error(), "canary-secret-1") {
				t.Errorf("INV-34: %v", err)
			}
			if w.forge.Count("CreatePullRequest") != 0 {
				t.Error("a pull request was asked for without a branch")
			}
		})
	}
}

// What git's own rules refused was never sent: there are no words of a forge to explain.
func TestAPushThatWasNeverSentKeepsThePushersOwnAdvice(t *testing.T) {
	t.Parallel()
	w := newWorld()
	target := w.aim(t)
	w.push.Before = func() error {
		return &publish.PushError{Next: "start from the branch's tip", Err: errors.New("push: refused: a commit by A Person would be lost")}
	}
	_, err := w.publish(t, proved(headID), target)
	if f := failure(t, err); f.Next != "start from the branch's tip" || !strings.Contains(f.Reason(), "A Person") {
		t.Errorf("next %q: %v", f.Next, err)
	}
}

func TestAimTellsAnExpiredTokenBeforeMoneyIsSpent(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"Repository", "Self", "Branch"} {
		w := newWorld()
		w.forge.Before = func(o string) error {
			if o == op {
				return publishtest.Error(op, forge.ErrUnauthorized, 401, "Bad credentials", "")
			}
			return nil
		}
		_, err := w.pub.Aim(t.Context(), branch, "main", nil)
		if f := failure(t, err); !errors.Is(err, forge.ErrUnauthorized) || !strings.Contains(f.Next, "expired") {
			t.Errorf("%s: %v", op, err)
		}
	}
}
