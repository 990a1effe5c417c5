package forgetest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"
)

// routes are the calls the program makes. One that is not here answers 404, so that a new call shows.
func (g *GitHub) routes() []route {
	return slices.Concat(g.issueRoutes(), g.pullRoutes(), g.actionRoutes(), g.checkRoutes(), g.appRoutes(), g.settingRoutes(), []route{
		{"GET /repos/{owner}/{repo}", "metadata", "read", getRepo},
		{"GET /repos/{owner}/{repo}/collaborators/{login}/permission", "metadata", "read", getPermission},
		{"GET /repos/{owner}/{repo}/git/ref/{ref...}", "contents", "read", getRef},
		{"POST /repos/{owner}/{repo}/git/commits", "contents", "write", createCommit},
		{"GET /user", "", "", getUser},
		{"POST /graphql", "", "", graphql},
		{"GET /rate_limit", "", "", getRateLimit},
	})
}

func getRepo(c *call) (int, any, error) { return http.StatusOK, c.g.fullRepoJSON(), nil }

func getPermission(c *call) (int, any, error) {
	if !c.token.Job && !c.token.Installation && !atLeast(c.g.roleOf(c.g.user(c.token.Login)), "write") {
		return 0, nil, refuse(http.StatusForbidden, "Must have push access to view collaborator permission.")
	}
	login := c.r.PathValue("login")
	a := c.g.users[strings.ToLower(login)]
	if a == nil {
		return 0, nil, refuse(http.StatusNotFound, login+" is not a user")
	}
	role := c.g.roleOf(a)
	u := c.g.userJSON(a)
	u["role_name"], u["permissions"] = or(role, "none"), obj{
		"admin": atLeast(role, "admin"), "maintain": atLeast(role, "maintain"), "push": atLeast(role, "write"),
		"triage": atLeast(role, "triage"), "pull": atLeast(role, "read"),
	}
	return http.StatusOK, obj{"permission": basePermission(role), "role_name": or(role, "none"), "user": u}, nil
}

func getRef(c *call) (int, any, error) {
	ref := "refs/" + c.r.PathValue("ref")
	id, err := c.g.repo.ref(ref)
	if err != nil {
		return 0, nil, notFound()
	}
	return http.StatusOK, obj{"ref": ref, "node_id": nodeID(ref, 0), "url": c.g.repoURL() + "/git/" + ref,
		"object": obj{"type": "commit", "sha": id, "url": c.g.repoURL() + "/git/commits/" + id}}, nil
}

func getUser(c *call) (int, any, error) {
	if c.token.Job || c.token.Installation {
		return 0, nil, refuse(http.StatusForbidden, "Resource not accessible by integration")
	}
	u := c.g.userJSON(c.g.user(c.token.Login))
	for k, v := range (obj{
		"name": nil, "company": nil, "blog": "", "location": nil, "email": nil, "hireable": nil, "bio": nil, "twitter_username": nil,
		"public_repos": 1, "public_gists": 0, "followers": 0, "following": 0, "created_at": stampOf(c.g.since), "updated_at": stampOf(c.g.since),
	}) {
		u[k] = v
	}
	return http.StatusOK, u, nil
}

// graphql knows the questions the program asks: who a token is, a pull request's review threads, and what was said in one of them.
func graphql(c *call) (int, any, error) {
	var in struct {
		Query     string       `json:"query"`
		Variables threadsAsked `json:"variables"`
	}
	err := json.Unmarshal(c.body, &in)
	switch {
	case err == nil && strings.Contains(in.Query, askedThreads) && strings.Contains(in.Query, askedComments):
		return c.reviewThreads(in.Variables)
	case err == nil && strings.Contains(in.Query, askedOlder):
		return c.threadComments(in.Variables)
	case err != nil || !strings.Contains(in.Query, "viewer"):
		return http.StatusOK, obj{"errors": []obj{{"message": "the test forge answers only {viewer{login databaseId}}, reviewThreads and the comments of one"}}}, nil
	}
	a := c.g.user(c.token.Login)
	return http.StatusOK, obj{"data": obj{"viewer": obj{"login": a.login, "databaseId": a.id}}}, nil
}

func getRateLimit(c *call) (int, any, error) {
	core := obj{"limit": 5000, "used": 1, "remaining": 4999, "reset": c.g.now().Add(time.Hour).Unix()}
	return http.StatusOK, obj{"resources": obj{"core": core, "search": core}, "rate": core}, nil
}
