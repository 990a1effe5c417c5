package forgetest

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// The renderers give every field the API's own description requires, and those the program reads. That
// they do is checked against that description in e2e/api.

const stamp = time.RFC3339

func stampOf(t time.Time) string { return t.UTC().Format(stamp) }

// stampOrNil is null for the zero time.
func stampOrNil(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return stampOf(t)
}

func nodeID(kind string, id int64) string {
	return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%s%d", kind, id))
}

func (g *GitHub) userJSON(a *account) obj {
	u := g.APIURL() + "/users/" + url.PathEscape(a.login)
	html := g.url + "/" + a.login
	if name, isBot := strings.CutSuffix(a.login, "[bot]"); isBot {
		html = g.url + "/apps/" + name
	}
	return obj{
		"login": a.login, "id": a.id, "node_id": nodeID("U_", a.id), "type": a.kind, "site_admin": false, "user_view_type": "public",
		"avatar_url": fmt.Sprintf("%s/u/%d", g.url, a.id), "gravatar_id": "", "url": u, "html_url": html,
		"followers_url": u + "/followers", "following_url": u + "/following{/other_user}", "gists_url": u + "/gists{/gist_id}",
		"starred_url": u + "/starred{/owner}{/repo}", "subscriptions_url": u + "/subscriptions", "organizations_url": u + "/orgs",
		"repos_url": u + "/repos", "events_url": u + "/events{/privacy}", "received_events_url": u + "/received_events",
	}
}

func (g *GitHub) repoURL() string { return g.APIURL() + "/repos/" + g.fullName() }

func (g *GitHub) webURL() string { return g.url + "/" + g.fullName() }

// repoJSON is the "repository" that payloads and pull requests carry.
func (g *GitHub) repoJSON() obj {
	u := g.repoURL()
	r := obj{
		"id": int64(repositoryID), "node_id": nodeID("R_", repositoryID), "name": g.opt.Name, "full_name": g.fullName(), "private": g.opt.Private,
		"owner": g.userJSON(g.user(g.opt.Owner)), "html_url": g.webURL(), "description": nil, "fork": false, "url": u,
		"homepage": nil, "size": 1, "stargazers_count": 0, "watchers_count": 0, "language": nil, "forks_count": 0,
		"open_issues_count": g.openIssues(), "default_branch": g.opt.DefaultBranch, "topics": []string{}, "is_template": false,
		"has_issues": !g.issuesOff, "has_projects": true, "has_wiki": false, "has_pages": false, "has_downloads": true, "has_discussions": false,
		"archived": g.archived, "disabled": false, "visibility": visibility(g.opt.Private), "license": nil, "mirror_url": nil,
		"pushed_at": stampOf(g.since), "created_at": stampOf(g.since), "updated_at": stampOf(g.since),
		"forks": 0, "open_issues": g.openIssues(), "watchers": 0, "allow_forking": true, "web_commit_signoff_required": false,
		"git_url": "git://" + strings.TrimPrefix(g.webURL(), "http://") + ".git", "ssh_url": "git@127.0.0.1:" + g.fullName() + ".git",
		"clone_url": g.webURL() + ".git", "svn_url": g.webURL(),
	}
	for name, path := range map[string]string{
		"archive_url": "/{archive_format}{/ref}", "assignees_url": "/assignees{/user}", "blobs_url": "/git/blobs{/sha}",
		"branches_url": "/branches{/branch}", "collaborators_url": "/collaborators{/collaborator}", "comments_url": "/comments{/number}",
		"commits_url": "/commits{/sha}", "compare_url": "/compare/{base}...{head}", "contents_url": "/contents/{+path}",
		"contributors_url": "/contributors", "deployments_url": "/deployments", "downloads_url": "/downloads", "events_url": "/events",
		"forks_url": "/forks", "git_commits_url": "/git/commits{/sha}", "git_refs_url": "/git/refs{/sha}", "git_tags_url": "/git/tags{/sha}",
		"hooks_url": "/hooks", "issue_comment_url": "/issues/comments{/number}", "issue_events_url": "/issues/events{/number}",
		"issues_url": "/issues{/number}", "keys_url": "/keys{/key_id}", "labels_url": "/labels{/name}", "languages_url": "/languages",
		"merges_url": "/merges", "milestones_url": "/milestones{/number}", "notifications_url": "/notifications{?since,all,participating}",
		"pulls_url": "/pulls{/number}", "releases_url": "/releases{/id}", "stargazers_url": "/stargazers", "statuses_url": "/statuses/{sha}",
		"subscribers_url": "/subscribers", "subscription_url": "/subscription", "tags_url": "/tags", "teams_url": "/teams", "trees_url": "/git/trees{/sha}",
	} {
		r[name] = u + path
	}
	return r
}

func visibility(private bool) string {
	if private {
		return "private"
	}
	return "public"
}

