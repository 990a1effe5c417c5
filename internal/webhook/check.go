package webhook

import (
	"path"
	"strings"

	"github.com/proctor-ci/proctor/internal/trigger"
)

// Reasons for which CI that failed asks for nothing here.
const (
	reasonChecksOff = "checks_off"
	reasonOtherRun  = string(trigger.ReasonOtherRun)
)

// readCheck finds the issue of CI that failed. Whether a branch of our name is ours, the run finds out; a run of our own workflow is no CI,
// on whatever branch.
func (h *Handler) readCheck(d *delivery) (answer, bool) {
	n := h.issueOfBranch(d.t.Change.Head)
	switch {
	case n == 0 || d.t.Change.FromFork:
		return accepted(StatusIgnored, "other_branch"), true
	case h.ownWorkflow(d.t.Run):
		return accepted(StatusIgnored, reasonOtherRun), true
	case !h.cfg.Checks:
		return accepted(StatusIgnored, reasonChecksOff), true
	}
	d.t.Issue.Number = n
	return answer{}, false
}

func (h *Handler) ownWorkflow(r *trigger.RunRef) bool {
	if r == nil {
		return false
	}
	file, _, _ := strings.Cut(r.Path, "@")
	return path.Base(file) == path.Base(h.cfg.Workflow)
}
