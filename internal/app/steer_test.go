package app

import (
	"testing"

	"github.com/proctor-ci/proctor/internal/loop"
	"github.com/proctor-ci/proctor/internal/trigger"
)

// INV-41: whoever asks on a pull request has not read the issue. Its text counts only where a checkpoint knows it as approved.
func TestWhatIsAskedOnAPullRequestWorksOnTheApprovedTextOnly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		version int
		goal    string
		change  *trigger.ChangeRef
		refused bool
	}{
		{"approved", loop.StateVersion, "text", &trigger.ChangeRef{Number: 2}, false},
		{"edited", loop.StateVersion, "another text", &trigger.ChangeRef{Number: 2}, true},
		{"no checkpoint, or one that is not trusted", 0, "", &trigger.ChangeRef{Number: 2}, true},
		{"control: on the issue itself, by an approval of its own", 0, "", nil, false},
	} {
		s := &session{}
		s.trigger.Change, s.trigger.Issue.Number, s.rec.Trigger.Snapshot = c.change, 1, "text"
		s.saved.State.Version, s.saved.Goal = c.version, c.goal
		if err := s.steer(t.Context()); (err != nil) != c.refused {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
