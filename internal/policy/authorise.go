package policy

import (
	"slices"
	"strings"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/trigger"
)

// kind refuses events that ask for nothing, so that a new kind is refused until somebody decides on it.
func kind(t trigger.Trigger) Decision {
	switch t.Kind {
	case trigger.KindLabel, trigger.KindDispatch, trigger.KindManual:
		return allowed
	case trigger.KindCheck:
		if byCheck(t) {
			return allowed
		}
	case trigger.KindReview:
		if t.Review != nil && t.Change != nil {
			return allowed
		}
	case trigger.KindComment:
		if t.Command == nil {
			break
		}
		if _, ok := t.Command.Info(); !ok {
			return refuse(ReasonCommand, "There is no such command: write `help` after the prefix to see the list.")
		}
		if _, err := t.Command.Canonical(); err != nil {
			return refuse(ReasonCommand, "The command cannot be used like that: %v.", err)
		}
		return allowed
	}
	return refuse(ReasonKind, "This event does not ask for a run.")
}

// byCheck: people's own CI asks, and nobody else beside it. No account is authorised then: the run goes on with work that was approved, where the
// base commit's configuration lets CI ask.
func byCheck(t trigger.Trigger) bool {
	return t.Check != nil && t.Change != nil && t.Command == nil && t.Review == nil && t.Asked == (trigger.Asked{})
}

// actor: our own account never, or two events answer each other for ever; another bot only by its id,
// because a login ending in [bot] can be any App's.
func actor(t trigger.Trigger, c Rules) Decision {
	a := t.Actor
	if byCheck(t) {
		return allowed
	}
	if a.Is(c.Self) {
		return refuse(ReasonSelf, "%s is the account that this run's own token speaks for, and Proctor does not act on its own labels and comments: let another person ask, or give the run the token of an account of its own (on GitHub github.token or an App's, on GitLab a project access token).", person(a))
	}
	if a.Bot && !c.Admits(a.ID) {
		return refuse(ReasonBot, "%s is a bot (account id %d): add the id to `trigger.bots` to let it ask.", person(a), a.ID)
	}
	return allowed
}

// Admits tells whether a bot of that account id may ask, as far as its being a bot goes: its role counts like a person's.
func (c Rules) Admits(bot int64) bool { return bot != 0 && slices.Contains(c.Bots, bot) }

// role is the account's permission in this repository as the API says now; what the event says about
// the account (its association) is not a permission. A terminal's user has no role to look up.
func role(t trigger.Trigger, f Facts, c Rules) Decision {
	if t.Kind == trigger.KindManual || byCheck(t) {
		return allowed
	}
	if f.Role == "" {
		return refuse(ReasonUnknownRole, "The forge did not say what %s may do here, and no answer means no: ask again, or check that the token may read collaborators.", person(t.Actor))
	}
	if f.Role == forge.RoleNone || !slices.Contains(c.Roles, f.Role) {
		return refuse(ReasonRole, "%s has the role %s here and a run needs %s: somebody with that role has to ask.", person(t.Actor), knownRole(f.Role), roleList(c.Roles))
	}
	return allowed
}

func knownRole(r forge.Role) forge.Role {
	switch r {
	case forge.RoleRead, forge.RoleTriage, forge.RoleWrite, forge.RoleMaintain, forge.RoleAdmin:
		return r
	}
	return forge.RoleNone
}

func roleList(rs []forge.Role) string {
	if len(rs) == 0 {
		return "a role in `trigger.roles`, which is empty"
	}
	words := make([]string, len(rs))
	for i, r := range rs {
		words[i] = string(r)
	}
	return strings.Join(words, ", ")
}

// subject: what the request is about must be able to take a run.
func subject(t trigger.Trigger, i forge.Issue, archived bool, c Rules) Decision {
	switch {
	case archived:
		return refuse(ReasonArchived, "The repository is archived, so nothing could be pushed: unarchive it first.")
	case i.IsPull && t.Change == nil:
		return refuse(ReasonPull, "This is a pull request, and the label `%s` works on issues: open an issue, or use a command on a pull request of Proctor's.", c.label())
	case t.Change != nil && t.Change.FromFork:
		return refuse(ReasonFork, "The change comes from a fork, and runs with secrets never work on forks: push the branch to this repository.")
	case i.Confidential && !c.AllowConfidential:
		return refuse(ReasonConfidential, "The issue is confidential and a run would make it public: describe the work in an open issue.")
	case !asks(t):
		return allowed
	case i.State != "" && i.State != "open":
		return refuse(ReasonClosed, "It is closed: reopen it and ask again.")
	case i.Locked && t.Forge != trigger.GitLab && !c.AllowLocked:
		// GitLab's lock only keeps outsiders from commenting, which members' requests need not care about.
		return refuse(ReasonLocked, "The conversation is locked: unlock it and ask again.")
	}
	return allowed
}

// asks reports whether the request has an agent or a reviewer work, rather than read or steer.
func asks(t trigger.Trigger) bool {
	if t.Command == nil {
		return true
	}
	info, ok := t.Command.Info()
	return !ok || info.Asks()
}

// starts reports whether the request makes the agent work, so that a pull request may come of it.
func starts(t trigger.Trigger) bool {
	if t.Command == nil {
		return true
	}
	info, ok := t.Command.Info()
	return !ok || info.Starts
}

// label: where a label asked, it must still be there, and the newest label event must be the asker's.
// A late delivery of an earlier event is stale: the newer event has its own delivery.
func label(t trigger.Trigger, f Facts, c Rules) Decision {
	byLabel := t.Kind == trigger.KindLabel || t.Kind == trigger.KindDispatch && t.Asked.ID != 0
	if !byLabel {
		return allowed
	}
	if f.Issue != nil && !carries(f.Issue.Labels, c.label(), f.Started) {
		return refuse(ReasonLabelGone, "The label `%s` was taken off before the run began: add it again to ask again.", c.label())
	}
	if f.LabelEvent == nil {
		return allowed
	}
	if t.Asked.ID != 0 && t.Asked.ID != f.LabelEvent.ID {
		return refuse(ReasonStale, "The label was added again since: the newer request counts.")
	}
	by := f.LabelEvent.Actor
	if !t.Actor.Is(trigger.Actor{Login: by.Login, ID: by.ID}) {
		return refuse(ReasonStale, "The label was last added by somebody else: that request counts.")
	}
	return allowed
}

func carries(labels []string, trig string, started bool) bool {
	states := Labels{Trigger: trig}
	return slices.ContainsFunc(labels, func(l string) bool {
		return strings.EqualFold(l, trig) || started && states.owns(l)
	})
}

// approval: what runs is what the asker saw. A later edit, by whoever, needs a new request.
func approval(t trigger.Trigger, f Facts, c Rules) Decision {
	want := t.Approved()
	if want == "" || f.Issue == nil || !asks(t) {
		return allowed
	}
	if trigger.SnapshotOf(f.Issue.Title, f.Issue.Body) != want {
		return refuse(ReasonEdited, "The title or the description was edited after the request: read it again, then take the label `%s` off and add it again.", c.label())
	}
	return allowed
}

// room bounds open work; only a fresh start takes room.
func room(t trigger.Trigger, f Facts, c Rules) Decision {
	if c.MaxOpen <= 0 || t.Change != nil || !starts(t) || f.OpenPulls < c.MaxOpen {
		return allowed
	}
	return refuse(ReasonMaxOpen, "There are %d open pull requests of Proctor's and `trigger.max_open` is %d: close or merge one.", f.OpenPulls, c.MaxOpen)
}