// fullRepoJSON is the answer of "get a repository", which has more.
func (g *GitHub) fullRepoJSON() obj {
	r := g.repoJSON()
	r["network_count"], r["subscribers_count"] = 0, 0
	return r
}

func (g *GitHub) labelJSON(l *label) obj {
	return obj{"id": l.id, "node_id": nodeID("LA_", l.id), "url": g.repoURL() + "/labels/" + url.PathEscape(l.name),
		"name": l.name, "color": l.color, "default": false, "description": nil}
}

func (g *GitHub) labelsJSON(names []string) []obj {
	out := []obj{}
	for _, n := range names {
		if l := g.label(n); l != nil {
			out = append(out, g.labelJSON(l))
		}
	}
	return out
}

// issueJSON is an issue, or a pull request as the issues API shows it.
func (g *GitHub) issueJSON(is *issue) obj {
	u := fmt.Sprintf("%s/issues/%d", g.repoURL(), is.number)
	o := obj{
		"id": is.id, "node_id": nodeID("I_", is.id), "number": is.number, "title": is.title, "body": is.body,
		"state": is.state, "state_reason": nil, "locked": is.locked, "active_lock_reason": nil, "comments": len(is.comments),
		"user": g.userJSON(is.author), "labels": g.labelsJSON(is.labels), "assignee": nil, "assignees": g.usersJSON(is.assignees),
		"milestone": nil, "created_at": stampOf(is.created), "updated_at": stampOf(is.updated), "closed_at": stampOrNil(is.closed),
		"author_association": g.association(is.author), "url": u, "repository_url": g.repoURL(), "labels_url": u + "/labels{/name}",
		"comments_url": u + "/comments", "events_url": u + "/events", "html_url": g.issueURL(is), "timeline_url": u + "/timeline",
		"reactions": g.reactionsJSON(u, is.reactions), "performed_via_github_app": nil,
	}
	if len(is.assignees) > 0 {
		o["assignee"] = g.userJSON(g.user(is.assignees[0]))
	}
	if is.body == "" {
		o["body"] = nil
	}
	if is.pull != nil {
		p := fmt.Sprintf("%s/pulls/%d", g.repoURL(), is.number)
		o["draft"] = is.pull.draft
		o["pull_request"] = obj{"url": p, "html_url": g.issueURL(is), "diff_url": g.issueURL(is) + ".diff",
			"patch_url": g.issueURL(is) + ".patch", "merged_at": stampOrNil(is.pull.merged)}
	}
	return o
}

func (g *GitHub) issueURL(is *issue) string {
	kind := "issues"
	if is.pull != nil {
		kind = "pull"
	}
	return fmt.Sprintf("%s/%s/%d", g.webURL(), kind, is.number)
}

func (g *GitHub) usersJSON(logins []string) []obj {
	out := []obj{}
	for _, l := range logins {
		out = append(out, g.userJSON(g.user(l)))
	}
	return out
}

// association is what the payload says of the author; it is no permission, and shows it by calling a
// triager a collaborator.
func (g *GitHub) association(a *account) string {
	switch {
	case strings.EqualFold(a.login, g.opt.Owner):
		return "OWNER"
	case a.role != "":
		return "COLLABORATOR"
	}
	return "NONE"
}

func (g *GitHub) reactionsJSON(of string, rs []reaction) obj {
	o := obj{"url": of + "/reactions", "total_count": len(rs)}
	for _, name := range reactionNames() {
		n := 0
		for _, r := range rs {
			if r.content == name {
				n++
			}
		}
		o[name] = n
	}
	return o
}

func reactionNames() []string {
	return []string{"+1", "-1", "laugh", "hooray", "confused", "heart", "rocket", "eyes"}
}

func (g *GitHub) commentJSON(is *issue, m *comment) obj {
	u := fmt.Sprintf("%s/issues/comments/%d", g.repoURL(), m.id)
	return obj{
		"id": m.id, "node_id": nodeID("IC_", m.id), "url": u, "html_url": fmt.Sprintf("%s#issuecomment-%d", g.issueURL(is), m.id),
		"issue_url": fmt.Sprintf("%s/issues/%d", g.repoURL(), is.number), "body": m.body, "user": g.userJSON(m.author),
		"created_at": stampOf(m.created), "updated_at": stampOf(m.updated), "author_association": g.association(m.author),
		"reactions": g.reactionsJSON(u, m.reactions), "performed_via_github_app": nil,
	}
}

func (g *GitHub) eventJSON(e *event) obj {
	l := g.label(e.label)
	color := ""
	if l != nil {
		color = l.color
	}
	return obj{
		"id": e.id, "node_id": nodeID("LE_", e.id), "url": fmt.Sprintf("%s/issues/events/%d", g.repoURL(), e.id),
		"actor": g.userJSON(e.actor), "event": e.name, "commit_id": nil, "commit_url": nil, "created_at": stampOf(e.at),
		"label": obj{"name": e.label, "color": color}, "performed_via_github_app": nil,
	}
}
