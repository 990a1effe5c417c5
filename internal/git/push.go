package git

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// RefUpdate is one compare-and-swap of a ref on the remote.
type RefUpdate struct {
	Name   string // full name
	New    ID
	Expect ID // what the remote must have now; empty: the ref must not exist
}

// Push writes refs in one atomic step, each only if the remote still has what Expect says. By its own
// check, whatever the caller asks, it writes the run's branch and refs/proctor/** only, deletes
// nothing, and moves the branch over nothing but commits of ours. Works from a shallow store. A ref
// that is at New already is a success, so a push whose answer was lost can be repeated. Failures are
// *RemoteError; its Ref names the update that was refused when the remote told.
func (s *Store) Push(ctx context.Context, remote Remote, updates []RefUpdate) error {
	e, err := remote.endpoint()
	if err != nil || len(updates) == 0 {
		return err
	}
	report, err := s.pushTo(ctx, remote, e, updates, len(updates) > 1)
	if err != nil {
		return classifyPush(remote, updates, report, err, e)
	}
	return nil
}

// PushEach is Push where every update stands for itself: what is refused of one does not hold back another. It is one exchange with the
// remote. The errors are in the order of the updates, nil where the ref is at New.
func (s *Store) PushEach(ctx context.Context, remote Remote, updates ...RefUpdate) []error {
	errs := make([]error, len(updates))
	e, err := remote.endpoint()
	report := ""
	if err == nil {
		report, err = s.pushTo(ctx, remote, e, updates, false)
	}
	for i, u := range updates {
		if line := reportOf(report, u.Name); err != nil && (line == "" || line[0] == '!') {
			errs[i] = classifyPush(remote, updates[i:i+1], line, err, e)
		}
	}
	return errs
}

// reportOf is the line of git push's report that tells of ref, "" where there is none: "FLAG\tFROM:TO\tSUMMARY".
func reportOf(report, ref string) string {
	for line := range strings.Lines(report) {
		fields := strings.Split(line, "\t")
		if len(fields) < 3 {
			continue
		}
		if _, to, _ := strings.Cut(fields[1], ":"); to == ref {
			return line
		}
	}
	return ""
}

func (s *Store) pushTo(ctx context.Context, remote Remote, e endpoint, updates []RefUpdate, atomic bool) (report string, err error) {
	args := []string{"push", "--porcelain", "--no-verify", "--no-signed", "--no-follow-tags", "--recurse-submodules=no"}
	if atomic {
		args = append(args, "--atomic")
	}
	specs := []string{"--", e.url}
	for _, u := range updates {
		if err := s.mayPush(ctx, remote, u); err != nil {
			return "", err
		}
		args = append(args, "--force-with-lease="+u.Name+":"+string(u.Expect))
		specs = append(specs, string(u.New)+":"+u.Name)
	}
	c := s.remote(e, append(args, specs...)...)
	out := &tail{limit: 64 << 10}
	c.stdout = out
	err = s.git.run(ctx, c)
	return out.String(), err
}

// refuse is a push that never left.
func refuse(ref, said, next string) error {
	return &RemoteError{Op: "push", Kind: Refused, Ref: ref, Said: said, Next: next}
}

func (s *Store) mayPush(ctx context.Context, remote Remote, u RefUpdate) error {
	if err := checkRefName(u.Name); err != nil {
		return refuse(u.Name, err.Error(), "give the run another branch name")
	}
	if s.checkID(u.New) != nil || u.New == s.fmt.zero() {
		return refuse(u.Name, fmt.Sprintf("%q is no commit id: refs are never deleted", u.New), "push a full commit id")
	}
	if u.Expect != "" && s.checkID(u.Expect) != nil {
		return refuse(u.Name, fmt.Sprintf("%q is no commit id", u.Expect), "expect a full commit id, or none")
	}
	if strings.HasPrefix(u.Name, "refs/proctor/") {
		return nil
	}
	branch, isBranch := strings.CutPrefix(u.Name, "refs/heads/")
	switch {
	case !isBranch:
		return refuse(u.Name, "only the run's branch and refs/proctor/** are ever pushed", "push to refs/heads/"+remote.Branch)
	case remote.Branch == "" || remote.DefaultBranch == "":
		return refuse(u.Name, "the run's branch and the default branch are not both known", "set both on the remote")
	case strings.EqualFold(branch, remote.DefaultBranch):
		return refuse(u.Name, "it is the default branch", "set publish.branch to another name")
	case branch != remote.Branch:
		return refuse(u.Name, "the run's branch is "+remote.Branch, "push to that branch")
	}
	if u.Expect == "" || u.Expect == s.fmt.zero() {
		return nil
	}
	return s.mayReplace(ctx, u)
}

// Replaceable says before a run what Push says after it: nil where a branch that is at tip may be moved to commits that are put on
// onto. A *RemoteError of kind Refused names what would be lost.
func (s *Store) Replaceable(ctx context.Context, branch string, tip, onto ID) error {
	return s.mayReplace(ctx, RefUpdate{Name: "refs/heads/" + branch, New: onto, Expect: tip})
}

// maxWalk bounds the search through history.
const maxWalk = 10_000

// mayReplace allows a fast-forward, and a rewrite of commits that are all ours: from the commit there
// now, down to the base its run started from.
func (s *Store) mayReplace(ctx context.Context, u RefUpdate) error {
	kept, err := s.reachable(ctx, u.New)
	if err != nil {
		return fmt.Errorf("push %s: %w", u.Name, err)
	}
	queue, seen := []ID{u.Expect}, map[ID]bool{}
	stop := map[ID]bool{s.base: true}
	for len(queue) > 0 {
		id := queue[0]
		queue = queue[1:]
		if kept[id] || stop[id] || seen[id] {
			continue
		}
		seen[id] = true
		commit, err := s.ReadCommit(ctx, id)
		var missing *MissingObjectError
		switch {
		case errors.As(err, &missing):
			return refuse(u.Name, fmt.Sprintf("commit %s, which is there now, is not known here", id), "fetch the branch and start from its tip")
		case err != nil:
			return fmt.Errorf("push %s: %w", u.Name, err)
		case !s.ours(commit):
			if merged, err := s.Contains(ctx, s.base, id); err != nil {
				return fmt.Errorf("push %s: %w", u.Name, err)
			} else if merged {
				continue // the base keeps it, and all below it
			}
			return refuse(u.Name, fmt.Sprintf("commit %s by %s would be lost", id, oneLine(commit.Committer, 100)),
				"start from the branch's tip, or use another branch")
		case len(seen) > maxWalk:
			return refuse(u.Name, "its history is too long to check", "use another branch")
		}
		if base := ID(commit.Trailer(TrailerBase)); base != "" {
			stop[base] = true
		}
		queue = append(queue, commit.Parents...)
	}
	return nil
}

// reachable is the set of commits from id down to the base.
func (s *Store) reachable(ctx context.Context, id ID) (map[ID]bool, error) {
	seen := map[ID]bool{}
	queue := []ID{id}
	for len(queue) > 0 && len(seen) < maxWalk {
		id, queue = queue[0], queue[1:]
		if seen[id] {
			continue
		}
		seen[id] = true
		if id == s.base {
			continue
		}
		commit, err := s.ReadCommit(ctx, id)
		var missing *MissingObjectError
		if errors.As(err, &missing) && len(seen) > 1 {
			continue // the edge of a shallow clone
		}
		if err != nil {
			return nil, err
		}
		queue = append(queue, commit.Parents...)
	}
	return seen, nil
}
