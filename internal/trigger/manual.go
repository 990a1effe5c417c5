package trigger

import (
	"errors"
	"strings"
)

// FromIssue is a run that a person at a terminal asks for, on an issue of repo.
func FromIssue(f Forge, repo Repo, issue int, actor Actor) (Trigger, error) {
	if issue <= 0 {
		return Trigger{}, errors.New("--issue wants a positive number, for example --issue 12")
	}
	return Trigger{Forge: f, Kind: KindManual, Event: "manual", Repo: repo, Issue: Issue{Number: issue}, Actor: actor}, nil
}

// FromGoal is a run with a free text goal and no issue.
func FromGoal(goal string, actor Actor) (Trigger, error) {
	if strings.TrimSpace(goal) == "" {
		return Trigger{}, errors.New(`--goal is empty: say what should be true at the end, for example --goal "round totals half up"`)
	}
	return Trigger{Forge: Local, Kind: KindManual, Event: "manual", Goal: goal, Actor: actor}, nil
}
