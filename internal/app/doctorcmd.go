package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/proctor-ci/proctor/internal/ci"
	"github.com/proctor-ci/proctor/internal/config"
	"github.com/proctor-ci/proctor/internal/doctor"
	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/trigger"
)

// doctorOptions are the flags of `proctor doctor`.
type doctorOptions struct {
	asJSON bool
	issue  int
	live   bool
}

func doctorCommand(env Env, code *int) *cobra.Command {
	var o doctorOptions
	c := &cobra.Command{
		Use: "doctor", Short: "Prove that runs can work here, before anything is paid for; name what is wrong and what mends it", Args: cobra.NoArgs,
		Long: `Doctor looks at the base commit's configuration and CI files, at this machine and at the forge, with the token and in the place that
it is started with: GITHUB_TOKEN or GH_TOKEN, PROCTOR_GITLAB_TOKEN or GITLAB_TOKEN, the inputs of a job. Gates are run as a run
would run them first. Without --live it spends nothing and opens nothing: whether it may comment, label, open drafts and start CI it
asks by calls that the forge has to refuse for another reason, and all that it leaves there is the ref refs/proctor/doctor/lease.

With --live it does two things more. It asks each model that a run would ask for one token, and prints what that cost. And it opens a
throw-away draft: a branch below proctor-doctor/ with one commit that changes nothing and starts no CI, a comment and a label on
it; then it closes the draft and deletes the branch, also when a step failed or the command was interrupted. What it leaves when it is killed
the next doctor --live takes back, and doctor without --live names.

Each line is ok, failed, noted (nothing stops a run, and somebody should know) or unproved (it could not be looked at here: what
a token may not see is unknown, never ok). The exit code is 0 when nothing failed, 1 when something did and 130 when it was interrupted.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			req, f, err := doctorRequest(env)
			if err != nil {
				return err
			}
			rep := examine(cmd.Context(), env, req, f, o)
			switch {
			case cmd.Context().Err() != nil:
				*code = exitCancelled
			case !rep.Right:
				*code = exitUsage
			}
			if o.asJSON {
				enc := json.NewEncoder(env.Stdout)
				enc.SetIndent("", "  ")
				return enc.Encode(rep)
			}
			_, err = fmt.Fprint(env.Stdout, rep.Text())
			return err
		},
	}
	c.Flags().BoolVar(&o.asJSON, "json", false, "print {right, findings: [{check, status, text, fix}]}")
	c.Flags().IntVar(&o.issue, "issue", 0, "number of an issue to read (default: the first)")
	c.Flags().BoolVar(&o.live, "live", false, "also ask each model for one token, and open a throw-away draft that is taken back at once")
	return c
}

// doctorGoal stands where a run has its issue.
const doctorGoal = "proctor doctor"

// forgePlace is where doctor looks: the forge's client, or why there is none.
type forgePlace struct {
	kind  string // "github" or "gitlab", "" where nothing says
	forge forge.Forge
	why   error
}

// doctorRequest is a rehearsal's request for the job or the checkout around this process.
func doctorRequest(env Env) (request, forgePlace, error) {
	if host, err := ci.Detect(env.Getenv, env.Stdout, env.random); err == nil {
		return jobRehearsal(env, host)
	}
	req, err := localRequest(env, localOptions{goal: doctorGoal, dryRun: true, reports: os.DevNull})
	if err != nil {
		return req, forgePlace{}, err
	}
	a := address{}
	origin, err := originURL(req.checkout)
	if err == nil {
		a, err = parseOrigin(origin)
	}
	if err != nil { // its next step is for commands with the flag --repo
		return req, forgePlace{why: errors.New(withoutNext(err) + ", so there is no forge to ask. Next: `git remote add origin https://github.com/OWNER/NAME.git` with the address of yours")}, nil
	}
	at := forgePlace{}
	switch {
	case sameHostname(a.host, serverOf(env, "github")):
		at.kind = "github"
		if first(env.Getenv("GITHUB_TOKEN"), env.Getenv("GH_TOKEN")) == "" {
			at.why = errors.New("there is no token for GitHub. Next: `export GITHUB_TOKEN=$(gh auth token)`, then run this again")
			return req, at, nil
		}
	case sameHostname(a.host, serverOf(env, "gitlab")):
		at.kind = "gitlab"
		if first(env.Getenv("PROCTOR_GITLAB_TOKEN"), env.Getenv("GITLAB_TOKEN")) == "" {
			at.why = errors.New("there is no token for GitLab. Next: export PROCTOR_GITLAB_TOKEN with a project access token (Developer, scopes api and write_repository)")
			return req, at, nil
		}
	}
	at.forge, at.why = forgeAt(env, a)
	return req, at, nil
}

// jobRehearsal looks with what the job was given, and needs neither issue nor goal.
func jobRehearsal(env Env, host ci.Host) (request, forgePlace, error) {
	req, err := jobRequest(env, host, loan{})
	at := forgePlace{kind: host.Job().System, forge: req.forge}
	if req.checkout == "" { // it ended before there was a request
		if err == nil {
			err = errors.New("the job gives no checkout")
		}
		return req, at, err
	}
	req.dryRun, req.local, req.ref = true, true, ""
	req.parse = func(config.Config) (trigger.Trigger, error) {
		return trigger.FromGoal(doctorGoal, trigger.Actor{Login: "doctor"})
	}
	return req, at, nil
}

// doctorJob is the check as a job: one line a finding, all of them in the summary, an annotation for each that failed, a red job where any did.
func doctorJob(ctx context.Context, env Env, host ci.Host, live bool) int {
	req, at, err := jobRehearsal(env, host)
	if err != nil {
		host.Error("Proctor doctor", err.Error())
		return exitUsage
	}
	host.Mask(req.secrets...)
	rep := examine(ctx, env, req, at, doctorOptions{issue: askedIssue(host), live: live})
	for line := range strings.Lines(rep.Text()) {
		host.Line(strings.TrimRight(line, "\n"))
	}
	if err := host.Summary(rep.Markdown()); err != nil {
		host.Error("Proctor doctor", err.Error())
	}
	switch {
	case ctx.Err() != nil:
		return exitCancelled
	case rep.Right:
		return 0
	}
	for _, f := range rep.Findings {
		if f.Status == doctor.Failed {
			host.Error("Proctor doctor: "+f.Check, f.Text+". Next: "+f.Fix)
		}
	}
	return exitUsage
}

// askedIssue is the number that the job was given, 0 for none.
func askedIssue(host ci.Host) int {
	n, err := strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(host.Input("issue")), "#"))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// examine runs all checks. It takes the reports' directory for itself.
func examine(ctx context.Context, env Env, req request, at forgePlace, o doctorOptions) doctor.Report {
	var rep doctor.Report
	dir, err := os.MkdirTemp(req.scratch, "proctor-doctor-")
	if err != nil {
		rep.Add(fault("machine.space", err, "free space, or set TMPDIR to a directory that can be written"))
		return rep
	}
	defer os.RemoveAll(dir)
	req.reports, req.forge, req.speak, req.watch = dir, nil, nil, nil
	s := newSession(env, req)
	s.begin()
	defer func() {
		last, done := until(ctx, lastWords)
		defer done()
		s.closeEgress()
		_ = s.events.Close() // a log that nobody reads
		s.release(last)
	}()
	x := examination{s: s, at: at, issue: o.issue, asks: o.live, rep: &rep}
	x.run(ctx)
	return rep
}
