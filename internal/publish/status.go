package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge"
)

// MinInterval is the least time between two edits of the status comment.
const MinInterval = 5 * time.Second

// finalTimeout bounds the last word: a cancelled CI job has seven and a half seconds to live.
const finalTimeout = 5 * time.Second

// Status is the one status comment of an issue (INV-49): found by its marker and our own account,
// made once, edited in place. It is used by one goroutine at a time. Trouble with it never ends a
// run; the caller logs the error and goes on.
type Status struct {
	forge  forge.Forge
	issue  int
	now    func() time.Time
	redact *evidence.Redactor

	looked  bool
	id      int64 // 0: not made yet
	shown   string
	tried   time.Time
	waiting time.Duration // between tries: MinInterval, more after failures
}

// NewStatus is the status comment of an issue; it does nothing until it is shown. An issue of 0, for
// a run without one, makes every call do nothing.
func NewStatus(f forge.Forge, issue int, now func() time.Time, red *evidence.Redactor) *Status {
	return &Status{forge: f, issue: issue, now: now, redact: red, waiting: MinInterval}
}

// Show writes the running state, unless the comment says so already or was written less than
// MinInterval ago: then nothing happens, and the next Show has newer things to say. Call it at every
// event and, so that the last event before a long silence is seen too, at a regular tick.
func (s *Status) Show(ctx context.Context, p evidence.Progress) error {
	if s.issue == 0 || !s.tried.IsZero() && s.now().Sub(s.tried) < s.waiting {
		return nil
	}
	body := s.redact.String(evidence.RunningComment(p, s.limit()))
	if body == s.shown {
		return nil
	}
	err := s.write(ctx, body)
	s.tried = s.now()
	s.waiting = MinInterval
	if err != nil {
		// A forge in trouble, a locked issue or a missing permission does not get better by asking often.
		s.waiting = 12 * MinInterval
	}
	return err
}

// Finish writes the final word, at once and even when ctx is cancelled already.
func (s *Status) Finish(ctx context.Context, r evidence.Record) error {
	if s.issue == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finalTimeout)
	defer cancel()
	return s.write(ctx, evidence.StatusComment(s.redact.Record(r), s.limit()))
}

func (s *Status) limit() int { return s.forge.Limits().CommentBody }

func (s *Status) write(ctx context.Context, body string) error {
	if err := s.find(ctx); err != nil {
		return fmt.Errorf("status comment on issue %d: %w", s.issue, err)
	}
	if s.id != 0 {
		err := s.forge.UpdateComment(ctx, s.issue, s.id, body)
		if err == nil {
			s.shown = body
			return nil
		}
		if !errors.Is(err, forge.ErrNotFound) && !errors.Is(err, forge.ErrForbidden) {
			return fmt.Errorf("status comment on issue %d: %w", s.issue, s.redact.Error(err))
		}
		s.id = 0 // somebody deleted it, or it is an earlier run's, whose account was another
	}
	c, err := s.forge.CreateComment(ctx, s.issue, body)
	if err != nil {
		// It may have been made before the answer was lost: look again before the next try.
		s.looked = false
		return fmt.Errorf("status comment on issue %d: %w", s.issue, s.redact.Error(err))
	}
	s.id, s.shown = c.ID, body
	return nil
}

// find looks once for the comment of an earlier run. A marker alone proves nothing, because anybody
// can type it; nor does a comment of ours without one.
func (s *Status) find(ctx context.Context) error {
	if s.looked {
		return nil
	}
	self, err := Self(ctx, s.forge)
	if err != nil {
		return err
	}
	comments, err := s.forge.Comments(ctx, s.issue)
	if err != nil {
		return err
	}
	s.looked = true
	for _, c := range slices.Backward(comments) { // the newest: earlier ones may be of accounts that are gone
		if strings.HasPrefix(c.Body, evidence.StatusMarker) && self.wrote(c.Author) {
			s.id = c.ID
			return nil
		}
	}
	return nil
}
