package app

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/templates"
)

// freshRepository is a directory with .git/config and files; nothing runs git in it.
func freshRepository(t *testing.T, origin string, files map[string]string) string {
	t.Helper()
	top := t.TempDir()
	config := "[core]\n\tbare = false\n"
	if origin != "" {
		config += "[remote \"origin\"]\n\turl = " + origin + "\n"
	}
	for p, text := range merged(map[string]string{".git/config": config}, files) {
		p = filepath.Join(top, p)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return top
}

// proctorIn runs the command line in a directory, in this process.
func proctorIn(t *testing.T, dir string, env map[string]string, args ...string) (out string, code int) {
	t.Helper()
	var b bytes.Buffer
	code = CLI(t.Context(), Env{Args: args, Dir: dir, Stdout: &b, Stderr: &b, Getenv: func(n string) string { return env[n] }})
	return b.String(), code
}

func TestInitChoosesTheForgeOfTheRepository(t *testing.T) {
	t.Parallel()
	const hub, lab = ".github/workflows/proctor.yml", ".gitlab/ci/proctor.yml"
	for name, c := range map[string]struct {
		origin, want, not string
		files, env        map[string]string
		args              []string
	}{
		"nothing says":                {want: hub, not: lab},
		"GitHub":                      {origin: "git@github.com:acme/shop.git", files: map[string]string{".gitlab-ci.yml": "{}\n"}, want: hub, not: lab},
		"GitLab":                      {origin: "https://gitlab.com/acme/sub/shop.git", want: lab, not: hub},
		"a GitLab by its name":        {origin: "ssh://git@gitlab.example.com:2222/acme/shop.git", want: lab, not: hub},
		"a GitLab of the environ":     {origin: "https://code.example.com/acme/shop.git", env: map[string]string{"CI_SERVER_URL": "https://code.example.com"}, want: lab, not: hub},
		"an Enterprise Server":        {origin: "https://code.example.com/acme/shop.git", env: map[string]string{"GITHUB_SERVER_URL": "https://code.example.com"}, want: hub, not: lab},
		"only GitLab's files":         {origin: "https://code.example.com/acme/shop.git", files: map[string]string{".gitlab-ci.yml": "{}\n"}, want: lab, not: hub},
		"asked for, against origin":   {origin: "git@github.com:acme/shop.git", args: []string{"--ci", "gitlab"}, want: lab, not: hub},
		"asked for, the other way":    {origin: "git@gitlab.com:acme/shop.git", args: []string{"--ci", "github"}, want: hub, not: lab},
		"only GitHub's files, a fork": {origin: "https://code.example.com/a/b", files: map[string]string{".github/CODEOWNERS": "* @maya\n"}, want: hub, not: lab},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			top := freshRepository(t, c.origin, c.files)
			out, code := proctorIn(t, top, c.env, append([]string{"init"}, c.args...)...)
			if code != 0 {
				t.Fatalf("exit %d\n%s", code, out)
			}
			if _, err := os.Stat(filepath.Join(top, c.want)); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			if _, err := os.Stat(filepath.Join(top, c.not)); err == nil {
				t.Errorf("%s was written too\n%s", c.not, out)
			}
			if out, code := proctorIn(t, top, c.env, "config", "check"); code != 0 {
				t.Errorf("what init wrote does not load: %s", out)
			}
		})
	}
}

// The first next step is about what init found, and not about what it did not look for.
func TestInitSaysWhatIsLeftToDo(t *testing.T) {
	t.Parallel()
	const visible = `{"scripts": {"test": "node --test"}}`
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"nothing is known":    {nil, "1. Write the command that tests this repository into gates.iteration of .github/proctor.yml"},
		"nothing is held out": {map[string]string{"package.json": visible}, "1. Read .github/proctor.yml; add a held-out acceptance gate"},
		"all is found": {map[string]string{
			"package.json": `{"scripts": {"test": "node --test", "test:acceptance": "node --test tests/acceptance"}}`, "tests/acceptance/a.test.js": "",
		}, "1. Read .github/proctor.yml: are these the commands"},
	} {
		out, code := proctorIn(t, freshRepository(t, "", c.files), nil, "init")
		if code != 0 || !strings.Contains(out, c.want) || !strings.Contains(out, "proctor doctor") {
			t.Errorf("%s: exit %d, %s, want %q", name, code, out, c.want)
		}
	}
}

