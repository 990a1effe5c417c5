package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/proctor-ci/proctor/internal/ci"
	"github.com/proctor-ci/proctor/internal/config"
	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/forge/github"
	"github.com/proctor-ci/proctor/internal/forge/gitlab"
	"github.com/proctor-ci/proctor/internal/meter"
	"github.com/proctor-ci/proctor/internal/money"
	"github.com/proctor-ci/proctor/internal/trigger"
)

// Action is the door of a CI job: the container action, the host action and the GitLab job. It exits with
// the terminal's code, so that a green job means proved and published.
func Action(ctx context.Context, env Env) int {
	host, err := ci.Detect(env.Getenv, env.Stdout, env.random)
	if err != nil {
		fmt.Fprintln(env.Stderr, "proctor:", err)
		return exitUsage
	}
	switch asked := host.Input("doctor"); asked {
	case "true", "live":
		return doctorJob(ctx, env, host, asked == "live")
	case "", "false":
	default:
		host.Error("Proctor", fmt.Sprintf("input \"doctor\" is %q. Next: write true, live or false", asked))
		return exitUsage
	}
	st, err := jobStage(host)
	if err != nil {
		host.Error("Proctor", err.Error())
		return exitUsage
	}
	loan, err := borrow(ctx, env, host)
	if err != nil {
		return tellUnlent(ctx, env, host, err)
	}
	defer loan.giveBack(ctx)
	req, err := jobRequest(env, host, loan)
	if err != nil {
		host.Error("Proctor", err.Error())
		return exitUsage
	}
	loan.shorten(&req.override)
	req.stage, req.handover, req.verified = st, handoverDir(host.Job(), host.Input("handover")), host.Input("verified")
	host.Mask(req.secrets...)
	view := newAccount(env.Stdout, false, env.Now)
	view.line = host.Line
	req.watch, req.speak = view.Event, host.Line
	if host.Job().System == "github" {
		// The workflow uploads what this names, and a job that is killed says nothing at its end.
		if err := host.Output(map[string]string{"report": req.reports}); err != nil {
			host.Error("Proctor", err.Error())
		}
	}
	rec := run(ctx, env, req)
	return tellJob(host, rec, req)
}

// tellJob hands the result to the CI system: outputs, summary, and an annotation where it is not done.
func tellJob(host ci.Host, rec evidence.Record, req request) int {
	out := map[string]string{
		"terminal": rec.Terminal, "reason": rec.Reason, "branch": "", "commit": "", "pull-request": "", "pull-request-url": "",
		"cost-usd": rec.Totals.CostUSD.Decimal(), "ticks": fmt.Sprint(rec.Totals.Ticks), "run": rec.Run, "report": req.reports,
		"stage": first(string(req.stage), "all"), "exit": fmt.Sprint(rec.ExitCode), "verified": "",
	}
	if !req.stage.writes() && rec.Terminal == evidence.Done && !rec.DryRun && rec.Head != nil {
		out["commit"] = rec.Head.ID // for the job that comes next
	}
	if req.stage == stageVerify {
		raw, err := os.ReadFile(filepath.Join(req.reports, verifiedFile))
		if err != nil {
			host.Error("Proctor", err.Error())
		}
		out["verified"] = string(raw)
	}
	if p := rec.Published; p != nil {
		out["branch"], out["commit"], out["pull-request-url"] = p.Branch, p.Commit, p.URL
		if p.Number != 0 {
			out["pull-request"] = fmt.Sprint(p.Number)
		}
	}
	if v := rec.Inspection; v != nil { // branch and commit promise a push
		out["pull-request"], out["pull-request-url"] = fmt.Sprint(v.Number), v.URL
	}
	if err := host.Output(out); err != nil {
		host.Error("Proctor", err.Error())
	}
	if err := host.Summary(evidence.JobSummary(rec)); err != nil {
		host.Error("Proctor", err.Error())
	}
	text := rec.Reason
	if rec.Next != "" {
		text += " Next: " + rec.Next
	}
	if rec.ExitCode == 0 {
		host.Notice("Proctor: "+rec.Terminal, text)
	} else {
		host.Error("Proctor: "+rec.Terminal, text)
	}
	return rec.ExitCode
}

