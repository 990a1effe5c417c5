package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/proctor-ci/proctor/internal/ci"
	"github.com/proctor-ci/proctor/internal/config"
	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/secureurl"
	"github.com/proctor-ci/proctor/internal/trigger"
)

// loan is the token that the webhook gave to this run in exchange for its job's identity: the App's for its own repository, for an hour at
// the most, or a GitLab project's; once. The zero loan is none.
type loan struct {
	system string // of the CI: "github" or "gitlab"
	token  string
	ends   time.Time
	api    string // where it can be revoked
	client *http.Client
	host   ci.Host
	now    func() time.Time
}

// Bounds of the exchange. The webhook may not have written down yet that it dispatched this run, or not reach the forge: it then says
// that it cannot tell, and is asked again.
const (
	loanCall  = 15 * time.Second
	loanTries = 6
	loanWait  = 5 * time.Second
	loanBody  = 64 << 10
	// loanTail is kept of a token's time for what a run does after its loop.
	loanTail = 5 * time.Minute
	// A run that was stopped has a few seconds for all of its last words.
	loanReturn, loanHurry = 10 * time.Second, time.Second
)

// unlent is why there is no token, and the terminal that this is.
type unlent struct {
	terminal string
	text     string
}

func (e *unlent) Error() string { return e.text }

func unlendable(terminal, format string, args ...any) error {
	return &unlent{terminal, fmt.Sprintf(format, args...)}
}

// tellUnlent ends a job that got no token: its log and its outputs say why, and so does the issue or the change that asked, where the job's own
// token may write there.
func tellUnlent(ctx context.Context, env Env, host ci.Host, err error) int {
	code, out := exitInfrastructure, map[string]string{"reason": err.Error()}
	if e := (*unlent)(nil); errors.As(err, &e) {
		t, _ := evidence.FindTerminal(e.terminal)
		code, out["terminal"] = t.Exit, t.Name
	}
	if err := host.Output(out); err != nil {
		host.Error("Proctor", err.Error())
	}
	host.Error("Proctor", err.Error())
	at, ok := askedAt(host)
	f, ferr := jobForge(env, host.Job(), ownToken(env, host), false)
	talker, talks := f.(forge.Talker)
	if !ok || ferr != nil || !talks {
		return code
	}
	ctx, done := until(ctx, loanReturn)
	defer done()
	if _, cerr := talker.Answer(ctx, at, "Proctor could not begin: "+err.Error()); cerr != nil {
		host.Notice("Proctor", "whoever asked could not be told, since the job's own token may not write there")
	}
	return code
}

// askedAt is where the run was asked for: on GitLab the issue's number of a run for a merge request is that request's, and an issue of that
// number is somebody else's. Of inputs that cannot be read nobody knows.
func askedAt(host ci.Host) (forge.Place, bool) {
	t, err := trigger.ParseDispatch(map[string]string{trigger.InputIssue: host.Input(trigger.InputIssue), trigger.InputRequest: host.Input(trigger.InputRequest)})
	switch {
	case err != nil:
		return forge.Place{}, false
	case t.Change != nil:
		return forge.Place{Number: t.Change.Number, Change: true}, true
	}
	return forge.Place{Number: t.Issue.Number}, true
}

