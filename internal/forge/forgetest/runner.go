package forgetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Action is a program of ours that a workflow step may name in `uses:`.
type Action struct {
	// Uses is the name without its version: "proctor-ci/proctor", or "./" for the repository's own.
	Uses string
	// Metadata is its action.yml: inputs with their defaults, runs.args.
	Metadata []byte
	// Binary is started as its own process, in the workspace.
	Binary string
	// Env is what its image would set (ENV in the Dockerfile).
	Env map[string]string
}

// Runner takes a GitHub's queued runs and executes them as an Actions runner does for container and
// host actions: nothing of its own environment reaches a step, each job has its own token, and a
// cancel is SIGINT, then SIGTERM, then a kill. There is no container: a container action's paths are folders below Dir.
type Runner struct {
	GitHub  *GitHub
	Actions []Action
	// Dir holds one folder per run, left behind to be looked at.
	Dir string
	// Stdout gets the masked log as it happens; nil for none. The log is kept in the Run too.
	Stdout io.Writer
	// Path is the PATH of a job; "" is a plain system's.
	Path    string
	Secrets map[string]string
	Vars    map[string]string
	// Env is added to each job, for what a real runner's machine has beyond this one.
	Env map[string]string
	// Approve answers for the people who review an environment; nil approves.
	Approve func(environment string) bool
	// After is the clock of a cancel and of time-outs; nil is time.After.
	After func(time.Duration) <-chan time.Time
}

// JobResult is one job as it ended.
type JobResult struct {
	Job        string
	Conclusion string // "success", "failure", "cancelled", "skipped"
	// ExitCode of the last step that failed, 0 if none.
	ExitCode int
	// Outputs by step id.
	Outputs map[string]map[string]string
	// JobOutputs are what the jobs behind it get.
	JobOutputs map[string]string
	// Summary is the job's page, all steps together.
	Summary string
	// Workspace and Temp are the job's folders.
	Workspace, Temp string
}

// RunResult is a run as it ended.
type RunResult struct {
	Run  Run
	Jobs []JobResult
}

const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// ErrCancelled is the cause of a run stopped by its context.
var ErrCancelled = errors.New("the run was cancelled")

// Run executes one run taken by NextRun. An error means that the runner could not do what the workflow
// asks; a failing step is a result. Cancelling ctx cancels the run.
func (r *Runner) Run(ctx context.Context, run Run) (RunResult, error) {
	res := RunResult{Run: run}
	log := &logWriter{out: r.Stdout}
	for _, v := range r.Secrets {
		log.mask(v)
	}
	r.GitHub.setRun(run.ID, func(x *Run) { x.Status = "in_progress" })
	conclusion := "skipped"
	var failed error
	for _, j := range run.workflow.jobs {
		jr, err := r.job(ctx, &run, j, res.Jobs, log)
		if err != nil {
			fmt.Fprintf(log, "##[error]%v\n", err)
			failed, jr.Conclusion = errors.Join(failed, err), "failure"
		}
		res.Jobs = append(res.Jobs, jr)
		conclusion = worse(conclusion, jr.Conclusion)
	}
	log.flush()
	r.GitHub.setRun(run.ID, func(x *Run) {
		x.Status, x.Conclusion, x.Log = "completed", conclusion, log.kept()
		res.Run = *x
	})
	return res, failed
}

func worse(a, b string) string {
	for _, c := range []string{"cancelled", "failure", "success"} {
		if a == c || b == c {
			return c
		}
	}
	return "skipped"
}

// jobRun is one job under way.
type jobRun struct {
	*Runner
	run   *Run
	job   job
	log   *logWriter
	dir   string
	token string
	// Where a job with `id-token: write` asks for its identity; "" for others.
	identityURL, identityToken string

	scope scope
	env   map[string]string // job env, then GITHUB_ENV
	paths []string          // GITHUB_PATH, newest first
	res   JobResult
}

func (r *Runner) job(ctx context.Context, run *Run, j job, before []JobResult, log *logWriter) (JobResult, error) {
	res := JobResult{Job: j.id, Outputs: map[string]map[string]string{}}
	base, err := r.GitHub.contextsOf(run, r.Vars)
	if err != nil {
		return res, err
	}
	sc := scope{contexts: base, status: "success"}
	if err := sc.need(j, before); err != nil {
		return res, err
	}
	if ok, err := condition(j.If, sc); err != nil || !ok {
		res.Conclusion = "skipped"
		return res, err
	}
	if j.Environment != "" && r.Approve != nil && !r.Approve(j.Environment) {
		fmt.Fprintf(log, "##[error]The deployment to %s was rejected\n", j.Environment)
		res.Conclusion = "failure"
		return res, nil
	}
	sc.status = "success" // of the job itself from here on
	permissions, err := run.workflow.jobPermissions(j)
	if err != nil {
		return res, err
	}
	jr := &jobRun{Runner: r, run: run, job: j, log: log, scope: sc, res: res}
	jr.dir = filepath.Join(r.Dir, fmt.Sprintf("run-%d-%s", run.ID, j.id))
	jr.res.Workspace, jr.res.Temp = filepath.Join(jr.dir, "workspace"), filepath.Join(jr.dir, "temp")
	for _, d := range []string{jr.res.Workspace, jr.res.Temp, jr.home(), filepath.Join(jr.dir, "files")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return jr.res, fmt.Errorf("prepare job %s: %w", j.id, err)
		}
	}
	if err := os.WriteFile(jr.eventFile(), run.Payload, 0o644); err != nil {
		return jr.res, fmt.Errorf("write event: %w", err)
	}
	jr.token = r.GitHub.NewToken(Token{Job: true, Permissions: permissions})
	defer r.GitHub.Revoke(jr.token)
	log.mask(jr.token)
	if permissions["id_token"] == "write" {
		var end func()
		jr.identityURL, jr.identityToken, end = r.GitHub.identityOf(run)
		defer end()
		log.mask(jr.identityToken)
	}
	jr.addContexts()
	if j.Timeout > 0 {
		var cancel context.CancelCauseFunc
		ctx, cancel = context.WithCancelCause(ctx)
		defer cancel(nil)
		stop := r.afterFunc(time.Duration(j.Timeout*float64(time.Minute)), func() {
			cancel(fmt.Errorf("the job %s ran past its %v minutes", j.id, j.Timeout))
		})
		defer stop()
	}
	err = jr.steps(ctx)
	if err == nil {
		jr.res.JobOutputs, err = expandMap(j.Outputs, jr.scope)
	}
	return jr.res, err
}

