package forgetest

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// addContexts puts the job's token, secrets and folders where expressions find them.
func (jr *jobRun) addContexts() {
	gh := jr.scope.contexts["github"].(map[string]any)
	gh["token"], gh["workspace"], gh["event_path"], gh["job"] = jr.token, jr.res.Workspace, jr.eventFile(), jr.job.id
	secrets := jr.scope.contexts["secrets"].(map[string]any)
	secrets["GITHUB_TOKEN"] = jr.token
	for k, v := range jr.Secrets {
		secrets[k] = v
	}
	jr.scope.contexts["runner"].(map[string]any)["temp"] = jr.res.Temp
	jr.env = map[string]string{}
}

// stepEnv is the whole environment of a step, built from nothing.
func (jr *jobRun) stepEnv(s step) (map[string]string, error) {
	gh := jr.scope.contexts["github"].(map[string]any)
	env := map[string]string{
		"CI": "true", "GITHUB_ACTIONS": "true", "HOME": jr.home(), "PATH": jr.path(),
		"GITHUB_WORKSPACE": jr.res.Workspace, "GITHUB_EVENT_PATH": jr.eventFile(), "GITHUB_JOB": jr.job.id,
		"GITHUB_RETENTION_DAYS": "90", "GITHUB_REF_PROTECTED": "false", "GITHUB_HEAD_REF": "", "GITHUB_BASE_REF": "",
		"GITHUB_WORKFLOW_SHA": jr.run.SHA, "GITHUB_REPOSITORY_OWNER_ID": jr.ownerID(),
		"RUNNER_OS": "Linux", "RUNNER_ARCH": "X64", "RUNNER_NAME": "forgetest", "RUNNER_ENVIRONMENT": "self-hosted",
		"RUNNER_TEMP": jr.res.Temp, "RUNNER_TOOL_CACHE": filepath.Join(jr.dir, "tools"), "RUNNER_WORKSPACE": jr.dir,
		"ACTIONS_RUNTIME_URL": "http://127.0.0.1:9/", "ACTIONS_RUNTIME_TOKEN": "runtime-" + secret(8),
		"ACTIONS_CACHE_URL": "http://127.0.0.1:9/", "ACTIONS_RESULTS_URL": "http://127.0.0.1:9/",
	}
	for name, key := range map[string]string{
		"EVENT_NAME": "event_name", "REPOSITORY": "repository", "REPOSITORY_OWNER": "repository_owner", "REPOSITORY_ID": "repository_id",
		"ACTOR": "actor", "ACTOR_ID": "actor_id", "TRIGGERING_ACTOR": "triggering_actor", "REF": "ref", "SHA": "sha", "REF_NAME": "ref_name",
		"REF_TYPE": "ref_type", "RUN_ID": "run_id", "RUN_NUMBER": "run_number", "RUN_ATTEMPT": "run_attempt", "WORKFLOW": "workflow",
		"WORKFLOW_REF": "workflow_ref", "SERVER_URL": "server_url", "API_URL": "api_url", "GRAPHQL_URL": "graphql_url",
	} {
		env["GITHUB_"+name] = text(gh[key])
	}
	jr.addOIDC(env)
	maps.Copy(env, jr.Env)
	// Workflow, job and step: the nearer wins, GITHUB_ENV stands between job and step.
	for _, m := range []map[string]any{jr.run.workflow.Env, jr.job.Env} {
		if err := jr.layer(env, m); err != nil {
			return nil, err
		}
	}
	maps.Copy(env, jr.env)
	jr.seeEnv(jr.env)
	if err := jr.layer(env, s.Env); err != nil {
		return nil, err
	}
	return env, nil
}

func (jr *jobRun) layer(env map[string]string, m map[string]any) error {
	values, err := expandMap(m, jr.scope)
	if err != nil {
		return fmt.Errorf("env: %w", err)
	}
	maps.Copy(env, values)
	jr.seeEnv(values)
	return nil
}

// seeEnv lets later expressions read env.NAME.
func (jr *jobRun) seeEnv(m map[string]string) {
	ctx := jr.scope.contexts["env"].(map[string]any)
	for k, v := range m {
		ctx[k] = v
	}
}

