package trigger

import (
	"os"
	"path/filepath"
	"testing"
)

func seeds(f *testing.F, dir string) {
	f.Add([]byte(`{"action":"labeled","label":{"name":"proctor"},"issue":{"number":1,"pull_request":{}},"repository":{"name":"r","owner":{"login":"o"}},"sender":{"login":"a","id":1}}`))
	f.Add([]byte(`{"object_kind":"note","user":{"username":"a"},"project":{"path_with_namespace":"a/b"},"object_attributes":{"action":"create","note":"/proctor run","noteable_type":"MergeRequest","id":1},"merge_request":{"iid":1}}`))
	f.Add([]byte(`null`))
	f.Add([]byte(`{"issue":[]}`))
	files, _ := filepath.Glob(filepath.Join(payloads, dir, "*.json"))
	for _, name := range files {
		if b, err := os.ReadFile(name); err == nil && len(b) < 20_000 {
			f.Add(b)
		}
	}
}

func FuzzParseGitHub(f *testing.F) {
	seeds(f, "github-derived")
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, event := range []string{"issues", "issue_comment", "workflow_run", "check_suite", "workflow_dispatch", "installation", "ping"} {
			tr, err := ParseGitHub(event, body, Options{})
			if err == nil && tr.Kind == "" {
				t.Errorf("%s: neither a trigger nor an error", event)
			}
			if err == nil && (tr.Kind == KindLabel || tr.Kind == KindComment || tr.Kind == KindDispatch) && tr.Issue.Number <= 0 {
				t.Errorf("%s: a trigger without an issue", event)
			}
			if err == nil && tr.Kind == KindCheck && (tr.Check == nil || tr.Change == nil || tr.Actor != (Actor{})) {
				t.Errorf("%s: a check without its subject, or of somebody's: %+v", event, tr)
			}
		}
	})
}

func FuzzParseGitLab(f *testing.F) {
	seeds(f, "gitlab-derived")
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, event := range []string{"Issue Hook", "Note Hook", "Confidential Note Hook", "Pipeline Hook"} {
			tr, err := ParseGitLab(event, body, Options{})
			if err == nil && (tr.Kind == "" || tr.Issue.Number <= 0 && tr.Kind != KindRun && tr.Kind != KindCheck || tr.Kind == KindCheck && (tr.Check == nil || tr.Change == nil || tr.Actor != (Actor{})) || tr.Kind == KindRun && (tr.Run == nil || tr.ID == "") || tr.Repo.Owner == "") {
				t.Errorf("%s: a trigger without its subject: %+v", event, tr)
			}
		}
	})
}
