package main

import (
	"context"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/proctor-ci/proctor/internal/forge/forgetest"
	"github.com/proctor-ci/proctor/internal/trigger"
)

// INV-53 at this door, INV-45: CI that fails on a branch of a run starts one run on either forge, where the setting says that it may.
func TestCIThatFailsStartsOneRunWhereTheSettingSaysSo(t *testing.T) {
	t.Parallel()
	key, text := appKey(t)
	g := newGitHub(t, 34)
	g.AddUser("ann", "write")
	g.InstallApp(12, 34, "proctor-ci", &key.PublicKey, map[string]string{"metadata": "read", "issues": "write", "actions": "write"})
	l := newGitLab(t)
	l.AddUser("ann", "developer")
	l.AddUser("robot", "developer")
	set := []string{
		"PROCTOR_WEBHOOK_SECRET", hookSecret, "GITHUB_APP_ID", "12", "GITHUB_APP_PRIVATE_KEY", strings.ReplaceAll(text, "\n", `\n`), "GITHUB_API_URL", g.APIURL(),
		"PROCTOR_GITLAB_WEBHOOK_TOKEN", "token-of-ours", "GITLAB_TOKEN", l.NewToken(forgetest.GitLabToken{Login: "robot"}), "GITLAB_URL", l.URL(),
	}
	off, _ := startProgram(t, settings(set...))
	on, log := startProgram(t, settings(append(set, "PROCTOR_CHECK_FAILURES", "true")...))
	type site interface {
		OpenIssue(title, body, author string) int
		EndCI(forgetest.CI) error
		Settle()
		Deliveries() []forgetest.Delivery
		Branch(string) string
		Commit(ctx context.Context, branch string, files fs.FS, message string) (string, error)
	}
	for name, c := range map[string]struct {
		site
		hook func(url string)
		runs func() []map[string]string
	}{
		"github": {g, func(url string) { g.SetHook(url+"/github", hookSecret) }, func() (out []map[string]string) {
			for _, r := range g.Runs() {
				if r.Event == "workflow_dispatch" {
					out = append(out, r.Inputs)
				}
			}
			return out
		}},
		"gitlab": {l, func(url string) { l.SetHook(url+"/gitlab", "token-of-ours", nil) }, func() (out []map[string]string) {
			for _, p := range l.Pipelines() {
				if p.Source == "api" {
					out = append(out, map[string]string{"issue": p.Variables["PROCTOR_ISSUE"], "request": p.Variables["PROCTOR_REQUEST"], "proctor_id": p.Variables["PROCTOR_ID"]})
				}
			}
			return out
		}},
	} {
		issue := c.OpenIssue("Round half up", "totals", "ann")
		if issue != 1 {
			t.Fatalf("%s: issue %d", name, issue)
		}
		branch := "proctor/issue-1"
		if _, err := c.Commit(t.Context(), branch, fstest.MapFS{"a.txt": {Data: []byte("a\n")}}, "Work"); err != nil {
			t.Fatal(err)
		}
		ends := func(branch string) string {
			t.Helper()
			if err := c.EndCI(forgetest.CI{Branch: branch, Job: "unit", Log: "FAIL\n"}); err != nil {
				t.Fatal(err)
			}
			c.Settle()
			all := c.Deliveries()
			return string(all[len(all)-1].Response)
		}
		c.hook(off)
		if said := ends(branch); !strings.Contains(said, "checks_off") || len(c.runs()) != 0 {
			t.Errorf("%s, control: %s, %d runs", name, said, len(c.runs()))
		}
		c.hook(on)
		if said := ends("main"); !strings.Contains(said, "other_branch") || len(c.runs()) != 0 {
			t.Errorf("%s, another branch: %s", name, said)
		}
		if said := ends(branch); !strings.Contains(said, `"dispatched"`) {
			t.Fatalf("%s: %s; log: %s", name, said, log)
		}
		if said := ends(branch); !strings.Contains(said, `"duplicate"`) {
			t.Errorf("%s, another workflow: %s", name, said)
		}
		runs := c.runs()
		if len(runs) != 1 {
			t.Fatalf("%s: runs %+v", name, runs)
		}
		if got, err := trigger.ParseDispatch(runs[0]); err != nil || got.Issue.Number != 1 || got.Check == nil || got.Check.SHA != c.Branch(branch) || got.Change.Head != branch || got.Actor != (trigger.Actor{}) {
			t.Errorf("%s: the run reads %+v, %v", name, got, err)
		}
	}
}