// addOIDC gives the request variables only to a job with `id-token: write`.
func (jr *jobRun) addOIDC(env map[string]string) {
	if jr.identityURL != "" {
		env["ACTIONS_ID_TOKEN_REQUEST_URL"], env["ACTIONS_ID_TOKEN_REQUEST_TOKEN"] = jr.identityURL, jr.identityToken
	}
}

func (jr *jobRun) ownerID() string {
	jr.GitHub.state.Lock()
	defer jr.GitHub.state.Unlock()
	return fmt.Sprint(jr.GitHub.user(jr.GitHub.opt.Owner).id)
}

func (jr *jobRun) path() string {
	return strings.Join(append(slices.Clone(jr.paths), or(jr.Path, systemPath)), ":")
}

// commandFiles are the files through which a step speaks to the runner.
type commandFiles struct{ output, state, env, path, summary string }

func (jr *jobRun) newCommandFiles(i int) (commandFiles, error) {
	var f commandFiles
	for name, at := range map[string]*string{"output": &f.output, "state": &f.state, "env": &f.env, "path": &f.path, "summary": &f.summary} {
		*at = filepath.Join(jr.dir, "files", fmt.Sprintf("%s-%d", name, i))
		if err := os.WriteFile(*at, nil, 0o644); err != nil {
			return f, fmt.Errorf("prepare step: %w", err)
		}
	}
	return f, nil
}

func (f commandFiles) addTo(env map[string]string) {
	env["GITHUB_OUTPUT"], env["GITHUB_STATE"], env["GITHUB_ENV"] = f.output, f.state, f.env
	env["GITHUB_PATH"], env["GITHUB_STEP_SUMMARY"] = f.path, f.summary
}

// maxSummary is GitHub's limit per step; a larger one is dropped whole.
const maxSummary = 1 << 20

// collect reads what the step wrote. A malformed file fails the step, as the runner does.
func (jr *jobRun) collect(s step, f commandFiles) error {
	outputs, err := readCommandFile(f.output)
	if err != nil {
		return fmt.Errorf("GITHUB_OUTPUT: %w", err)
	}
	if s.ID != "" {
		jr.res.Outputs[s.ID] = outputs
		ctx := map[string]any{}
		for k, v := range outputs {
			ctx[k] = v
		}
		jr.scope.contexts["steps"].(map[string]any)[s.ID] = map[string]any{"outputs": ctx}
	}
	env, err := readCommandFile(f.env)
	if err != nil {
		return fmt.Errorf("GITHUB_ENV: %w", err)
	}
	for k := range env {
		if k == "NODE_OPTIONS" || strings.HasPrefix(k, "GITHUB_") || strings.HasPrefix(k, "RUNNER_") {
			return fmt.Errorf("GITHUB_ENV: can't store %s", k)
		}
	}
	maps.Copy(jr.env, env)
	paths, err := os.ReadFile(f.path)
	if err != nil {
		return fmt.Errorf("GITHUB_PATH: %w", err)
	}
	for line := range strings.Lines(string(paths)) {
		jr.paths = slices.Insert(jr.paths, 0, strings.TrimSpace(line))
	}
	summary, err := os.ReadFile(f.summary)
	if err != nil {
		return fmt.Errorf("GITHUB_STEP_SUMMARY: %w", err)
	}
	if len(summary) > maxSummary {
		fmt.Fprintf(jr.log, "##[error]$GITHUB_STEP_SUMMARY upload aborted, supports content up to a size of 1024k, got %dk\n", len(summary)>>10)
		return nil
	}
	jr.res.Summary += jr.log.hide(string(summary))
	return nil
}

// readCommandFile reads NAME=VALUE and NAME<<DELIMITER blocks.
func readCommandFile(path string) (map[string]string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	lines := strings.Split(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if line == "" {
			continue
		}
		eq, here := strings.Index(line, "="), strings.Index(line, "<<")
		switch {
		case eq >= 0 && (here < 0 || eq < here):
			out[line[:eq]] = line[eq+1:]
		case here > 0:
			name, delimiter := line[:here], line[here+2:]
			end := slices.Index(lines[i+1:], delimiter)
			if end < 0 {
				return nil, fmt.Errorf("matching delimiter not found %q", delimiter)
			}
			out[name] = strings.Join(lines[i+1:i+1+end], "\n")
			i += end + 1
		default:
			return nil, fmt.Errorf("invalid format %q", cut(line))
		}
	}
	return out, nil
}