// jobRequest reads what the job gives: inputs, event, tokens. Whatever is wrong is told before anything
// is started.
func jobRequest(env Env, host ci.Host, lent loan) (request, error) {
	job, token := host.Job(), first(lent.token, ownToken(env, host))
	over, err := overrides(host)
	if err != nil {
		return request{}, err
	}
	f, err := jobForge(env, job, token, lent.token != "")
	if err != nil {
		return request{}, err
	}
	key := modelKey(host.Input("anthropic-api-key"), host.Input("claude-code-oauth-token"))
	other := openAI(host.Input("openai-api-key"), first(host.Input("openai-base-url"), env.Getenv("OPENAI_BASE_URL")))
	google := gemini(host.Input("gemini-api-key"), first(host.Input("gemini-base-url"), env.Getenv("GOOGLE_GEMINI_BASE_URL")))
	home := first(job.Home, os.TempDir())
	reports := first(env.Getenv("PROCTOR_REPORT_DIR"), filepath.Join(home, "proctor"))
	if !filepath.IsAbs(reports) {
		return request{}, fmt.Errorf("PROCTOR_REPORT_DIR is %q. Next: give the absolute path of a directory that no other job has", reports)
	}
	req := request{
		forge: f, checkout: job.Workspace, ref: job.Ref, scratch: first(job.Temp, os.TempDir()), reports: reports, runURL: job.RunURL,
		toolPath: env.Getenv("PATH"), home: home, override: over, dryRun: host.Input("dry-run") == "true",
		key: key, modelAt: first(host.Input("model-base-url"), env.Getenv("ANTHROPIC_BASE_URL"), defaultModelAt), openAI: other, gemini: google, secrets: held(env, token, ownToken(env, host), key.Value, other.Key.Value, google.Key.Value),
		heldDir: first(host.Input("acceptance-dir"), env.Getenv("PROCTOR_ACCEPTANCE_DIR")), builder: env.Getenv("PROCTOR_DOCKER_HOST"),
	}
	req.parse, err = jobTrigger(host)
	return req, err
}

// ownToken is the forge token that the job was given, "" for none.
func ownToken(env Env, host ci.Host) string {
	if host.Job().System == "gitlab" {
		return first(env.Getenv("PROCTOR_GITLAB_TOKEN"), env.Getenv("GITLAB_TOKEN"))
	}
	return host.Input("github-token")
}

const defaultModelAt = "https://api.anthropic.com"

// held are the values that must never be seen: those handed over, and what the runner itself holds for this job.
func held(env Env, values ...string) []string {
	for _, n := range []string{"ACTIONS_RUNTIME_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN", idToken, "GITHUB_TOKEN", "GH_TOKEN", "CI_JOB_TOKEN", "CI_REGISTRY_PASSWORD", "GITLAB_TOKEN", "ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "OPENAI_API_KEY", "GEMINI_API_KEY"} {
		values = append(values, env.Getenv(n))
	}
	values = append(values, traceSecrets(env)...)
	var out []string
	for _, v := range values {
		if v != "" {
			out = append(out, v)
		}
	}
	return out
}

