package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/policy"
	"github.com/proctor-ci/proctor/internal/trigger"
)

// openPulls counts the open pull requests of ours, the issue's own left out: to work on that one takes no room.
func (s *session) openPulls(ctx context.Context) (int, error) {
	counter, ok := s.req.forge.(forge.PullCounter)
	prefix, _, _ := strings.Cut(s.cfg.Publish.Branch, "{")
	if !ok || prefix == "" {
		s.note("trigger.max_open bounds nothing here: publish.branch begins with no fixed text by which pull requests could be told")
		return 0, nil
	}
	heads, err := counter.OpenPulls(ctx, prefix)
	if err != nil {
		return 0, fmt.Errorf("count the open pull requests: %w", err)
	}
	if s.trigger.Issue.Number != 0 {
		own := s.branchName()
		heads = slices.DeleteFunc(heads, func(h string) bool { return h == own })
	}
	return len(heads), nil
}

// waiting is what a request that waits for room was: whoever starts it later knows ids only.
type waiting struct {
	Asked    int64  `json:"asked"` // label event
	Snapshot string `json:"snapshot"`
}

const waitingFile = "waiting.json"

func waitingRef(issue int) string { return "refs/proctor/" + strconv.Itoa(issue) + "/waiting" }

// remember keeps what was approved with the label event that waits for room.
func (s *session) remember(ctx context.Context) error {
	if !s.writes() || s.labelEvent == 0 {
		return nil
	}
	ref := waitingRef(s.trigger.Issue.Number)
	old, err := s.store.ReadNote(ctx, s.remote, ref, waitingFile)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(waiting{s.labelEvent, s.rec.Trigger.Snapshot})
	if err != nil {
		return err
	}
	_, err = s.store.WriteNote(ctx, s.remote, ref, waitingFile, old, append(raw, '\n'))
	return err
}

// recallApproval finds what was approved for a request that waited: its dispatch names the label event and
// nothing more. A label event that nobody remembers approved nothing that is known.
func (s *session) recallApproval(ctx context.Context) error {
	if s.trigger.Kind != trigger.KindDispatch || s.trigger.Asked.ID == 0 || s.trigger.Snapshot != "" {
		return nil
	}
	s.released = true
	note, err := s.store.ReadNote(ctx, s.remote, waitingRef(s.trigger.Issue.Number), waitingFile)
	if err != nil {
		return err
	}
	var w waiting
	if note.ID == "" || json.Unmarshal(note.Content, &w) != nil || w.Asked != s.trigger.Asked.ID {
		return refused("it is not known any more what was approved when the label was added", "take the label off and add it again")
	}
	s.trigger.Snapshot, s.approval = w.Snapshot, note
	return nil
}

// useUp takes back an approval that waited once its run has ended: a label of ours that somebody adds later starts nothing with
// it. A run that was lost before its end may be started again.
func (s *session) useUp(ctx context.Context) {
	if s.approval.ID == "" || s.lease == nil || s.req.dryRun {
		return
	}
	if _, err := s.store.WriteNote(ctx, s.remote, waitingRef(s.trigger.Issue.Number), waitingFile, s.approval, []byte("{}\n")); err != nil && !errors.Is(err, git.ErrNoteChanged) {
		s.say("the approval that waited could not be taken back, so that it may start another run: " + err.Error())
	}
}

// decide applies the rules; a request that only lacks room is kept for later.
func (s *session) decide(ctx context.Context, facts policy.Facts) error {
	d := policy.Authorise(s.trigger, facts, s.rules(ctx))
	if d.Allow {
		return nil
	}
	switch {
	case d.Reason == policy.ReasonMaxOpen && s.labelEvent != 0:
		s.queued = true
		if err := s.remember(ctx); err != nil {
			s.note("what was approved could not be kept, so that the label has to be added again: " + err.Error())
		}
		return refused(d.Text, "close or merge one; with the webhook this request then starts by itself, without it add the label again")
	case d.Reason == policy.ReasonMaxOpen:
		// Only a label event can be named by whoever starts it later.
		return refused(d.Text, "close or merge one, and ask again: only a request by label waits and starts by itself")
	}
	return refused(d.Text, "")
}

func (s *session) connectGit() {
	r := s.req.forge.Remote()
	s.remote = git.Remote{URL: r.URL, Username: r.Username, Token: r.Token}
}
