package forgesuite

import (
	"testing"
	"testing/fstest"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
)

// GitHub is a world around a fresh test GitHub; dial makes the client under test.
func GitHub(t *testing.T, enterprise bool, dial func(*testing.T, *forgetest.GitHub, string, *Clock) forge.Forge) World {
	t.Helper()
	clock := NewClock()
	g := got(forgetest.NewGitHub(forgetest.Options{Dir: t.TempDir(), Files: Files(), Enterprise: enterprise, Clock: clock.Now}))(t)
	t.Cleanup(func() { g.Close() })
	token := g.NewToken(forgetest.Token{Job: true, Permissions: map[string]string{
		"contents": "write", "issues": "write", "pull_requests": "write", "actions": "write", "checks": "write",
	}})
	return World{
		Site: g, Forge: dial(t, g, token, clock), Bot: "github-actions[bot]", Clock: clock, Workflow: ".github/workflows/proctor.yml", Signs: true,
		Started: func() int { return len(g.Runs()) },
		Paths: map[string]string{
			"create-pull": "POST /repos/*/*/pulls", "create-comment": "POST /repos/*/*/issues/*/comments",
			"answer-pull": "POST /repos/*/*/issues/*/comments", "answer-thread": "POST /repos/*/*/pulls/*/comments/*/replies",
			"check": "POST /repos/*/*/check-runs", "delete-branch": "DELETE /repos/*/*/git/refs/heads/*/*",
			"issue": "GET /repos/*/*/issues/*", "dispatch": "POST /repos/*/*/actions/workflows/*/dispatches",
		},
		Roles: map[forge.Role]string{
			forge.RoleAdmin: "admin", forge.RoleMaintain: "maintain", forge.RoleWrite: "write", forge.RoleTriage: "triage", forge.RoleRead: "read",
		},
	}
}

// GitLab is a world around a fresh test GitLab.
func GitLab(t *testing.T, dial func(*testing.T, *forgetest.GitLab, string, *Clock) forge.Forge) World {
	t.Helper()
	clock, files := NewClock(), Files()
	files[".gitlab-ci.yml"] = &fstest.MapFile{Data: []byte("proctor:\n  script: [proctor]\n")}
	g := got(forgetest.NewGitLab(forgetest.GitLabOptions{Dir: t.TempDir(), Files: files, Clock: clock.Now}))(t)
	t.Cleanup(func() { g.Close() })
	const bot = "project_4200_bot_1a2b"
	g.AddUser(bot, "developer")
	return World{
		Site: g, Forge: dial(t, g, g.NewToken(forgetest.GitLabToken{Login: bot}), clock), Bot: bot, Clock: clock, Workflow: ".gitlab-ci.yml",
		Started: func() int { return len(g.Pipelines()) },
		Paths: map[string]string{
			"create-pull": "POST /projects/*/merge_requests", "create-comment": "POST /projects/*/issues/*/notes",
			"answer-pull": "POST /projects/*/merge_requests/*/notes", "answer-thread": "POST /projects/*/merge_requests/*/discussions/*/notes",
			"check": "POST /projects/*/statuses/*", "delete-branch": "DELETE /projects/*/repository/branches/*",
			"issue": "GET /projects/*/issues/*", "dispatch": "POST /projects/*/pipeline",
		},
		Roles: map[forge.Role]string{
			forge.RoleAdmin: "owner", forge.RoleMaintain: "maintainer", forge.RoleWrite: "developer", forge.RoleTriage: "reporter", forge.RoleRead: "guest",
		},
	}
}