// modelKey is the credential for the Anthropic API. What stands around a value was pasted along.
func modelKey(apiKey, oauth string) meter.Credential {
	if apiKey = strings.TrimSpace(apiKey); apiKey != "" {
		return meter.Credential{Kind: meter.APIKey, Value: apiKey}
	}
	return meter.Credential{Kind: meter.Bearer, Value: strings.TrimSpace(oauth)}
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// overrides are the inputs that may narrow the configuration.
func overrides(host interface{ Input(name string) string }) (config.Override, error) {
	o := config.Override{From: "input", Agent: host.Input("agent"), Model: host.Input("model")}
	var err error
	if v := host.Input("max-ticks"); v != "" {
		if _, err := fmt.Sscanf(v, "%d", &o.MaxTicks); err != nil || o.MaxTicks <= 0 {
			return o, fmt.Errorf("input max-ticks is %q. Next: give a whole number above zero, such as 5", v)
		}
	}
	if v := host.Input("max-cost-usd"); v != "" {
		if o.MaxCost, err = money.Parse(v); err != nil || o.MaxCost == 0 {
			return o, fmt.Errorf("input max-cost-usd is %q. Next: give dollars above zero, such as 2.50", v)
		}
	}
	if v := host.Input("max-duration"); v != "" {
		if o.MaxDuration, err = time.ParseDuration(v); err != nil || o.MaxDuration <= 0 {
			return o, fmt.Errorf("input max-duration is %q. Next: give a time such as 30m", v)
		}
	}
	return o, nil
}

func jobForge(env Env, job ci.Job, token string, lent bool) (forge.Forge, error) {
	owner, name, ok := cutLast(job.Repo)
	if !ok {
		return nil, fmt.Errorf("the runner says that the repository is %q. Next: run this in a job of a repository", job.Repo)
	}
	if job.System == "gitlab" {
		if token == "" {
			return nil, errors.New("there is no GitLab token. Next: make a project access token (Developer, scopes api and write_repository) and set it as the masked variable PROCTOR_GITLAB_TOKEN; the job's own token cannot open merge requests")
		}
		return gitlab.New(gitlab.Config{ServerURL: job.ServerURL, Project: job.Repo, Token: token, Lent: lent, Now: env.Now, Sleep: env.Sleep})
	}
	if token == "" {
		return nil, errors.New("the input github-token is empty. Next: pass github-token: ${{ github.token }} and give the job contents, issues and pull-requests: write")
	}
	return github.New(github.Config{BaseURL: job.APIURL, ServerURL: job.ServerURL, Owner: owner, Repo: name, Token: token, HTTP: &http.Client{Timeout: time.Minute}, Now: env.Now, Sleep: env.Sleep})
}

// cutLast splits "group/sub/name" at the last slash.
func cutLast(full string) (owner, name string, ok bool) {
	i := strings.LastIndexByte(full, '/')
	if i <= 0 || i == len(full)-1 {
		return "", "", false
	}
	return full[:i], full[i+1:], true
}

// jobTrigger chooses the reader of what asked for this job. The reader runs later, when the base commit has
// said which label and which commands count.
func jobTrigger(host ci.Host) (func(config.Config) (trigger.Trigger, error), error) {
	job := host.Job()
	asker := trigger.Actor{Login: job.Actor, ID: job.ActorID, Bot: strings.HasSuffix(job.Actor, "[bot]")}
	if request, issue := host.Input("request"), host.Input("issue"); issue != "" || request != "" {
		return func(config.Config) (trigger.Trigger, error) {
			t, err := trigger.ParseDispatch(map[string]string{"issue": issue, "request": request, "proctor_id": host.Input("proctor-id")})
			if err != nil {
				return t, err
			}
			t.Forge = trigger.Forge(job.System)
			if t.Asked == (trigger.Asked{}) && t.Actor.ID == 0 {
				t.Actor = asker
			}
			return t, nil
		}, nil
	}
	if goal := host.Input("goal"); goal != "" {
		return func(config.Config) (trigger.Trigger, error) {
			t, err := trigger.FromGoal(goal, asker)
			t.Forge, t.Kind = trigger.Forge(job.System), trigger.KindDispatch
			return t, err
		}, nil
	}
	if job.System != "github" || job.Event == "workflow_dispatch" {
		return nil, errors.New("there is neither an issue nor a goal. Next: give the input issue (a number) or goal (words)")
	}
	body, err := readEvent(job.EventPath)
	if err != nil {
		return nil, err
	}
	return func(c config.Config) (trigger.Trigger, error) {
		return trigger.ParseGitHub(job.Event, body, trigger.Options{Label: c.Trigger.Label, Prefix: c.Trigger.Commands})
	}, nil
}

// maxEvent is more than any payload: GitHub caps them at 25 MB.
const maxEvent = 32 << 20

func readEvent(path string) ([]byte, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read the event file: %w. Next: pass GITHUB_EVENT_PATH and mount the file into the container", err)
	}
	if st.Size() > maxEvent {
		return nil, fmt.Errorf("the event file has %d bytes, more than any event of the forge", st.Size())
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the event file: %w", err)
	}
	return b, nil
}