// borrow exchanges the job's identity at the input token-url. Without that input there is no loan and no error.
func borrow(ctx context.Context, env Env, host ci.Host) (loan, error) {
	door, job := host.Input("token-url"), host.Job()
	if door == "" {
		return loan{}, nil
	}
	run := host.Input("proctor-id")
	switch {
	case !secureAddress(door):
		return loan{}, unlendable(evidence.UsageError, "the input token-url is %q and has to be an https address. Next: give the webhook's address with /token behind it, such as https://hooks.example.com/token", door)
	case run == "" && job.System == "gitlab":
		// The address is set for every pipeline; those that the webhook did not start use PROCTOR_GITLAB_TOKEN.
		return loan{}, nil
	case run == "":
		return loan{}, unlendable(evidence.UsageError, "the input token-url is set and this run has no proctor-id, so the webhook did not start it and has no token for it. Next: in the workflow write proctor-id: ${{ inputs.proctor_id }} and token-url: ${{ inputs.proctor_id && 'ADDRESS' || '' }}, or start the run through the webhook")
	}
	client := &http.Client{Timeout: loanCall, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	l := loan{system: job.System, api: job.APIURL, client: client, host: host, now: env.Now}
	wait := loanWait
	for try := 1; ; try++ {
		// A new identity for each attempt: one lives five minutes.
		identity, err := l.identity(ctx, env, door)
		if err != nil {
			return loan{}, err
		}
		again, err := l.exchange(ctx, door, identity, run)
		if err == nil {
			return l, nil
		}
		if ctx.Err() != nil {
			return loan{}, unlendable(evidence.Cancelled, "the run was asked to stop before it had its token. Next: add the label again")
		}
		if !again || try == loanTries {
			return loan{}, err
		}
		// A stop during the wait is told by the next attempt.
		_ = env.Sleep(ctx, wait)
		wait *= 2
	}
}

// secureAddress: a token may only travel over TLS, or not leave the machine.
func secureAddress(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && u.Fragment == "" && secureurl.Safe(u)
}

// idToken is the variable that the job's id_tokens names. https://docs.gitlab.com/ci/yaml/#id_tokens
const idToken = "PROCTOR_ID_TOKEN"

// identity asks the runner for a token that says which job this is, for the one audience. On GitLab the job has it from the beginning.
// https://docs.github.com/en/actions/reference/security/oidc
func (l *loan) identity(ctx context.Context, env Env, audience string) (string, error) {
	if l.system == "gitlab" {
		if token := env.Getenv(idToken); token != "" {
			return token, nil
		}
		return "", unlendable(evidence.UsageError, "PROCTOR_TOKEN_URL is set and this job has no identity. Next: give the job id_tokens: {%s: {aud: %s}}", idToken, audience)
	}
	at, token := env.Getenv("ACTIONS_ID_TOKEN_REQUEST_URL"), env.Getenv("ACTIONS_ID_TOKEN_REQUEST_TOKEN")
	if at == "" || token == "" {
		return "", unlendable(evidence.UsageError, "the input token-url is set and this job may not ask for its identity. Next: add id-token: write to the permissions of the job")
	}
	u, err := url.Parse(at)
	if err != nil {
		return "", unlendable(evidence.InternalError, "ACTIONS_ID_TOKEN_REQUEST_URL of the runner is no address")
	}
	q := u.Query()
	q.Set("audience", audience)
	u.RawQuery = q.Encode()
	var got struct{ Value string }
	status, err := l.call(ctx, http.MethodGet, u.String(), "Bearer "+token, nil, &got)
	if err != nil || status != http.StatusOK || got.Value == "" {
		return "", unlendable(evidence.InternalError, "GitHub gave this job no identity (%s). Next: run the job again; its permissions have to hold id-token: write", httpResult(status, err))
	}
	l.host.Mask(got.Value)
	return got.Value, nil
}

// exchange asks the webhook once. again says that another attempt may be answered otherwise.
func (l *loan) exchange(ctx context.Context, door, identity, run string) (again bool, err error) {
	var got struct {
		Status, Reason, Token string
		Expires               time.Time `json:"expires_at"`
	}
	status, err := l.call(ctx, http.MethodPost, door, "Bearer "+identity, map[string]string{"proctor_id": run, "purpose": "run"}, &got)
	if err == nil && status == http.StatusOK && got.Token != "" {
		l.host.Mask(got.Token)
		l.token, l.ends = got.Token, got.Expires
		return false, nil
	}
	if err != nil || status >= 500 || status == http.StatusTooManyRequests {
		return true, unlendable(evidence.InternalError, "the webhook at %s gave no token (%s). Next: see its log for the line \"exchange\", and ask again on the issue", door, httpResult(status, err))
	}
	return false, unlendable(evidence.Refused, "the webhook at %s refused this run a token: HTTP %d %s. Next: %s", door, status, refusalWord(got.Reason), nextForRefusal(got.Reason, door))
}

// refusalWord is one of the webhook's words; what stands behind the address may be anything.
func refusalWord(s string) string {
	if len(s) > 40 || strings.Trim(s, "abcdefghijklmnopqrstuvwxyz_") != "" {
		return "(an answer that is not the webhook's)"
	}
	return s
}

func nextForRefusal(reason, door string) string {
	switch reason {
	case "identity":
		return "set PROCTOR_TOKEN_AUDIENCE of the webhook to " + door + ", and PROCTOR_OIDC_ISSUER on Enterprise Server; on GitLab aud: of id_tokens too, and GITLAB_URL"
	case "other_job":
		return "the job has to be one of the workflow that the webhook started, on the default branch, not of a reusable workflow, in the environment that PROCTOR_TOKEN_ENVIRONMENT names; the webhook's log says which of them it is not"
	case "other_run":
		return "ask again on the issue: this run is not, or no longer, the one that the webhook started for proctor-id"
	case "used":
		return "ask again on the issue: a run gets its token once, so a job that is run again gets none"
	case "no_installation":
		return "install the App in this repository, or end its suspension"
	case "path":
		return "set PROCTOR_TOKEN_AUDIENCE at the webhook, which turns the exchange on, and end token-url with /token"
	}
	return "check that token-url is the address of the webhook's token exchange"
}

// call sends and reads JSON. The error never holds a header.
func (l *loan) call(ctx context.Context, method, address, auth string, in, out any) (int, error) {
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return 0, err
		}
		body = bytes.NewReader(raw)
	}
	r, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return 0, err
	}
	r.Header.Set("Authorization", auth)
	r.Header.Set("Accept", "application/json")
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := l.client.Do(r)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }() // it was read; nothing hangs on it
	raw, err := io.ReadAll(io.LimitReader(resp.Body, loanBody))
	if err != nil {
		return resp.StatusCode, err
	}
	if out != nil {
		_ = json.Unmarshal(raw, out) // an answer of something in between is no JSON: its status says enough
	}
	return resp.StatusCode, nil
}

func httpResult(status int, err error) string {
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("HTTP %d", status)
}

// shorten narrows the run's time to the token's: a run that goes on without one could not publish.
func (l *loan) shorten(o *config.Override) {
	if l.token == "" || l.ends.IsZero() {
		return
	}
	o.Remaining = max(l.ends.Sub(l.now())-loanTail, time.Minute).Truncate(time.Second)
}

// giveBack ends the token, however the run ended: whoever finds it later has nothing.
func (l *loan) giveBack(ctx context.Context) {
	if l.token == "" {
		return
	}
	patience := loanReturn
	if ctx.Err() != nil {
		patience = loanHurry
	}
	ctx, done := until(ctx, patience)
	defer done()
	path := "/installation/token"
	if l.system == "gitlab" {
		path = "/personal_access_tokens/self"
	}
	status, err := l.call(ctx, http.MethodDelete, strings.TrimRight(l.api, "/")+path, "Bearer "+l.token, nil, nil)
	if err != nil || status != http.StatusNoContent {
		l.host.Notice("Proctor", fmt.Sprintf("the run's token could not be revoked (%s); it ends by itself at %s", httpResult(status, err), l.ends.UTC().Format(time.RFC3339)))
	}
}
