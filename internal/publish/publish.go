// Package publish owns what a run leaves on the forge: one branch, one draft pull request, labels
// and one status comment. It must never run git itself, nor push anything but the proved commit.
package publish

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/proctor-ci/proctor/internal/clock"
	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge"
)

// Pusher pushes one commit to one branch of the run's repository.
type Pusher interface {
	// Push makes refs/heads/branch point at commit if it still points at expect; an empty expect
	// means that it must not exist yet. It pushes nothing else, deletes nothing and takes no push
	// options. Only the comparison with expect protects commits of others, so it happens on the
	// server (a lease), not before the push. An error of git's is a *PushError.
	Push(ctx context.Context, branch, commit, expect string) error
}

// Publisher publishes the result of runs in one repository.
type Publisher struct {
	Forge forge.Forge
	Push  Pusher
	// Commits are the run's own, for signing; nil: nothing is signed.
	Commits Commits
	Log     *slog.Logger       // nil: nothing is logged
	Redact  *evidence.Redactor // nil: shapes of tokens only
	// Wait pauses while the forge's API catches up with a push; nil waits by the real clock.
	Wait func(context.Context, time.Duration) error
}

// Request is one result to publish.
type Request struct {
	// Record is the run's account with Terminal done, a head commit, and no dry run.
	Record evidence.Record
	// Target is the branch as Aim saw it when the run began.
	Target Target
	// Base is the branch the pull request asks to be merged into.
	Base      string
	Reviewers []string
	Assignees []string
	Labels    []string // of the pull request, beside the state labels
	// Signing is publish.signing: "auto", "required", or "off", as which "" counts.
	Signing string
	// Signed is what an earlier run had signed and pushed for this issue last, nil where none did.
	Signed *evidence.Signing
	// Pushing is told what is about to be pushed, where it is another id than the proved one, so that whoever goes on behind a lost machine
	// knows the branch for ours; nil: nobody is told. An error ends publishing.
	Pushing func(context.Context, evidence.Signing) error
}

// Result is what stands on the forge now. With an error it tells how far publishing came: an empty
// Branch means that nothing was pushed.
type Result struct {
	evidence.Published
	Signing *evidence.Signing // nil where publish.signing is off, or publishing did not come so far
	// Notes say what did not work and did not matter enough to fail, for the record.
	Notes []string
}

// Publish pushes exactly the proved commit to the run's branch, or the forge's own commit of the same tree where that is to be signed, and opens a
// draft pull request, or updates the open one. Reviewers, assignees and labels are extras: trouble with them is noted. An
// error is a *Failure: the commit is kept where the record says, and Next says what to click.
func (p *Publisher) Publish(ctx context.Context, q Request) (Result, error) {
	var res Result
	fail := func(step Step, err error, next string) (Result, error) {
		f := p.failure(step, q, err, next)
		f.Signing = res.Signing
		if res.Branch != "" {
			f.Pushed = res.Branch
		}
		p.log().Error("publish", "step", string(step), "branch", q.Target.Branch, "error", f.Error())
		return res, f
	}
	if err := check(q); err != nil {
		return fail(StepCheck, err, "this is a fault of the program or of its caller: report it with the run record")
	}
	repo, err := p.Forge.Repository(ctx)
	if err != nil {
		return fail(StepCheck, err, "")
	}
	if err := allowed(q.Target.Branch, q.Base, repo.DefaultBranch); err != nil {
		return fail(StepCheck, err, "set publish.branch to a name of its own, such as proctor/issue-{number}")
	}
	want, err := p.seal(ctx, &q, &res)
	if err != nil {
		return fail(StepSign, err, signNext(err))
	}
	if err := p.push(ctx, q, want); err != nil {
		var moved *movedError
		if errors.As(err, &moved) {
			if q.Record.Trigger.Revise && moved.to != "" {
				return fail(StepPush, err, fmt.Sprintf("nothing on %s was overwritten: ask on pull request %d for another round, which builds on what is there now", q.Target.Branch, q.Target.Open))
			}
			return fail(StepPush, err, moved.next(q.Target.Branch))
		}
		next, err := p.explainPush(q.Target.Branch, err)
		return fail(StepPush, err, next)
	}
	res.Branch, res.Commit = q.Target.Branch, want
	pr, updated, err := p.pullRequest(ctx, q)
	if err != nil {
		return fail(StepPullRequest, err, pullAdvice(err, p.Forge.Name(), repo.WebURL, q.Base, q.Target.Branch))
	}
	res.Number, res.URL, res.Draft, res.Updated = pr.Number, pr.URL, pr.Draft, updated
	switch {
	case !pr.Draft && updated:
		res.note("pull request %d is not a draft any more: somebody marked it ready, and it stays so", pr.Number)
	case !pr.Draft:
		res.note("the forge opened pull request %d ready for review although a draft was asked for", pr.Number)
	}
	if pr.Base != "" && pr.Base != q.Base {
		res.note("pull request %d asks for %s and not for %s: somebody changed it, and it stays so", pr.Number, pr.Base, q.Base)
	}
	p.extras(ctx, q, pr.Number, &res)
	p.log().Info("published", "branch", res.Branch, "commit", res.Commit, "number", res.Number, "url", res.URL)
	return res, nil
}

