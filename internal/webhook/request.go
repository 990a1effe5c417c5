package webhook

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/policy"
	"github.com/proctor-ci/proctor/internal/trigger"
)

// request is the way of a delivery that asks for a run: known already? may they? claim, dispatch.
func (h *Handler) request(ctx context.Context, d *delivery) answer {
	q, a, ok := h.inquire(ctx, d)
	if !ok {
		return a
	}
	if dec := policy.Authorise(d.t, q.facts, h.cfg.Rules); !dec.Allow {
		h.react(ctx, q.forge, d.t, forge.ReactionRefused)
		return accepted(StatusRefused, string(dec.Reason))
	}
	if ev := q.facts.LabelEvent; ev != nil && d.t.Kind == trigger.KindLabel {
		d.t.Asked = trigger.Asked{ID: ev.ID, At: ev.At}
	}
	c, a, ok := h.claim(ctx, d)
	if !ok {
		return a
	}
	if a, ok := h.within(ctx, q.forge, c, d); !ok {
		return a
	}
	return h.dispatch(ctx, q.forge, c, d)
}

// inquiry is what is asked about every delivery that wants something of us.
type inquiry struct {
	forge Forge
	facts policy.Facts
}

// inquire finds out whether the delivery is known already and, if not, what the forge says now.
func (h *Handler) inquire(ctx context.Context, d *delivery) (inquiry, answer, bool) {
	if a, done := h.known(ctx, d); done {
		return inquiry{}, a, false
	}
	f, a, ok := h.connect(ctx, d)
	if !ok {
		return inquiry{}, a, false
	}
	facts, a, ok := h.facts(ctx, f, d)
	return inquiry{f, facts}, a, ok
}

// keys are the names one delivery may come under again: the forge's id, which is not signed, and the body, which
// is. Two hooks of one project send equal bodies under different ids.
func (d *delivery) keys() []string {
	keys := []string{d.body}
	if d.id != "" {
		keys = append(keys, "delivery:"+d.id)
	}
	return keys
}

// bodyKey names a body.
func bodyKey(body []byte) string {
	sum := sha256.Sum256(body)
	return "body:" + hex.EncodeToString(sum[:])
}

// eventKey names what asked: the label event, the comment, the review or the commit whose CI failed, whatever deliveries tell of it.
func eventKey(t trigger.Trigger, body string) string {
	subject := fmt.Sprintf("%s:%d:%s#%d", t.Forge, t.Repo.ID, t.Repo.FullName(), t.Issue.Number)
	switch {
	case t.Command != nil:
		return subject + ":comment:" + strconv.FormatInt(t.Command.CommentID, 10)
	case t.Check != nil:
		// A push starts many workflows, and each of them may fail.
		return subject + ":check:" + t.Change.Head + "@" + t.Check.SHA
	case t.Review != nil:
		return subject + ":review:" + t.Review.Key()
	case t.Asked.ID != 0 && t.Kind == trigger.KindLabel:
		return subject + ":label:" + strconv.FormatInt(t.Asked.ID, 10)
	}
	return subject + ":" + body
}

// known answers a delivery whose event has a claim, before anything is asked of the forge.
func (h *Handler) known(ctx context.Context, d *delivery) (answer, bool) {
	c, err := h.cfg.Store.Find(ctx, d.keys())
	switch {
	case errors.Is(err, ErrNoClaim):
		return answer{}, false
	case err != nil:
		d.cause = err
		return later("store"), true
	}
	return taken(c), true
}

// taken answers for a claim that somebody holds. While it is being dispatched nobody knows whether it
// will be, so that only another delivery can be sure that nothing is lost.
func taken(c Claim) answer {
	if c.State == Claimed {
		return later("in_flight")
	}
	a := accepted(StatusDuplicate, c.State.String())
	a.Run = c.ID
	return a
}

func (h *Handler) connect(ctx context.Context, d *delivery) (Forge, answer, bool) {
	f, err := h.cfg.Connect(ctx, Target{Forge: d.t.Forge, Repo: d.t.Repo, Install: d.t.Install})
	if err != nil {
		d.cause = err
		return nil, forgeAnswer(err), false
	}
	return f, answer{}, true
}

// forgeAnswer sorts a forge's failure: what another try may mend, and what only a person can.
func forgeAnswer(err error) answer {
	switch {
	case errors.Is(err, ErrNoInstallation):
		return accepted(StatusRefused, "no_installation")
	case errors.Is(err, forge.ErrUnauthorized):
		return accepted(StatusFailed, "credentials")
	case errors.Is(err, forge.ErrForbidden):
		return accepted(StatusFailed, "permission")
	case errors.Is(err, forge.ErrNotFound), errors.Is(err, forge.ErrMoved):
		// An issue that was transferred does not come back either.
		return accepted(StatusFailed, "not_found")
	case errors.Is(err, forge.ErrInvalid):
		return accepted(StatusFailed, "refused_by_forge")
	}
	return later("forge")
}

