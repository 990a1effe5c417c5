package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/trigger"
	"github.com/proctor-ci/proctor/internal/webhook/oidc"
)

// PathToken is where a run of ours exchanges its job's identity for a token of the App's.
const PathToken = "/token"

// Exchange gives a run that this webhook started a short-lived token for its own repository, so that no repository has to hold
// the App's key, or a GitLab token. With it Connect has to give a forge.RunFinder: without one no run can be told from another, and nothing is given.
type Exchange struct {
	// Verify gives the claims of a good token, oidc.ErrRefused or oidc.ErrUnavailable.
	Verify func(ctx context.Context, token string) (oidc.Claims, error)
	// Mint makes a token for the repository to.Repo alone, with the permissions of that purpose; on GitHub one of the installation to.Install.
	Mint func(ctx context.Context, to Target, p Purpose) (token string, expires time.Time, err error)
	// Environment that the job has to run in; "" asks for none.
	Environment string
	// GitLab is the issuer whose tokens are those of GitLab jobs; "" for none.
	GitLab string
}

// Purpose is what a token is for. A run gets one for each, once.
type Purpose string

// PurposeRun is all of a run's own work: its branch, its pull request, what it says on the issue.
const PurposeRun Purpose = "run"

// Reasons of a refused exchange, beside those of deliveries. A caller learns the reason; what was found instead stays in the log.
const (
	refusedToken = "identity"
	refusedRun   = "other_run"
	refusedJob   = "other_job"
	refusedUsed  = "used"
)

// maxTokenBody bounds a request of the exchange.
const maxTokenBody = 4 << 10

type tokenRequest struct {
	Run     string  `json:"proctor_id"`
	Purpose Purpose `json:"purpose"`
}

// exchanged is the answer to a good request.
type exchanged struct {
	Status  Status    `json:"status"`
	Token   string    `json:"token"`
	Expires time.Time `json:"expires_at"`
}

// StatusIssued is the status of an exchange that gave a token.
const StatusIssued Status = "issued"

// token takes one request: POST, the job's identity as a bearer token, {"proctor_id", "purpose"} as JSON.
func (h *Handler) token(w http.ResponseWriter, r *http.Request) {
	start := h.cfg.Now()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), h.cfg.Timeout)
	defer cancel()
	d := delivery{forge: trigger.GitHub, event: "token"}
	var got exchanged
	a := guarded(&d, func() answer { return h.exchange(ctx, w, r, &d, &got) })
	if a.Status == StatusIssued {
		writeToken(w, got)
	} else {
		a.write(w)
	}
	h.cfg.Log.LogAttrs(ctx, level(a), "exchange", d.attrs(a, h.cfg.Now().Sub(start).Milliseconds())...)
}

// writeToken is the one answer that holds a secret: nobody on the way may keep it.
func writeToken(w http.ResponseWriter, e exchanged) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_ = json.NewEncoder(w).Encode(e) // a caller that is gone needs no answer; its token ends within the hour
}

func (h *Handler) exchange(ctx context.Context, w http.ResponseWriter, r *http.Request, d *delivery, out *exchanged) answer {
	if r.Method != http.MethodPost {
		return invalid(http.StatusMethodNotAllowed, "method", "an exchange is a POST request")
	}
	bearer, ok := one(r.Header, "Authorization")
	identity, isBearer := strings.CutPrefix(bearer, "Bearer ")
	if !ok || !isBearer {
		return invalid(http.StatusUnauthorized, refusedToken, "send the job's identity token as Authorization: Bearer")
	}
	c, err := h.cfg.Exchange.Verify(ctx, identity)
	switch {
	case errors.Is(err, oidc.ErrRefused):
		d.cause = err
		return invalid(http.StatusUnauthorized, refusedToken, "the job's identity token is not good here, or not any more")
	case err != nil:
		d.cause = err
		return later("issuer")
	}
	in, a, ok := readTokenRequest(w, r)
	if !ok {
		return a
	}
	claim, a, ok := h.runOf(ctx, c, in, d)
	if !ok {
		return a
	}
	return h.issue(ctx, claim, in.Purpose, d, out)
}

