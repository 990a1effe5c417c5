package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/proctor-ci/proctor/internal/doctor"
	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/policy"
)

// What `proctor doctor --live` opens and takes back. The branch lies outside of every run's, so that nothing that looks for runs' pull
// requests finds it, and its one commit has CI of people skipped, by the words that both forges know.
// https://docs.github.com/actions/managing-workflow-runs/skipping-workflow-runs https://docs.gitlab.com/ci/pipelines/#skip-a-pipeline
const (
	trialRef     = "refs/proctor/doctor/live"
	trialPrefix  = "proctor-doctor/live-"
	trialSubject = "Throw-away commit of proctor doctor [skip ci]"
	trialTitle   = "Throw-away draft of proctor doctor"
	trialBody    = "`proctor doctor --live` opened this to see that it may. It changes nothing, and is closed and its branch deleted at once. If it is still open after an hour, " +
		"`proctor doctor --live` takes it back, or anybody closes it."
	trialComment = "This comment shows that comments can be written."
)

// The lease outlives the trial, so that what is found while one holds it belongs to nobody who is still at work.
const (
	trialTime  = 90 * time.Second
	trialLease = 2*time.Minute + lastWords
)

var trialBranch = regexp.MustCompile(`^` + trialPrefix + `[0-9a-f]{16}$`)

// trial is one throw-away draft.
type trial struct {
	x      examination
	forge  forge.Forge
	back   forge.Withdrawer
	remote git.Remote
	base   string // the default branch
	branch string
	commit git.ID
	pushed bool // or perhaps
	pull   forge.PullRequest
}

// tryDraft opens a real draft, comments on it, labels it and takes it back, after whatever an earlier doctor that was killed left.
func (x examination) tryDraft(ctx context.Context, f forge.Forge, repo forge.Repository) {
	back, ok := f.(forge.Withdrawer)
	if !ok || x.s.store == nil {
		x.rep.Add(doctor.Finding{Check: "live.draft", Status: doctor.Unproved, Text: "nothing can be opened without the checkout", Fix: "mend what is named above, then run this again"})
		return
	}
	var random [8]byte
	x.s.env.random(random[:])
	r := f.Remote()
	t := &trial{x: x, forge: f, back: back, base: repo.DefaultBranch, branch: fmt.Sprintf("%s%x", trialPrefix, random)}
	t.remote = git.Remote{URL: r.URL, Username: r.Username, Token: r.Token, Branch: t.branch, DefaultBranch: repo.DefaultBranch}
	lease, err := x.s.store.Acquire(ctx, t.remote, trialRef, x.s.id, trialLease)
	if held := (*git.HeldError)(nil); errors.As(err, &held) {
		x.rep.Add(doctor.Finding{Check: "live.draft", Status: doctor.Unproved, Text: "another doctor has a draft open, or was killed over it", Fix: "run this again after " + held.Expires.UTC().Format(time.RFC3339)})
		return
	}
	if err != nil {
		x.rep.Add(x.pushFault("live.draft", f, trialRef, err))
		return
	}
	trying, done := context.WithTimeout(ctx, trialTime)
	defer done()
	t.sweep(trying)
	t.open(trying)
	last, end := until(ctx, lastWords)
	defer end()
	t.takeBack(last)
	if err := lease.Release(last); err != nil {
		x.rep.Add(doctor.Finding{Check: "live.lease", Status: doctor.Noted, Text: "the lease " + trialRef + " could not be given back and ends by itself: " + err.Error()})
	}
}

func (t *trial) add(check string, text string) {
	t.x.rep.Add(doctor.Finding{Check: check, Status: doctor.OK, Text: text})
}

// open goes as far as the forge lets it.
func (t *trial) open(ctx context.Context) {
	if err := t.push(ctx); err != nil {
		t.x.rep.Add(t.x.pushFault("live.push", t.forge, t.branch, err))
		return
	}
	t.add("live.push", "a branch was pushed, with a commit that changes nothing and starts no CI")
	var err error
	t.pull, err = t.forge.CreatePullRequest(ctx, forge.NewPullRequest{Head: t.branch, Base: t.base, Title: trialTitle, Body: trialBody})
	switch {
	case err != nil:
		t.x.rep.Add(fault("live.draft", err, "give the token pull-requests: write"))
		return
	case !t.pull.Draft:
		t.x.rep.Add(doctor.Finding{Check: "live.draft", Status: doctor.Failed, Text: t.pull.URL + " is no draft", Fix: "drafts need a public repository or a paid plan"})
	default:
		t.add("live.draft", "a draft was opened: "+t.pull.URL)
	}
	if talker, ok := t.forge.(forge.Talker); ok {
		if _, err := talker.Answer(ctx, forge.Place{Number: t.pull.Number, Change: true}, trialComment); err != nil {
			t.x.rep.Add(fault("live.comment", err, "give the token pull-requests: write and issues: write"))
		} else {
			t.add("live.comment", "a comment was written on it")
		}
	}
	label := policy.Labels{Trigger: t.x.s.cfg.Trigger.Label}.Review()
	if err := t.forge.AddLabelsToPullRequest(ctx, t.pull.Number, []string{label}); err != nil {
		t.x.rep.Add(fault("live.label", err, "give the token pull-requests: write and issues: write"))
	} else {
		t.add("live.label", "the label "+label+" was put on it")
	}
}

