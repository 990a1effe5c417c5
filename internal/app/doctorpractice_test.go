package app

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/proctor-ci/proctor/internal/clock"
	"github.com/proctor-ci/proctor/internal/doctor"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
	"github.com/proctor-ci/proctor/templates"
)

// practice is a clone of a forge's repository with one doctor in it, who has a token of his own.
type practice struct {
	t     *testing.T
	dir   string
	clone string
	site  people
	hub   *forgetest.GitHub // or
	lab   *forgetest.GitLab
	issue int
	key   string // a model's
	env   map[string]string
	later time.Duration // that the doctor's clock is ahead
	hasty bool          // nothing is waited for
}

const (
	tokenOfHub = "GITHUB_TOKEN"
	tokenOfLab = "PROCTOR_GITLAB_TOKEN"
)

func openPractice(t *testing.T, s setting) *practice {
	t.Helper()
	w := open(t, s)
	p := &practice{t: t, dir: w.dir, site: w.hub, hub: w.hub, issue: w.issue, key: w.key, env: map[string]string{"GITHUB_API_URL": w.hub.APIURL(), "GITHUB_SERVER_URL": w.hub.URL()}}
	p.env[tokenOfHub] = w.hub.NewToken(forgetest.Token{Login: asker})
	p.cloneFrom(w.hub.URL() + "/octo/shop.git")
	return p
}

// openLabPractice is the same on a GitLab, whose doctor has a maintainer's token.
func openLabPractice(t *testing.T, files map[string]string) *practice {
	t.Helper()
	t.Parallel()
	p := &practice{t: t, dir: t.TempDir(), key: "sk-" + "e2e-" + strings.Repeat("k3y", 12)}
	if err := os.Chmod(filepath.Dir(p.dir), 0o711); err != nil {
		t.Fatal(err)
	}
	all := merged(map[string]string{".gitlab-ci.yml": "include:\n  - local: .gitlab/ci/proctor.yml\n", ".gitlab/ci/proctor.yml": string(templates.GitLab)}, files)
	tree := fstest.MapFS{}
	for path, content := range repository(setting{mark: sealedMark, files: all}) {
		tree[path] = &fstest.MapFile{Data: []byte(content), Mode: 0o644}
	}
	lab, err := forgetest.NewGitLab(forgetest.GitLabOptions{Dir: filepath.Join(p.dir, "lab"), Files: tree})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lab.Close() })
	lab.AddUser("olga", "maintainer")
	lab.AddUser(labBot, "developer")
	p.site, p.lab, p.issue = lab, lab, lab.OpenIssue("The answer is wrong", "It should be **right**.", "olga")
	p.env = map[string]string{"CI_SERVER_URL": lab.URL(), tokenOfLab: lab.NewToken(forgetest.GitLabToken{Login: "olga"})}
	p.setLab(func(*forgetest.GitLabSettings) {})
	p.cloneFrom(lab.URL() + "/" + lab.Project() + ".git")
	return p
}

// setLab makes the settings right but for what change does.
func (p *practice) setLab(change func(*forgetest.GitLabSettings)) {
	s := forgetest.GitLabSettings{Variables: []forgetest.GitLabVariable{{Key: tokenOfLab, Masked: true, Protected: true}}}
	change(&s)
	p.lab.Set(s)
}

func (p *practice) cloneFrom(origin string) {
	p.t.Helper()
	p.clone = filepath.Join(p.dir, "clone")
	d := &desk{t: p.t, dir: p.clone}
	d.git("", "clone", "-q", "-b", base, "file://"+p.site.GitDir(), p.clone)
	d.git(p.clone, "remote", "set-url", "origin", origin)
}

// doctor runs it in this process and gives what it printed.
func (p *practice) doctor(ctx context.Context, args ...string) (out string, code int) {
	p.t.Helper()
	env := merged(map[string]string{"PATH": os.Getenv("PATH"), "HOME": p.dir, "USER": asker}, p.env)
	self, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	sleep := clock.Sleep
	if p.hasty {
		sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	}
	var stdout, stderr bytes.Buffer
	code = CLI(ctx, Env{Args: append([]string{"doctor"}, args...), Dir: p.clone, Stdout: &stdout, Stderr: &stderr, Exe: self, Random: rand.Reader, Sleep: sleep,
		Now: func() time.Time { return time.Now().Add(p.later) }, Getenv: func(n string) string { return env[n] }})
	return stdout.String() + stderr.String(), code
}

// sees is what doctor finds, by check, and its exit code.
func (p *practice) sees(args ...string) (doctor.Report, int) {
	p.t.Helper()
	out, code := p.doctor(p.t.Context(), append(args, "--json")...)
	var rep doctor.Report
	if err := json.Unmarshal([]byte(out), &rep); err != nil {
		p.t.Fatalf("exit %d: %v\n%s", code, err, out)
	}
	return rep, code
}