func readTokenRequest(w http.ResponseWriter, r *http.Request) (tokenRequest, answer, bool) {
	var in tokenRequest
	if a, ok := checkEncoding(r.Header); !ok {
		return in, a, false
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxTokenBody))
	if err != nil || json.Unmarshal(body, &in) != nil {
		return in, invalid(http.StatusBadRequest, "body", `the body is not {"proctor_id": "…", "purpose": "run"}`), false
	}
	if id, ok := trigger.FindID(in.Run); !ok || id != in.Run || in.Purpose != PurposeRun {
		return in, invalid(http.StatusBadRequest, "shape", "proctor_id is none, or the purpose is unknown"), false
	}
	return in, answer{}, true
}

// runOf gives the claim of the run that the job is part of. The token says which repository, workflow and run; that this run is the
// one that was dispatched for the claim, only the forge can say: anybody who may start a workflow can write another run's id.
func (h *Handler) runOf(ctx context.Context, c oidc.Claims, in tokenRequest, d *delivery) (Claim, answer, bool) {
	claim, err := h.cfg.Store.Find(ctx, []string{in.Run})
	switch {
	case errors.Is(err, ErrNoClaim):
		return claim, forbidden(refusedRun), false
	case err != nil:
		d.cause = err
		return claim, later("store"), false
	case claim.ID != in.Run || claim.To.Forge != h.forgeOf(c) || claim.To.Forge == trigger.GitHub && claim.To.Install <= 0:
		return claim, forbidden(refusedRun), false
	}
	d.forge, d.t.Repo, d.t.Issue.Number = claim.To.Forge, claim.To.Repo, claim.Issue
	if why := h.mismatch(c, claim); why != "" {
		d.cause = errors.New(why)
		return claim, forbidden(refusedJob), false
	}
	switch {
	case claim.State == Ended:
		return claim, forbidden(refusedRun), false
	case claim.State == Claimed:
		// The run was quicker than the note that it was dispatched.
		return claim, later("in_flight"), false
	}
	return h.same(ctx, c, claim, d)
}

func (h *Handler) forgeOf(c oidc.Claims) trigger.Forge {
	if x := h.cfg.Exchange.GitLab; x != "" && c.Issuer == x {
		return trigger.GitLab
	}
	return trigger.GitHub
}

// member is a claim of a job's identity, and what it has to be.
type member struct{ claim, got, want string }

// mismatch is the first thing about the job that is not as it was dispatched, "" when there is none.
func (h *Handler) mismatch(c oidc.Claims, claim Claim) string {
	members := githubJob(c, claim)
	if claim.To.Forge == trigger.GitLab {
		members = gitlabJob(c, claim)
	}
	if want := h.cfg.Exchange.Environment; want != "" {
		members = append(members, member{"environment", c.Environment, want})
	}
	for _, m := range members {
		if m.got != m.want {
			return fmt.Sprintf("%s is %q, not %q", m.claim, m.got, m.want)
		}
	}
	return ""
}

func githubJob(c oidc.Claims, claim Claim) []member {
	repo := claim.To.Repo
	ref := "refs/heads/" + repo.DefaultBranch
	workflow := repo.FullName() + "/.github/workflows/" + claim.File + "@" + ref
	return []member{
		{"repository_id", c.RepositoryID, strconv.FormatInt(repo.ID, 10)},
		{"repository", c.Repository, repo.FullName()},
		{"event_name", c.EventName, "workflow_dispatch"},
		{"ref", c.Ref, ref},
		{"workflow_ref", c.WorkflowRef, workflow},
		{"job_workflow_ref", c.JobWorkflowRef, workflow},
	}
}

