package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/proctor-ci/proctor/internal/doctor"
	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/git"
)

// Names that nothing else has: what is asked of them has to fail, and how it fails says whether it was allowed.
const (
	doctorRef    = "refs/proctor/doctor/lease"
	doctorBranch = "proctor/doctor-asks-with-a-branch-that-is-not-there"
	doctorLabel  = "proctor:doctor-asks-with-a-label-that-is-not-there"
)

// forge asks for each thing that a run does there, with the token that a run would have.
func (x examination) forge(ctx context.Context) {
	f := x.at.forge
	if f == nil {
		why := x.at.why
		if why == nil {
			why = errors.New("there is no forge to ask")
		}
		found := fault("forge.token", why, "run this in a clone of the repository, with a token")
		found.Status = doctor.Unproved
		x.rep.Add(found)
		return
	}
	repo, err := f.Repository(ctx)
	if errors.Is(err, forge.ErrUnavailable) {
		x.rep.Add(fault("forge.reach", err, "check the network, then run this again"))
		return
	}
	if err != nil {
		x.rep.Add(fault("forge.token", err, "give another token"))
		return
	}
	if repo.Archived {
		x.rep.Add(doctor.Finding{Check: "forge.repository", Status: doctor.Failed, Text: repo.Owner + "/" + repo.Name + " is archived", Fix: "take it out of the archive in its settings"})
		return
	}
	x.rep.Add(doctor.Finding{Check: "forge.token", Status: doctor.OK, Text: "the token reads " + repo.Owner + "/" + repo.Name})
	for _, look := range []func(){
		func() { x.pushed(ctx, f, repo) }, func() { x.settings(ctx, f) }, func() { x.push(ctx, f) }, func() { x.draft(ctx, f, repo) },
		func() { x.talk(ctx, f) }, func() { x.starts(ctx, f) }, func() { x.checks(ctx, f) },
	} {
		if x.stopped(ctx) {
			return
		}
		look()
	}
	switch {
	case x.asks:
		x.tryDraft(ctx, f, repo)
	case x.s.store != nil:
		x.leftOver(ctx, f)
	}
}

// push takes and gives back a lease of its own, by the same compare-and-swap as a run's.
func (x examination) push(ctx context.Context, f forge.Forge) {
	if x.s.store == nil {
		x.rep.Add(doctor.Finding{Check: "forge.push", Status: doctor.Unproved, Text: "nothing can be pushed without the checkout", Fix: "mend the configuration first"})
		return
	}
	r := f.Remote()
	lease, err := x.s.store.Acquire(ctx, git.Remote{URL: r.URL, Username: r.Username, Token: r.Token}, doctorRef, x.s.id, leaseTime)
	if err == nil {
		err = lease.Release(ctx)
	}
	if err == nil {
		x.rep.Add(doctor.Finding{Check: "forge.push", Status: doctor.OK, Text: "a push to refs/proctor/** is taken"})
		return
	}
	if held := (*git.HeldError)(nil); errors.As(err, &held) {
		x.rep.Add(doctor.Finding{Check: "forge.push", Status: doctor.Unproved, Text: "another doctor asks the same now", Fix: "run this again after " + held.Expires.UTC().Format(time.RFC3339)})
		return
	}
	x.rep.Add(x.pushFault("forge.push", f, "refs/proctor/doctor", err))
}

// pushFault says in the forge's own words why a push was refused.
func (x examination) pushFault(check string, f forge.Forge, ref string, err error) doctor.Finding {
	found := fault(check, err, "give the token contents: write (GitLab: role Developer and the scope write_repository)")
	if explainer, ok := f.(forge.PushExplainer); ok {
		if re := (*git.RemoteError)(nil); errors.As(err, &re) && re.Output != "" {
			found = fault(check, explainer.ExplainPush(ref, re.Output), found.Fix)
		}
	}
	return found
}

// draft asks for a pull request from a branch that is not there: a token that may not open any is told so.
func (x examination) draft(ctx context.Context, f forge.Forge, repo forge.Repository) {
	_, err := f.CreatePullRequest(ctx, forge.NewPullRequest{Head: doctorBranch, Base: repo.DefaultBranch, Title: "proctor doctor", Body: "This asks whether it may be asked."})
	if allowed(err) {
		x.rep.Add(doctor.Finding{Check: "forge.draft", Status: doctor.OK, Text: "the token may open pull or merge requests"})
		return
	}
	if err == nil {
		err = errors.New("a pull request was opened from " + doctorBranch + ", which somebody has made. Next: close it and delete the branch")
	}
	x.rep.Add(fault("forge.draft", err, "give the token pull-requests: write"))
}

// allowed: the forge looked at what was asked, so the token was good enough to ask.
func allowed(err error) bool {
	return errors.Is(err, forge.ErrInvalid) || errors.Is(err, forge.ErrConflict)
}

// talk reads an issue, and asks for an empty comment and for a label that is not there to be removed.
func (x examination) talk(ctx context.Context, f forge.Forge) {
	number := max(x.issue, 1)
	issue, err := f.Issue(ctx, number)
	switch {
	case errors.Is(err, forge.ErrNotFound) && x.issue == 0:
		x.rep.Add(doctor.Finding{Check: "forge.issue", Status: doctor.Unproved, Text: "there is no issue 1 to read, comment on or label, or the token cannot see it", Fix: "`proctor doctor --issue N` with the number of one"})
		return
	case err != nil:
		x.rep.Add(fault("forge.issue", err, "give the token issues: write"))
		return
	}
	x.rep.Add(doctor.Finding{Check: "forge.issue", Status: doctor.OK, Text: fmt.Sprintf("issue %d can be read", issue.Number)})
	if _, err := f.CreateComment(ctx, number, ""); allowed(err) {
		x.rep.Add(doctor.Finding{Check: "forge.comment", Status: doctor.OK, Text: "the token may comment"})
	} else if err != nil {
		x.rep.Add(fault("forge.comment", err, "give the token issues: write"))
	} else {
		x.rep.Add(doctor.Finding{Check: "forge.comment", Status: doctor.Failed, Text: "the forge took an empty comment", Fix: "remove it"})
	}
	if err := f.SetLabels(ctx, number, nil, []string{doctorLabel}); err != nil {
		x.rep.Add(fault("forge.label", err, "give the token issues: write (GitLab: at least Reporter)"))
	} else {
		x.rep.Add(doctor.Finding{Check: "forge.label", Status: doctor.OK, Text: "the token may label"})
	}
}

// checks: a draft opened with the job's own token starts none.
func (x examination) checks(ctx context.Context, f forge.Forge) {
	who, err := f.Self(ctx)
	if err == nil && strings.EqualFold(who.Login, "github-actions[bot]") {
		x.rep.Add(doctor.Finding{Check: "forge.checks", Status: doctor.Noted, Text: "this is the job's own token: GitHub starts no CI for a pull request that it opens", Fix: "pass github-token the token of a GitHub App, or start the checks by closing and opening the draft"})
	}
}
