package app

import (
	"context"
	"fmt"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/inert"
)

// answerThreads tells each thread of the round which commit works on it. Trouble with it is noted: the commits are published.
func (s *session) answerThreads(ctx context.Context) {
	talker, ok := s.req.forge.(forge.ThreadTalker)
	if s.round == nil || !ok {
		return
	}
	for _, w := range s.round.Wishes {
		if w.Thread == "" {
			continue
		}
		text, err := s.answerTo(ctx, w)
		if err == nil {
			err = talker.AnswerThread(ctx, s.round.Pull, w.threadOf(), evidence.AnswerMarker+"\n"+s.red.String(text))
		}
		if err != nil {
			s.note(w.From + " of the pull request could not be answered: " + err.Error())
		}
	}
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
		return fmt.Sprintf("The round that read this ended with %s, which every gate proved. It leaves this file as it was. %s", s.proved, next), nil
	case at == "":
		at = s.proved
	}
	return fmt.Sprintf("Worked on in %s. Every gate proved %s, which is now this branch. %s", at, s.proved, next), nil
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
		was, err := s.store.Entry(ctx, c.Parents[0], path)
		if err != nil || was != now {
			return id, err
		}
		id = c.Parents[0]
	}
	return "", nil
}
