package app

import (
	"context"
	"errors"
	"testing"

	"github.com/proctor-ci/proctor/internal/forge"
)

// ownForge knows whose its token is, or does not.
type ownForge struct {
	forge.Forge
	err error
}

func (f ownForge) Self(context.Context) (forge.User, error) {
	return forge.User{Login: "maya", ID: 42}, f.err
}

// budget.per_actor_day_usd is each person's own, at a terminal too.
func TestAPersonAtATerminalIsWhoseTheTokenIs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		local  bool
		id     int64
		err    error
		want   int64
		noting int
	}{
		{"at a terminal", true, 0, nil, 42, 0},
		{"at a terminal, and nobody knows", true, 0, errors.New("no"), 0, 1},
		{"in a job", false, 7, nil, 7, 0},
		{"in a job that is not told who asked", false, 0, nil, 0, 0},
	} {
		s := quiet(t, func(string) string { return "" })
		s.req.local, s.req.forge, s.trigger.Actor.ID, s.rec.Trigger.ActorID = c.local, ownForge{err: c.err}, c.id, c.id
		s.nameLocal(t.Context())
		if s.trigger.Actor.ID != c.want || s.rec.Trigger.ActorID != c.want || len(s.rec.Notes) != c.noting {
			t.Errorf("%s: actor %d, recorded %d, notes %q", c.name, s.trigger.Actor.ID, s.rec.Trigger.ActorID, s.rec.Notes)
		}
	}
}