func TestInitLeavesWhatIsThereAndShowsTheDifference(t *testing.T) {
	t.Parallel()
	const workflow = "name: mine\n"
	top := freshRepository(t, "", map[string]string{"proctor.yml": "version: 1\n", ".github/workflows/proctor.yml": workflow, "go.mod": "module x\n", "a_test.go": "package x\n"})
	out, code := proctorIn(t, top, nil, "init", "--ci", "github")
	if code != 0 || !strings.Contains(out, "--- a/.github/workflows/proctor.yml") || !strings.Contains(out, "-name: mine") || !strings.Contains(out, "+name: Proctor") || !strings.Contains(out, "--- a/proctor.yml") {
		t.Errorf("exit %d\n%s", code, out)
	}
	if b, _ := os.ReadFile(filepath.Join(top, ".github/workflows/proctor.yml")); string(b) != workflow {
		t.Errorf("the workflow became %q", b)
	}
	if _, err := os.Stat(filepath.Join(top, ".github/proctor.yml")); err == nil {
		t.Error("a second configuration was written beside proctor.yml")
	}
	if out, code := proctorIn(t, top, nil, "init", "--ci", "jenkins"); code != 1 || !strings.Contains(out, "--ci github or --ci gitlab") {
		t.Errorf("exit %d\n%s", code, out)
	}
}

func TestInitTakesOverWhatAnotherToolsFileSays(t *testing.T) {
	t.Parallel()
	top := freshRepository(t, "", map[string]string{"loopkit.toml": "goal = \"x\"\n[gate]\niteration = \"make check\"\n[stops]\nmax_iter = 4\n", "go.mod": "module x\n", "a_test.go": "package x\n"})
	out, code := proctorIn(t, top, nil, "init", "--ci", "github")
	for _, want := range []string{"loopkit.toml: gate.iteration → gates.iteration: \"make check\"", "loopkit.toml: goal has no counterpart"} {
		if !strings.Contains(out, want) {
			t.Errorf("exit %d: not said: %s\n%s", code, want, out)
		}
	}
	shown, code := proctorIn(t, top, nil, "config", "show")
	if code != 0 || !strings.Contains(shown, "make check") || !strings.Contains(shown, "stops.max_ticks") {
		t.Errorf("exit %d\n%s", code, shown)
	}
}

// The other workflow is written where it is asked for, and on GitHub alone; one that is there stays.
func TestInitWritesTheWorkflowOfASplitRun(t *testing.T) {
	t.Parallel()
	const hub = ".github/workflows/proctor.yml"
	top := freshRepository(t, "git@github.com:acme/shop.git", nil)
	out, code := proctorIn(t, top, nil, "init", "--staged")
	if got := read(t, filepath.Join(top, hub)); code != 0 || got != string(templates.GitHubStaged) || !strings.Contains(out, "proctor-publish") {
		t.Errorf("exit %d\n%s", code, out)
	}
	if out, code := proctorIn(t, top, nil, "init"); code != 0 || strings.Contains(out, "proctor-publish\" and") || read(t, filepath.Join(top, hub)) != string(templates.GitHubStaged) || !strings.Contains(out, "-  verify:") {
		t.Errorf("without --staged, over it: exit %d\n%s", code, out)
	}
	lab := freshRepository(t, "https://gitlab.com/acme/shop.git", nil)
	out, code = proctorIn(t, lab, nil, "init", "--staged")
	if _, err := os.Stat(filepath.Join(lab, ".gitlab")); code != exitUsage || err == nil || !strings.Contains(out, "leave --staged out, or write --ci github") {
		t.Errorf("on GitLab: exit %d\n%s", code, out)
	}
}