// push puts one commit with the default branch's own tree on top of it.
func (t *trial) push(ctx context.Context) error {
	store := t.x.s.store
	tip, err := t.forge.Branch(ctx, t.base)
	if err != nil {
		return err
	}
	if git.ID(tip) != store.Base() {
		if err := store.Fetch(ctx, t.remote, "refs/heads/"+t.base); err != nil {
			return err
		}
	}
	if t.commit, err = store.Idle(ctx, git.ID(tip), git.Meta{Subject: trialSubject, Run: strings.TrimPrefix(t.branch, "proctor-")}); err != nil {
		return err
	}
	t.pushed = true
	return store.Push(ctx, t.remote, []git.RefUpdate{{Name: "refs/heads/" + t.branch, New: t.commit}})
}

// takeBack closes and deletes whatever came of it, also of calls whose answer was lost.
func (t *trial) takeBack(ctx context.Context) {
	if !t.pushed {
		return
	}
	if t.pull.Number == 0 {
		found, err := t.forge.FindPullRequest(ctx, t.branch)
		if err == nil {
			t.pull = found
		}
	}
	opened := t.pull.Number != 0
	if err := t.remove(ctx, t.branch, t.commit, t.pull.Number); err != nil {
		t.x.rep.Add(doctor.Finding{Check: "live.clean", Status: doctor.Failed, Text: "what was opened could not be taken back: " + withoutNext(err), Fix: "run `proctor doctor --live` again, which takes it back, or close " + first(t.pull.URL, "its pull request") + " and run `git push origin --delete " + t.branch + "`"})
		return
	}
	if opened {
		t.add("live.clean", "the draft is closed and its branch deleted")
	}
}

func (t *trial) remove(ctx context.Context, branch string, commit git.ID, number int) error {
	var err error
	if number != 0 {
		err = t.back.ClosePullRequest(ctx, number)
	}
	return errors.Join(err, t.back.DeleteBranch(ctx, branch, string(commit)))
}

// sweep takes back what a doctor that was killed left behind.
func (t *trial) sweep(ctx context.Context) {
	left, err := t.x.left(ctx, t.remote)
	if err != nil {
		t.x.rep.Add(fault("live.left", err, "run this again"))
		return
	}
	for _, branch := range slices.Sorted(maps.Keys(left)) {
		why := t.foreign(ctx, branch, left[branch])
		var pull forge.PullRequest
		if why == "" {
			if pull, err = t.forge.FindPullRequest(ctx, branch); err == nil && (pull.Title != trialTitle || pull.Body != trialBody) {
				why = "its pull request says something else"
			} else if err != nil && !errors.Is(err, forge.ErrNotFound) {
				why = withoutNext(err)
			}
		}
		if why == "" {
			if err := t.remove(ctx, branch, left[branch], pull.Number); err != nil {
				why = withoutNext(err)
			}
		}
		if why != "" {
			t.x.rep.Add(doctor.Finding{Check: "live.left", Status: doctor.Noted, Text: "the branch " + branch + " looks like a left-over and stays: " + why, Fix: "if nobody needs it: `git push origin --delete " + branch + "`"})
			continue
		}
		t.add("live.left", "the branch "+branch+" and its draft, left by a doctor that was killed, were removed")
	}
}

// left are the branches with a trial's name, and where they point.
func (x examination) left(ctx context.Context, remote git.Remote) (map[string]git.ID, error) {
	refs, err := x.s.store.LsRemote(ctx, remote, "refs/heads/"+trialPrefix+"*")
	out := map[string]git.ID{}
	for ref, id := range refs {
		if name := strings.TrimPrefix(ref, "refs/heads/"); trialBranch.MatchString(name) {
			out[name] = id
		}
	}
	return out, err
}

// foreign says why a branch is not a trial's, "" where it is: the commit is this program's, says that it is this branch's, and changes nothing.
func (t *trial) foreign(ctx context.Context, branch string, id git.ID) string {
	store := t.x.s.store
	if _, err := store.FetchCommit(ctx, t.remote, string(id)); err != nil {
		return withoutNext(err)
	}
	c, err := store.ReadCommit(ctx, id)
	if err != nil {
		return err.Error()
	}
	_, ours, err := store.Wrote(ctx, id)
	if err != nil || !ours || len(c.Parents) != 1 || c.Trailer(git.TrailerRun) != strings.TrimPrefix(branch, "proctor-") || !strings.HasPrefix(c.Message, trialSubject+"\n") {
		return "its commit is somebody else's"
	}
	if _, err := store.FetchCommit(ctx, t.remote, string(c.Parents[0])); err != nil {
		return withoutNext(err)
	}
	if below, err := store.Tree(ctx, c.Parents[0]); err != nil || below != c.Tree {
		return "its commit changes files"
	}
	return ""
}

func withoutNext(err error) string {
	text, _, _ := strings.Cut(err.Error(), ". Next: ")
	return text
}

// leftOver tells of what a killed doctor left; only --live removes anything.
func (x examination) leftOver(ctx context.Context, f forge.Forge) {
	r := f.Remote()
	left, err := x.left(ctx, git.Remote{URL: r.URL, Username: r.Username, Token: r.Token})
	if err == nil && len(left) > 0 {
		x.rep.Add(doctor.Finding{Check: "live.left", Status: doctor.Noted, Text: "a doctor that was killed left the branch " + strings.Join(slices.Sorted(maps.Keys(left)), ", "), Fix: "`proctor doctor --live` removes it with its draft"})
	}
}