// gitlabJob: the pipeline's file is the project's own, whatever it is called, on the default branch.
func gitlabJob(c oidc.Claims, claim Claim) []member {
	repo := claim.To.Repo
	_, host, _ := strings.Cut(c.Issuer, "://")
	config := host + "/" + repo.FullName() + "//"
	if file, _, ok := strings.Cut(strings.TrimPrefix(c.ConfigRef, config), "@"); ok {
		config += file
	}
	source := "trigger"
	if c.PipelineSource == "api" {
		source = "api"
	}
	return []member{
		{"project_id", c.ProjectID, strconv.FormatInt(repo.ID, 10)},
		{"project_path", c.ProjectPath, repo.FullName()},
		{"pipeline_source", c.PipelineSource, source},
		{"ref_type", c.RefType, "branch"},
		{"ref", c.Ref, repo.DefaultBranch},
		{"ci_config_ref_uri", c.ConfigRef, config + "@refs/heads/" + repo.DefaultBranch},
	}
}

// same asks the forge which run carries the claim's id.
func (h *Handler) same(ctx context.Context, c oidc.Claims, claim Claim, d *delivery) (Claim, answer, bool) {
	f, err := h.cfg.Connect(ctx, claim.To)
	if errors.Is(err, ErrNoInstallation) {
		return claim, forbidden("no_installation"), false
	}
	if err != nil {
		d.cause = err
		return claim, later("forge"), false
	}
	finder, ok := f.(forge.RunFinder)
	if !ok {
		return claim, forbidden(refusedRun), false
	}
	id, err := strconv.ParseInt(runID(c, claim), 10, 64)
	if err != nil {
		return claim, forbidden(refusedRun), false
	}
	run, err := named(ctx, finder, claim, id)
	switch {
	case err != nil && !errors.Is(err, forge.ErrNotFound):
		d.cause = err
		return claim, later("forge"), false
	case err != nil, run.ID != id, run.Status == "completed":
		return claim, forbidden(refusedRun), false
	}
	return claim, answer{}, true
}

// named is the claim's run, where it may be the one of that id. A forge that reads one run need not look among those that were started since.
func named(ctx context.Context, f forge.RunFinder, c Claim, id int64) (forge.Run, error) {
	since := c.Created.Add(-time.Minute)
	if reader, ok := f.(forge.RunReader); ok {
		return reader.DispatchedRun(ctx, id, c.To.Repo.DefaultBranch, c.ID, since)
	}
	return f.FindRun(ctx, c.File, c.To.Repo.DefaultBranch, c.ID, since)
}

func runID(c oidc.Claims, claim Claim) string {
	if claim.To.Forge == trigger.GitLab {
		return c.PipelineID
	}
	return c.RunID
}

// issue takes the use of the purpose before it makes the token: two requests at once get one. A token that could not be made
// gives the use back.
func (h *Handler) issue(ctx context.Context, claim Claim, p Purpose, d *delivery, out *exchanged) answer {
	use := Claim{ID: "token:" + string(p) + ":" + claim.ID, To: claim.To, File: claim.File, Issue: claim.Issue}
	use, err := h.cfg.Store.Claim(ctx, use, h.cfg.Leases.Claimed)
	switch {
	case errors.Is(err, ErrTaken) && use.State == Claimed:
		// Its token is being made, or whoever was about to is gone. In that case the lease lapses while the run still asks.
		return later("in_flight")
	case errors.Is(err, ErrTaken):
		return forbidden(refusedUsed)
	case err != nil:
		d.cause = err
		return later("store")
	}
	// Ended at once: it stays for as long as the run may be spoken of, and no reaper takes it for a dispatch.
	if err := h.persist(ctx, func(ctx context.Context) error {
		return h.cfg.Store.Mark(ctx, use.ID, use.Attempt, Ended, h.cfg.Leases.Ended)
	}); err != nil {
		d.cause = err
		return later("store")
	}
	token, expires, err := h.cfg.Exchange.Mint(ctx, claim.To, p)
	if err != nil {
		d.cause = errors.Join(err, h.persist(ctx, func(ctx context.Context) error { return h.cfg.Store.Release(ctx, use.ID, use.Attempt, Ended) }))
		if errors.Is(err, ErrNoInstallation) {
			return forbidden("no_installation")
		}
		return later("forge")
	}
	*out = exchanged{StatusIssued, token, expires}
	return answer{Code: http.StatusOK, Status: StatusIssued, Run: claim.ID}
}

func forbidden(reason string) answer {
	return answer{Code: http.StatusForbidden, Status: StatusRefused, Reason: reason}
}