// commit changes the base commit, here and on the forge; an empty text removes the file.
func (p *practice) commit(files map[string]string) {
	p.t.Helper()
	p.write(files)
	d := &desk{t: p.t, dir: p.clone}
	d.git(p.clone, "add", "-A")
	d.git(p.clone, "-c", "user.name=maya", "-c", "user.email=maya@example.com", "commit", "-qm", "Change it")
	d.git(p.site.GitDir(), "fetch", "-q", "--update-head-ok", p.clone, "+HEAD:refs/heads/"+base)
}

func (p *practice) write(files map[string]string) {
	p.t.Helper()
	for path, text := range files {
		at := filepath.Join(p.clone, path)
		if text == "" {
			if err := os.Remove(at); err != nil {
				p.t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			p.t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *practice) read(path string) string {
	p.t.Helper()
	b, err := os.ReadFile(filepath.Join(p.clone, path))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(b)
}

var printed = regexp.MustCompile("`([^`]+)`")

// quoted is the text of the fix that stands in back-ticks and begins so.
func (p *practice) quoted(fix, begins string) string {
	p.t.Helper()
	for _, m := range printed.FindAllStringSubmatch(fix, -1) {
		if strings.HasPrefix(m[1], begins) {
			return m[1]
		}
	}
	p.t.Fatalf("nothing in back-ticks begins with %q: %s", begins, fix)
	return ""
}

// does runs the command that a fix prints, as it stands, in a shell in the clone; proctor is this program.
func (p *practice) does(begins string) func(string) {
	return func(fix string) {
		p.t.Helper()
		p.shell(p.quoted(fix, begins))
	}
}

func (p *practice) shell(line string) {
	p.t.Helper()
	self, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	bin := filepath.Join(p.dir, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		p.t.Fatal(err)
	}
	program := "#!/bin/sh\n" + partVariable + "=" + partCLI + " exec " + self + " \"$@\"\n"
	if err := os.WriteFile(filepath.Join(bin, "proctor"), []byte(program), 0o755); err != nil {
		p.t.Fatal(err)
	}
	user, token := "x-access-token", p.env[tokenOfHub]
	if p.lab != nil {
		user, token = "oauth2", p.env[tokenOfLab]
	}
	cmd := exec.CommandContext(p.t.Context(), "sh", "-ec", line)
	cmd.Dir = p.clone
	cmd.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + p.dir, "GIT_AUTHOR_NAME=maya", "GIT_AUTHOR_EMAIL=maya@example.com", "GIT_COMMITTER_NAME=maya", "GIT_COMMITTER_EMAIL=maya@example.com",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=http.extraHeader", "GIT_CONFIG_VALUE_0=Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+token))}
	if out, err := cmd.CombinedOutput(); err != nil {
		p.t.Fatalf("%s: %v\n%s", line, err, out)
	}
}

// writes puts the KEY: VALUE that a fix prints into the configuration and commits it.
func (p *practice) writes(key string) func(string) {
	return func(fix string) {
		p.t.Helper()
		_, value, ok := strings.Cut(p.quoted(fix, key+":"), ":")
		if !ok {
			p.t.Fatalf("no value: %s", fix)
		}
		var file map[string]any
		var to any
		if err := yaml.Unmarshal([]byte(p.read(configFileName)), &file); err != nil {
			p.t.Fatal(err)
		}
		if err := yaml.Unmarshal([]byte(value), &to); err != nil {
			p.t.Fatal(err)
		}
		at, path := file, strings.Split(key, ".")
		for _, k := range path[:len(path)-1] {
			below, ok := at[k].(map[string]any)
			if !ok {
				below = map[string]any{}
				at[k] = below
			}
			at = below
		}
		at[path[len(path)-1]] = to
		text, err := yaml.Marshal(file)
		if err != nil {
			p.t.Fatal(err)
		}
		p.commit(map[string]string{configFileName: string(text)})
	}
}

// puts replaces the line of a CI file that has the printed line's key by it.
func (p *practice) puts(path, key string) func(string) {
	return func(fix string) {
		p.t.Helper()
		line := p.quoted(fix, key+":")
		was := regexp.MustCompile(`(?m)\b` + regexp.QuoteMeta(key) + `:.*$`)
		text := p.read(path)
		if !was.MatchString(text) {
			p.t.Fatalf("%s has no line %s", path, key)
		}
		p.commit(map[string]string{path: was.ReplaceAllLiteralString(text, line)})
	}
}

// clicks is what a person does on the page that the fix names.
func (p *practice) clicks(page string, then func()) func(string) {
	return func(fix string) {
		p.t.Helper()
		if !strings.Contains(fix, page) {
			p.t.Fatalf("the fix does not lead to %s: %s", page, fix)
		}
		then()
	}
}

// found is the finding of a check with a status.
func found(rep doctor.Report, check string, s doctor.Status) (doctor.Finding, bool) {
	i := slices.IndexFunc(rep.Findings, func(f doctor.Finding) bool { return f.Check == check && f.Status == s })
	if i < 0 {
		return doctor.Finding{}, false
	}
	return rep.Findings[i], true
}
