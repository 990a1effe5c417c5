package app

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/inert"
	"github.com/proctor-ci/proctor/internal/publish"
)

// answerThreads tells each thread of the round which commit works on it, once: a machine may have been lost in the middle of it. Trouble with
// it is noted: the commits are published. A forge that does not answer is not asked thirty times.
func (s *session) answerThreads(ctx context.Context) {
	talker, ok := s.req.forge.(forge.ThreadTalker)
	if s.round == nil || !ok || !slices.ContainsFunc(s.round.Wishes, func(w wish) bool { return w.Thread != "" }) {
		return
	}
	said, err := s.saidInThreads(ctx, talker)
	if err != nil {
		s.note("the review threads could not be read again, so none was answered: " + err.Error())
		return
	}
	for _, w := range s.round.Wishes {
		if w.Thread == "" {
			continue
		}
		text, err := s.answerTo(ctx, w)
		if text = evidence.AnswerMarker + "\n" + s.red.String(text); err == nil && !said[threadWord{w.Thread, text}] {
			err = talker.AnswerThread(ctx, s.round.Pull, w.threadOf(), text)
		}
		if err != nil {
			s.note(w.From + " of the pull request could not be answered: " + err.Error())
		}
		if errors.Is(err, forge.ErrUnavailable) {
			s.note("the review threads behind it were not answered either")
			return
		}
	}
}

// threadWord is what was said in a thread.
type threadWord struct{ thread, text string }

// saidInThreads is what we ourselves have said.
func (s *session) saidInThreads(ctx context.Context, talker forge.ThreadTalker) (map[threadWord]bool, error) {
	mine, err := publish.Self(ctx, s.req.forge)
	if err != nil {
		return nil, err
	}
	all, err := talker.Threads(ctx, s.round.Pull, mine.Said)
	if err != nil {
		return nil, err
	}
	out := map[threadWord]bool{}
	for _, t := range all.All {
		for _, c := range t.Comments {
			if mine.Said(c) {
				out[threadWord{t.ID, c.Body}] = true
			}
		}
	}
	return out, nil
}

// answerTo says what is known and no more: which commit last changed the file, and that the whole was proved. Whether that settles
// the thread its author decides.
func (s *session) answerTo(ctx context.Context, w wish) (string, error) {
	next := "Resolve the thread if that settles it; if not, answer here and write " + inert.Code(s.prefix()+" fix", 60) + " in the conversation."
	at, err := s.lastToChange(ctx, w.Path)
	switch {
	case err != nil:
		return "", err
	case w.Path != "" && at == "":
		return fmt.Sprintf("The round that read this ended with %s, which every gate proved. It leaves this file as it was. %s", s.onForge(s.proved), next), nil
	case at == "":
		at = s.proved
	}
	return fmt.Sprintf("Worked on in %s. Every gate proved %s, which is now this branch. %s", s.onForge(at), s.onForge(s.proved), next), nil
}

// lastToChange is the newest commit of the round that changes a path, "" when none does.
func (s *session) lastToChange(ctx context.Context, path string) (git.ID, error) {
	for id := s.proved; id != s.round.Start && path != ""; {
		c, err := s.store.ReadCommit(ctx, id)
		if err != nil {
			return "", err
		}
		if len(c.Parents) == 0 {
			return "", nil
		}
		now, err := s.store.Entry(ctx, id, path)
		if err != nil {
			return "", err
		}
		before := c.Parents[0]
		if before == s.round.Tip && s.round.marked != "" {
			before = s.round.marked // what the base brought is not this round's work
		}
		was, err := s.store.Entry(ctx, before, path)
		if err != nil || was != now {
			return id, err
		}
		id = c.Parents[0]
	}
	return "", nil
}
