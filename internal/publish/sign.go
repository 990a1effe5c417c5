package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge"
)

// Commits are the run's own, as it takes to have the forge sign them.
type Commits interface {
	// Unsigned are the commits of ours that a push of head brings and no forge has signed, parents before children; none where head
	// is not one of them. The forge has their trees, and the parents that are not among them.
	Unsigned(ctx context.Context, head string) ([]Unsigned, error)
	// Keep puts what the forge made of c among the run's objects, so that it can be pushed. It works out for itself that made is c on those
	// parents, with nothing changed but author, committer and dates, and that it has the id that it is said to have; otherwise it is an
	// error, and nothing is kept.
	Keep(ctx context.Context, c Unsigned, parents []string, made forge.MadeCommit) error
}

// Unsigned is a commit of ours.
type Unsigned struct {
	ID string
	forge.NewCommit
}

// unsignedError is why nothing was signed, where the forge answered and did not sign.
type unsignedError struct{ why, next string }

func (e *unsignedError) Error() string { return e.why }

const (
	autoNext = "or set publish.signing to auto, then add the label again"
	botNext  = "give the run its job's own token or an App's, without which GitHub signs nothing (on Enterprise Server its administrator turns web commit signing on), " + autoNext
)

func signNext(err error) string {
	var unsigned *unsignedError
	if errors.As(err, &unsigned) {
		return unsigned.next
	}
	return ""
}

// seal signs what is to be pushed, where that is asked for, and gives its id. Without a signature, and where none is required, that is the proved
// commit's, and the record says why.
func (p *Publisher) seal(ctx context.Context, q *Request, res *Result) (string, error) {
	proved := q.Record.Head.ID
	if q.Signing == "" || q.Signing == "off" {
		return proved, nil
	}
	s, err := p.sign(ctx, *q)
	res.Signing, q.Record.Signing = s, s
	switch {
	case err != nil && (q.Signing == "required" || ctx.Err() != nil):
		return "", err
	case !s.Signed:
		p.log().Info("not signed", "commit", proved, "reason", s.Reason)
		return proved, nil
	}
	if q.Pushing != nil {
		err = q.Pushing(ctx, *s)
	}
	return s.Pushed.ID, err
}

// sign has the forge make the run's commits again, all of them or none: of the proved commit, and of what it stands on down to the base or to other
// people's commits, each with the same tree and message on the same parents, or on those that were signed in their place (INV-15). The
// answer is the record's; the error is why it could not be, which ends a run only where a signature is required.
func (p *Publisher) sign(ctx context.Context, q Request) (*evidence.Signing, error) {
	s := &evidence.Signing{Mode: q.Signing, Proved: *q.Record.Head}
	if old := q.Signed; old != nil && old.Signed && old.Proved == s.Proved && old.Pushed.Tree == s.Proved.Tree && old.Pushed.ID == q.Target.Tip {
		s.Signed, s.Pushed, s.Commits = true, old.Pushed, old.Commits // it stands on the branch already
		return s, nil
	}
	id, n, err := p.resign(ctx, s.Proved.ID)
	if err != nil {
		s.Reason = p.Redact.String((&Failure{Err: err}).cause())
		return s, err
	}
	s.Signed, s.Pushed, s.Commits = true, &evidence.Commit{ID: id, Tree: s.Proved.Tree}, n
	return s, nil
}

// resign gives the id of head as the forge signed it.
func (p *Publisher) resign(ctx context.Context, head string) (id string, n int, err error) {
	maker, ok := p.Forge.(forge.CommitMaker)
	if !ok || p.Commits == nil {
		return "", 0, &unsignedError{CannotSign(p.Forge), "set publish.signing to auto, then add the label again"}
	}
	if why := maker.Unsigned(); why != "" {
		return "", 0, &unsignedError{why, botNext}
	}
	all, err := p.Commits.Unsigned(ctx, head)
	if err != nil {
		return "", 0, err
	}
	if len(all) == 0 {
		return "", 0, &unsignedError{"the proved commit is none that this program made", "read its history, " + autoNext}
	}
	signed := map[string]string{}
	for i, c := range all {
		ask := c.NewCommit
		ask.Parents = slices.Clone(c.Parents)
		for j, parent := range ask.Parents {
			if id := signed[parent]; id != "" {
				ask.Parents[j] = id
			}
		}
		made, err := p.make(ctx, maker, ask, i == 0)
		if err != nil {
			return "", 0, err
		}
		if err := p.Commits.Keep(ctx, c, ask.Parents, made); err != nil {
			return "", 0, &unsignedError{err.Error(), "report it with the run record: what a forge signs has to be what was proved; " + autoNext}
		}
		signed[c.ID] = made.ID
	}
	return signed[head], len(all), nil
}

// make asks for one commit. The first asks about objects that were pushed a moment ago: an API that reads from a copy may not know them yet.
func (p *Publisher) make(ctx context.Context, maker forge.CommitMaker, ask forge.NewCommit, first bool) (forge.MadeCommit, error) {
	for pause := firstPause; ; pause *= 2 {
		made, err := maker.MakeCommit(ctx, ask)
		switch {
		case first && pause < lastPause/2 && (errors.Is(err, forge.ErrInvalid) || errors.Is(err, forge.ErrNotFound)):
			if err := p.wait(ctx, pause); err != nil {
				return made, err
			}
			continue
		case err != nil:
			return made, err
		case !made.Verified:
			return made, &unsignedError{fmt.Sprintf("the forge did not sign the commit that it made, and says %q", made.Reason), botNext}
		case made.Tree != ask.Tree || !slices.Equal(made.Parents, ask.Parents):
			return made, &unsignedError{"the forge made a commit of another tree or other parents than it was asked for", "report it with the run record; " + autoNext}
		}
		return made, nil
	}
}

// CannotSign is why a forge without a call for it signs no commit that was proved; "" where it has the call.
func CannotSign(f forge.Forge) string {
	if _, ok := f.(forge.CommitMaker); ok {
		return ""
	}
	name := f.Name()
	if name == "gitlab" {
		name = "GitLab"
	}
	return name + " signs what its own pages commit, and no commit that was made and proved elsewhere"
}
