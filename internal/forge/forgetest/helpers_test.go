package forgetest_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/forge/forgetest"
)

// call sends one API request with a token and gives status and body.
func call(t *testing.T, g *forgetest.GitHub, token, method, path, body string) (int, string) {
	t.Helper()
	return send(t, g.APIURL()+path, method, body, "Authorization", "Bearer "+token)
}

func callGitLab(t *testing.T, g *forgetest.GitLab, token, method, path, body string) (int, string) {
	t.Helper()
	return send(t, g.URL()+"/api/v4"+path, method, body, "PRIVATE-TOKEN", token)
}

func send(t *testing.T, url, method, body string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(header[0], header[1])
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}
