package app

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/policy"
	"github.com/proctor-ci/proctor/internal/prompt"
	"github.com/proctor-ci/proctor/internal/publish"
)

// Bounds of who is heard in a discussion. Anybody can take part in one, so those who may not write here have a bound of their own
// and take no writer's place.
const (
	maxAuthors = 10  // accounts that may write here
	maxLookups = 100 // accounts that are asked about: each costs a call
)

// writers remembers who of a discussion may write here.
type writers struct {
	self    publish.Account
	may     map[string]bool // by login
	heard   int             // of them those who may
	unasked map[string]bool // logins past the bounds
}

// word is something that an account said at a time.
type word struct {
	by forge.User
	at time.Time
}

// writers begins with the account that asked, whose role intake has read.
func (s *session) writers(ctx context.Context) (*writers, error) {
	self, err := publish.Self(ctx, s.req.forge)
	if err != nil {
		return nil, fmt.Errorf("ask who we are: %w", err)
	}
	w := &writers{self: self, may: map[string]bool{}, unasked: map[string]bool{}}
	if login := s.trigger.Actor.Login; login != "" && s.rec.Trigger.Role != "" {
		w.keep(login, mayWrite(forge.Role(s.rec.Trigger.Role)))
	}
	return w, nil
}

func (w *writers) keep(login string, may bool) {
	if w.may[login] = may; may {
		w.heard++
	}
}

func mayWrite(r forge.Role) bool { return slices.Contains(policy.DefaultRoles(), r) }

// meet asks about whoever said something, the newest first: of who is past the bounds it is the oldest words that are left out.
func (s *session) meet(ctx context.Context, known *writers, said []word) {
	slices.SortStableFunc(said, func(a, b word) int { return a.at.Compare(b.at) })
	for _, w := range slices.Backward(said) {
		s.mayWrite(ctx, known, w.by)
	}
}

// mayWrite tells whether an account is heard. Of bots only those are whose ids trigger.bots lists, as where they ask for a run; our
// own account never is, unless it is a person's too.
func (s *session) mayWrite(ctx context.Context, known *writers, u forge.User) bool {
	bots := policy.Rules{Bots: s.cfg.Trigger.Bots}
	if u.Login == "" || u.Bot && (known.self.Is(u) || !bots.Admits(u.ID)) {
		return false
	}
	if may, asked := known.may[u.Login]; asked {
		return may
	}
	if known.heard == maxAuthors || len(known.may) == maxLookups {
		known.unasked[u.Login] = true
		return false
	}
	role, err := s.req.forge.Role(ctx, u.Login)
	if err != nil {
		s.note("the comments of " + prompt.Inline(u.Login, 60) + " are left out: the forge did not say what the account may do")
	}
	known.keep(u.Login, err == nil && mayWrite(role))
	return known.may[u.Login]
}

// left says that somebody was left out whose role nobody asked for, "" where nobody was.
func (w *writers) left() string {
	n := len(w.unasked)
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("what %s wrote is left out, whatever they may do here: of one discussion at most %d accounts with write access are heard, and %d are asked about",
		plural(int64(n), "further account"), maxAuthors, maxLookups)
}