// check holds the request to what Publish promises (INV-15): the commit that is pushed, or that is signed to be pushed, is the one
// that the record proves.
func check(q Request) error {
	if err := evidence.Validate(q.Record); err != nil {
		return err
	}
	switch {
	case q.Record.DryRun:
		return errors.New("a dry run publishes nothing")
	case q.Record.Terminal != evidence.Done:
		return fmt.Errorf("the run ended as %s: only a proved commit is published", q.Record.Terminal)
	case q.Record.Head == nil:
		return errors.New("the record has no head commit")
	case q.Base == "":
		return errors.New("no base branch is given")
	}
	return nil
}

// allowed refuses every branch that is not the run's own (INV-20).
func allowed(branch, base, defaultBranch string) error {
	switch {
	case branch == "" || strings.HasPrefix(branch, "-") || strings.HasPrefix(branch, "refs/") || branch == "HEAD" ||
		strings.ContainsAny(branch, " :+?*[\\^~\x7f") || strings.ContainsFunc(branch, func(c rune) bool { return c < ' ' }):
		return fmt.Errorf("branch %q is not a branch name that a run may push", branch)
	case strings.EqualFold(branch, defaultBranch):
		return fmt.Errorf("branch %q is the default branch: a run never pushes there", branch)
	case strings.EqualFold(branch, base):
		return fmt.Errorf("branch %q is the base of the pull request: a run never pushes there", branch)
	}
	return nil
}

// push pushes and looks at the result: a lost answer is no failure, and a branch that points
// elsewhere afterwards is no success.
func (p *Publisher) push(ctx context.Context, q Request, want string) error {
	branch := q.Target.Branch
	pushErr := p.Push.Push(ctx, branch, want, q.Target.Tip)
	for pause := firstPause; ; pause *= 2 {
		now, err := p.Forge.Branch(ctx, branch)
		if errors.Is(err, forge.ErrNotFound) {
			now, err = "", nil
		}
		switch {
		case err == nil && now == want:
			return nil
		case err != nil && pushErr == nil:
			return fmt.Errorf("look at branch %s after the push: %w", branch, err)
		case err != nil:
			return pushErr
		case now != q.Target.Tip:
			return &movedError{branch: branch, from: q.Target.Tip, to: now, err: pushErr}
		case pushErr != nil:
			return pushErr
		case pause > lastPause:
			return fmt.Errorf("the push was accepted but branch %s is still at %q, not at %s", branch, now, want)
		}
		// Git took the push and the API does not show it yet: it reads from a copy that lags.
		if err := p.wait(ctx, pause); err != nil {
			return fmt.Errorf("wait for branch %s after the push: %w", branch, err)
		}
	}
}

// Pauses between looks at a branch that was pushed: eight seconds in all.
const (
	firstPause = 250 * time.Millisecond
	lastPause  = 4 * time.Second
)

func (p *Publisher) wait(ctx context.Context, d time.Duration) error {
	if p.Wait != nil {
		return p.Wait(ctx, d)
	}
	return clock.Sleep(ctx, d)
}

// movedError: somebody else changed the branch since the run began.
type movedError struct {
	branch, from, to string
	err              error
}

func (e *movedError) Error() string {
	if e.to == "" {
		return fmt.Sprintf("branch %s was deleted while the run went on", e.branch)
	}
	if e.from == "" {
		return fmt.Sprintf("branch %s was made by somebody else while the run went on and is at %s", e.branch, e.to)
	}
	return fmt.Sprintf("branch %s has commits that are not ours: it was at %s when the run began and is at %s", e.branch, e.from, e.to)
}

func (e *movedError) Unwrap() []error {
	if e.err == nil {
		return []error{ErrMoved}
	}
	return []error{ErrMoved, e.err}
}

