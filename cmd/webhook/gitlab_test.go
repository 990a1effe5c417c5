package main

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/proctor-ci/proctor/internal/forge/forgetest"
)

func newGitLab(t *testing.T) *forgetest.GitLab {
	t.Helper()
	g, err := forgetest.NewGitLab(forgetest.GitLabOptions{
		Dir: t.TempDir(), Project: "group/sub/shop", Files: fstest.MapFS{".gitlab-ci.yml": {Data: []byte("proctor:\n  script: [\"true\"]\n")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// INV-53 at this door: a label on GitLab starts one pipeline with the same ids.
func TestALabelledGitLabIssueBecomesOnePipeline(t *testing.T) {
	t.Parallel()
	g := newGitLab(t)
	g.AddUser("ann", "developer")
	g.AddUser("tim", "reporter")
	g.AddUser("robot", "developer")
	key := []byte("0123456789abcdef0123456789abcdef")
	url, log := startProgram(t, settings(
		"PROCTOR_GITLAB_WEBHOOK_TOKEN", "token-of-ours", "PROCTOR_GITLAB_SIGNING_TOKEN", "whsec_"+base64.StdEncoding.EncodeToString(key),
		"GITLAB_TOKEN", g.NewToken(forgetest.GitLabToken{Login: "robot"}), "GITLAB_URL", g.URL(),
	))
	g.SetHook(url+"/gitlab", "token-of-ours", key)
	refused := g.OpenIssue("Round half up", "", "ann")
	if d, err := g.LabelIssue(refused, "proctor", "tim"); err != nil || d.Status != http.StatusAccepted || !strings.Contains(string(d.Response), `"role"`) {
		t.Errorf("INV-40 a label by a reporter: %d %s %v", d.Status, d.Response, err)
	}
	issue := g.OpenIssue("Round half up", "totals", "tim")
	d, err := g.LabelIssue(issue, "proctor", "ann")
	if err != nil || !strings.Contains(string(d.Response), `"dispatched"`) {
		t.Fatalf("%d %s %v; log: %s", d.Status, d.Response, err, log)
	}
	if d, err := g.Redeliver(d.ID); err != nil || !strings.Contains(string(d.Response), `"duplicate"`) {
		t.Errorf("the delivery again: %d %s %v", d.Status, d.Response, err)
	}
	ps := g.Pipelines()
	if len(ps) != 1 || ps[0].Variables["PROCTOR_ISSUE"] != "2" || !strings.Contains(ps[0].Variables["PROCTOR_REQUEST"], "%3Aann&") {
		t.Errorf("%d pipelines, want one: %+v", len(ps), ps)
	}
}