// facts asks the forge what is true now, all at once. The role decides, so only its absence may be
// taken for an answer: an account without access is RoleNone; a failed look-up is no permission and no verdict.
func (h *Handler) facts(ctx context.Context, f Forge, d *delivery) (policy.Facts, answer, bool) {
	t := d.t
	var (
		out                         policy.Facts
		issue                       forge.Issue
		event                       forge.LabelEvent
		roleErr, issueErr, eventErr error
		wg                          sync.WaitGroup
	)
	// A merge request's iid is no issue's number on GitLab: its own state was in the event. Of a check it is the issue's.
	asksIssue := t.Change == nil || t.Forge == trigger.GitHub || t.Check != nil
	asksLabel := t.Kind == trigger.KindLabel
	// A request that waited for room has our own label in the trigger label's place.
	out.Started = t.Kind == trigger.KindDispatch
	if t.Check == nil {
		wg.Go(func() { out.Role, roleErr = f.Role(ctx, t.Actor.Login) })
	}
	if asksIssue {
		wg.Go(func() { issue, issueErr = f.Issue(ctx, t.Issue.Number) })
	}
	if asksLabel {
		wg.Go(func() { event, eventErr = h.labelEvent(ctx, f, t.Issue.Number) })
	}
	wg.Wait()
	if errors.Is(roleErr, forge.ErrForbidden) || errors.Is(roleErr, forge.ErrNotFound) {
		d.cause = roleErr
		out.Role, roleErr = "", nil
	}
	if errors.Is(eventErr, forge.ErrNotFound) {
		d.cause = eventErr
		return out, accepted(StatusRefused, string(policy.ReasonLabelGone)), false
	}
	if err := errors.Join(roleErr, issueErr, eventErr); err != nil {
		d.cause = err
		return out, forgeAnswer(err), false
	}
	if asksIssue {
		out.Issue = &issue
	}
	if asksLabel {
		out.LabelEvent = &event
	}
	return out, answer{}, true
}

// labelLooks: a delivery can be faster than the list of events that tells of the same label.
const (
	labelLooks = 3
	labelPause = 700 * time.Millisecond
)

func (h *Handler) labelEvent(ctx context.Context, f Forge, issue int) (forge.LabelEvent, error) {
	for look := 1; ; look++ {
		ev, err := f.LabelEvent(ctx, issue, h.cfg.Rules.Label)
		if !errors.Is(err, forge.ErrNotFound) || look == labelLooks {
			return ev, err
		}
		if h.cfg.Wait(ctx, labelPause) != nil {
			return ev, err
		}
	}
}

func (h *Handler) claim(ctx context.Context, d *delivery) (Claim, answer, bool) {
	key := eventKey(d.t, d.body)
	d.t.ID = trigger.NewID(key)
	c, err := h.cfg.Store.Claim(ctx, Claim{
		ID: d.t.ID, Keys: append(d.keys(), "event:"+key), Turn: d.turn, File: h.cfg.Workflow, Issue: d.t.Issue.Number, Roomless: roomless(d.t),
		To: Target{Forge: d.t.Forge, Repo: d.t.Repo, Install: d.t.Install},
	}, h.cfg.Leases.Claimed)
	switch {
	case errors.Is(err, ErrTaken) && d.turn != "" && !slices.Contains(c.Keys, d.body):
		return Claim{}, accepted(StatusDuplicate, reasonTurn), false
	case errors.Is(err, ErrTaken):
		return Claim{}, taken(c), false
	case err != nil:
		// It may have been taken all the same: then its lease ends by itself.
		d.cause = err
		return Claim{}, later("store"), false
	}
	return c, answer{}, true
}

// roomless: what goes on with a change has its room already, and other commands than those that start a run need none.
func roomless(t trigger.Trigger) bool {
	if t.Change != nil || t.Command == nil {
		return t.Change != nil
	}
	info, ok := t.Command.Info()
	return !ok || !info.Starts || info.Missing != ""
}

// react is a courtesy: its failure changes nothing.
func (h *Handler) react(ctx context.Context, f Forge, t trigger.Trigger, r forge.Reaction) {
	if t.Command == nil {
		return
	}
	if talker, ok := f.(forge.Talker); ok && t.Change != nil {
		// On GitLab the comment is the merge request's, and an issue of its number is somebody else's.
		_ = talker.Acknowledge(ctx, forge.Place{Number: t.Change.Number, Change: true}, t.Command.CommentID, r)
	} else if rc, ok := f.(forge.Reactor); ok {
		_ = rc.React(ctx, t.Issue.Number, t.Command.CommentID, r)
	}
}