func (e *movedError) next(branch string) string {
	if e.to == "" {
		return "add the label again if the change is still wanted: the next run makes the branch anew"
	}
	return fmt.Sprintf("nothing on %s was overwritten: merge or move the commits there, then add the label again", branch)
}

// pullRequest updates the open pull request of the branch or opens a draft. Nothing is ever reopened:
// a pull request that a person closed or merged stays so, and the same branch gets a new one.
func (p *Publisher) pullRequest(ctx context.Context, q Request) (forge.PullRequest, bool, error) {
	open, err := p.Forge.FindPullRequest(ctx, q.Target.Branch)
	switch {
	case err == nil:
		pr, err := p.update(ctx, q, open)
		return pr, true, err
	case !errors.Is(err, forge.ErrNotFound):
		return forge.PullRequest{}, false, err
	}
	pr, err := p.Forge.CreatePullRequest(ctx, forge.NewPullRequest{
		Head: q.Target.Branch, Base: q.Base,
		Title: p.Redact.String(evidence.PRTitle(q.Record)), Body: p.body(q.Record, ""),
	})
	if err == nil {
		return pr, false, nil
	}
	if !errors.Is(err, forge.ErrConflict) && !errors.Is(err, forge.ErrInvalid) && !errors.Is(err, forge.ErrUnavailable) {
		return forge.PullRequest{}, false, err
	}
	// The forge may say that there is one already, or may have made one before its answer was lost.
	if open, findErr := p.Forge.FindPullRequest(ctx, q.Target.Branch); findErr == nil {
		pr, err := p.update(ctx, q, open)
		return pr, true, err
	}
	return forge.PullRequest{}, false, err
}

// update rewrites our part of the body. The title and what people wrote below our part are theirs.
func (p *Publisher) update(ctx context.Context, q Request, open forge.PullRequest) (forge.PullRequest, error) {
	body := p.body(q.Record, open.Body)
	return p.Forge.UpdatePullRequest(ctx, open.Number, forge.PullRequestEdit{Body: &body})
}

// body renders our part within the forge's limit and keeps what stands below it in old.
func (p *Publisher) body(r evidence.Record, old string) string {
	limit := p.Forge.Limits().PullRequestBody
	if limit <= 0 {
		limit = evidence.MaxGitHubBody
	}
	theirs := peoples(old)
	if len(theirs) > limit-minOwnBody {
		theirs = "\n> What stood below was too long to keep beside the evidence.\n"
	}
	// Redacting first and cutting then keeps both promises: what is rendered is already clean.
	return evidence.PRBody(p.Redact.Record(r), limit-len(theirs)) + theirs
}

// minOwnBody is what the evidence needs at least, in bytes.
const minOwnBody = 8 << 10

// peoples is the part of a body that is not ours: what stands below our end mark, or all of it when a
// person opened the pull request.
func peoples(body string) string {
	if evidence.PullRequestHead(body) != "" {
		_, tail, _ := strings.Cut(body, evidence.PullRequestEnd)
		body = tail
	}
	if strings.TrimSpace(body) == "" {
		return ""
	}
	return "\n" + strings.Trim(body, "\n") + "\n"
}

// extras are what a pull request can do without.
func (p *Publisher) extras(ctx context.Context, q Request, number int, res *Result) {
	if len(q.Labels) > 0 {
		if err := p.Forge.AddLabelsToPullRequest(ctx, number, q.Labels); err != nil {
			res.note("labels %s were not set on pull request %d: %s", strings.Join(q.Labels, ", "), number, p.Redact.String(err.Error()))
		}
	}
	people, ok := p.Forge.(forge.Requester)
	if !ok {
		if n := len(q.Reviewers) + len(q.Assignees); n > 0 {
			res.note("publish.reviewers and publish.assignees were not applied: the %s client cannot ask people yet", p.Forge.Name())
		}
		return
	}
	if len(q.Reviewers) > 0 {
		if err := people.RequestReviewers(ctx, number, q.Reviewers); err != nil {
			res.note("reviewers %s were not asked: %s", strings.Join(q.Reviewers, ", "), p.Redact.String(err.Error()))
		}
	}
	if len(q.Assignees) > 0 {
		if err := people.Assign(ctx, number, q.Assignees); err != nil {
			res.note("assignees %s were not set: %s", strings.Join(q.Assignees, ", "), p.Redact.String(err.Error()))
		}
	}
}

func (r *Result) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

func (p *Publisher) log() *slog.Logger {
	if p.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return p.Log
}
