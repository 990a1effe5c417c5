package ci

import (
	"io"
	"strings"
	"testing"
)

// A group or a project can set these for every job, and then the directory is not the commit that the run is about.
func TestAGitLabJobWithoutItsCommitSaysWhichVariableToSet(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ strategy, checkout, want string }{
		"control: clone": {strategy: "clone", checkout: "true"},
		"control: unset": {},
		"none":           {strategy: "none", want: "set GIT_STRATEGY: clone"},
		"empty":          {strategy: "empty", want: "set GIT_STRATEGY: clone"},
		"no checkout":    {strategy: "fetch", checkout: "false", want: `set GIT_CHECKOUT: "true"`},
	} {
		env := map[string]string{"GITLAB_CI": "true", "CI_PROJECT_PATH": "acme/shop", "CI_PROJECT_DIR": "/builds/acme/shop", "CI_API_V4_URL": "https://gitlab.example.com/api/v4", "GIT_STRATEGY": c.strategy, "GIT_CHECKOUT": c.checkout}
		_, err := Detect(func(n string) string { return env[n] }, io.Discard, func([]byte) {})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), "Next: "+c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
