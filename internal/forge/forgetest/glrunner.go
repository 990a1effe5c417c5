package forgetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// GitLabRunner takes a GitLab's created pipelines and runs one program in each, with the environment
// of a GitLab job: CI_* built from nothing, a shallow clone with a detached HEAD whose remote carries
// the job token, the project's and the pipeline's variables.
type GitLabRunner struct {
	GitLab *GitLab
	Binary string
	Args   []string
	// Dir holds one folder per job, left behind to be looked at.
	Dir    string
	Stdout io.Writer // nil for none
	// Variables are the project's CI/CD variables; all of them are masked in the log.
	Variables map[string]string
	Path      string
	After     func(time.Duration) <-chan time.Time
}

// GitLabResult is a pipeline's one job as it ended.
type GitLabResult struct {
	Pipeline  Pipeline
	ExitCode  int
	Workspace string
}

// glTerminate is how long a GitLab runner waits after SIGTERM.
const glTerminate = 10 * time.Second

// Run takes the oldest pipeline that nobody took and runs it. ErrNoPipeline when there is none.
func (r *GitLabRunner) Run(ctx context.Context) (GitLabResult, error) {
	p, ok := r.GitLab.takePipeline()
	if !ok {
		return GitLabResult{}, ErrNoPipeline
	}
	res := GitLabResult{Pipeline: *p}
	dir := filepath.Join(r.Dir, fmt.Sprintf("job-%d", p.ID))
	res.Workspace = filepath.Join(dir, "builds", filepath.FromSlash(r.GitLab.Project()))
	for _, d := range []string{res.Workspace, filepath.Join(dir, "home")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return res, fmt.Errorf("prepare job: %w", err)
		}
	}
	token := r.GitLab.NewToken(GitLabToken{Login: r.GitLab.actorOf(p), Job: true})
	defer r.GitLab.Revoke(token)
	log := &logWriter{out: r.Stdout}
	log.mask(token)
	for _, v := range r.Variables {
		log.mask(v)
	}
	remote, err := r.clone(ctx, res.Workspace, p, token)
	if err == nil {
		env := r.env(p, dir, res.Workspace, token, remote)
		job := process{name: r.Binary, args: r.Args, dir: res.Workspace, env: env, log: log, after: r.after, stop: []signalStep{{syscall.SIGTERM, glTerminate}}}
		res.ExitCode, err = job.run(ctx)
	}
	log.flush()
	status := "success"
	switch {
	case ctx.Err() != nil:
		status = "canceled"
	case err != nil || res.ExitCode != 0:
		status = "failed"
	}
	res.Pipeline = r.GitLab.endPipeline(p, status, log.kept())
	return res, err
}

// ErrNoPipeline: nothing is waiting.
var ErrNoPipeline = errors.New("no pipeline is waiting")

func (r *GitLabRunner) after(d time.Duration) <-chan time.Time {
	if r.After != nil {
		return r.After(d)
	}
	return time.After(d)
}

func (r *GitLabRunner) clone(ctx context.Context, dir string, p *Pipeline, token string) (string, error) {
	u, err := url.Parse(r.GitLab.webURL() + ".git")
	if err != nil {
		return "", err
	}
	u.User = url.UserPassword("gitlab-ci-token", token)
	for _, args := range [][]string{
		{"init", "-q", "."}, {"remote", "add", "origin", u.String()}, {"fetch", "-q", "--no-tags", "--depth=20", "origin", p.SHA},
		{"checkout", "-q", "--detach", "FETCH_HEAD"},
	} {
		if _, err := git(ctx, dir, args...); err != nil {
			return "", errors.New(strings.ReplaceAll(err.Error(), token, "[MASKED]"))
		}
	}
	return u.String(), nil
}

func (r *GitLabRunner) env(p *Pipeline, dir, workspace, token, remote string) map[string]string {
	g := r.GitLab
	i := strings.LastIndexByte(g.Project(), '/')
	u, _ := url.Parse(g.URL()) // our own
	env := map[string]string{
		"CI": "true", "GITLAB_CI": "true", "CI_SERVER": "yes", "CI_SERVER_URL": g.URL(), "CI_SERVER_HOST": u.Hostname(), "CI_SERVER_PORT": u.Port(),
		"CI_SERVER_PROTOCOL": u.Scheme, "CI_API_V4_URL": g.URL() + "/api/v4", "CI_PROJECT_ID": "4200", "CI_PROJECT_PATH": g.Project(),
		"CI_PROJECT_NAME": g.Project()[i+1:], "CI_PROJECT_NAMESPACE": g.Project()[:i], "CI_PROJECT_URL": g.webURL(), "CI_PROJECT_DIR": workspace,
		"CI_DEFAULT_BRANCH": g.opt.DefaultBranch, "CI_COMMIT_SHA": p.SHA, "CI_COMMIT_REF_NAME": p.Ref, "CI_COMMIT_BRANCH": p.Ref, "CI_COMMIT_REF_PROTECTED": "false",
		"CI_PIPELINE_ID": fmt.Sprint(p.ID), "CI_PIPELINE_IID": fmt.Sprint(p.ID), "CI_PIPELINE_SOURCE": p.Source,
		"CI_PIPELINE_URL": fmt.Sprintf("%s/-/pipelines/%d", g.webURL(), p.ID), "CI_JOB_ID": fmt.Sprint(p.ID + 1), "CI_JOB_NAME": "proctor", "CI_JOB_STAGE": "test",
		"CI_JOB_URL": fmt.Sprintf("%s/-/jobs/%d", g.webURL(), p.ID+1), "CI_JOB_TOKEN": token, "CI_REPOSITORY_URL": remote, "CI_BUILDS_DIR": filepath.Join(dir, "builds"),
		"GITLAB_USER_LOGIN": g.actorOf(p), "HOME": filepath.Join(dir, "home"), "PATH": or(r.Path, systemPath),
	}
	maps.Copy(env, r.Variables)
	maps.Copy(env, p.Variables) // a pipeline's own win, as on GitLab
	return env
}

// actorOf a pipeline: a trigger token acts as its owner, the project's first maintainer here.
func (g *GitLab) actorOf(p *Pipeline) string {
	g.state.Lock()
	defer g.state.Unlock()
	if p.Actor != "" {
		return p.Actor
	}
	for _, key := range slices.Sorted(maps.Keys(g.users)) {
		if a := g.users[key]; accessLevel(a.role) >= accessLevel("maintainer") {
			return a.login
		}
	}
	return "ghost1"
}

func (g *GitLab) takePipeline() (*Pipeline, bool) {
	g.state.Lock()
	defer g.state.Unlock()
	for _, p := range g.pipelines {
		if !p.taken {
			p.taken, p.Status = true, "running"
			return p, true
		}
	}
	return nil, false
}

func (g *GitLab) endPipeline(p *Pipeline, status string, log []byte) Pipeline {
	g.state.Lock()
	defer g.state.Unlock()
	p.Status, p.Log = status, log
	return *p
}