// need puts the results and outputs of the jobs that j waits for into its contexts. One that did not succeed, or was skipped, makes success() false.
func (sc *scope) need(j job, before []JobResult) error {
	needs := sc.contexts["needs"].(map[string]any)
	for _, id := range j.needed() {
		i := slices.IndexFunc(before, func(b JobResult) bool { return b.Job == id })
		if i < 0 {
			return fmt.Errorf("job %s needs %s, which does not stand before it", j.id, id)
		}
		outputs := map[string]any{}
		for k, v := range before[i].JobOutputs {
			outputs[k] = v
		}
		needs[id] = map[string]any{"result": before[i].Conclusion, "outputs": outputs}
		if before[i].Conclusion != "success" {
			sc.status = "failure"
		}
	}
	return nil
}

// afterFunc calls f after d by the injected clock, unless stopped.
func (r *Runner) afterFunc(d time.Duration, f func()) (stop func()) {
	done := make(chan struct{})
	var once sync.Once
	fire := r.after(d)
	go func() {
		select {
		case <-fire:
			f()
		case <-done:
		}
	}()
	return func() { once.Do(func() { close(done) }) }
}

func (r *Runner) after(d time.Duration) <-chan time.Time {
	if r.After != nil {
		return r.After(d)
	}
	return time.After(d)
}

func (jr *jobRun) home() string      { return filepath.Join(jr.dir, "home") }
func (jr *jobRun) eventFile() string { return filepath.Join(jr.dir, "event.json") }

func (jr *jobRun) steps(ctx context.Context) error {
	for i, s := range jr.job.Steps {
		if ctx.Err() != nil && jr.scope.status != "cancelled" {
			fmt.Fprintf(jr.log, "##[error]%v\n", cause(ctx))
			jr.scope.status = "cancelled"
		}
		name := s.title()
		ok, err := condition(s.If, jr.scope)
		if err != nil {
			return fmt.Errorf("step %q: if: %w", name, err)
		}
		if !ok {
			continue
		}
		fmt.Fprintf(jr.log, "##[group]%s\n", name)
		// Clean-up steps of a cancelled job still run, as always() asks.
		stepCtx := ctx
		if jr.scope.status == "cancelled" {
			stepCtx = context.WithoutCancel(ctx)
		}
		code, err := jr.step(stepCtx, i, s)
		if err != nil {
			return fmt.Errorf("step %q: %w", name, err)
		}
		fmt.Fprintln(jr.log, "##[endgroup]")
		if code != 0 {
			fmt.Fprintf(jr.log, "##[error]Process completed with exit code %d.\n", code)
			if s.ContinueOnError == true {
				continue
			}
			jr.res.ExitCode = code
			if jr.scope.status == "success" {
				jr.scope.status = "failure"
			}
		}
	}
	if ctx.Err() != nil {
		jr.scope.status = "cancelled"
	}
	jr.res.Conclusion = jr.scope.status
	return nil
}

func cause(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return ErrCancelled
}

func (s step) title() string {
	switch {
	case s.Name != "":
		return s.Name
	case s.Uses != "":
		return s.Uses
	}
	line, _, _ := strings.Cut(strings.TrimSpace(s.Run), "\n")
	return line
}

// step runs one step and gives its exit code.
func (jr *jobRun) step(ctx context.Context, i int, s step) (int, error) {
	env, err := jr.stepEnv(s)
	if err != nil {
		return 0, err
	}
	name, _, _ := strings.Cut(s.Uses, "@")
	switch {
	case s.Run != "":
		return jr.script(ctx, i, s, env)
	case name == "actions/checkout":
		return jr.checkout(ctx, s)
	case name == "actions/upload-artifact":
		return jr.upload(s)
	case name == "actions/download-artifact":
		return jr.download(s)
	}
	for _, a := range jr.Actions {
		if name == a.Uses || strings.HasPrefix(name, "./") && a.Uses == "./" {
			return jr.action(ctx, i, s, a, env)
		}
	}
	return 0, fmt.Errorf("the test runner does not have the action %q: it knows actions/checkout, actions/upload-artifact, actions/download-artifact and Runner.Actions", s.Uses)
}
