package gitlab

import (
	"context"
	"slices"

	"github.com/xanzy/go-gitlab"

	"github.com/proctor-ci/proctor/internal/forge"
)

var _ forge.ThreadTalker = (*Client)(nil)

// Threads are the discussions that can be resolved: on lines of the diff, and on the merge request as a whole. Single
// notes and what GitLab itself writes are none. GitLab gives no lines of the diff with them, but always all that was said, wherever the answer
// stands; it takes 5,000 comments on a merge request: https://docs.gitlab.com/administration/instance_limits/
func (c *Client) Threads(ctx context.Context, number int, _ func(forge.Comment) bool) (out forge.Newest[forge.Thread], err error) {
	k := call{what: c.in("read the threads of !" + hash(number)[1:]), missing: "check the merge request number (the iid in its URL)"}
	all, err := every(ctx, c, k, func(page gitlab.ListOptions, opt gitlab.RequestOptionFunc) ([]*gitlab.Discussion, *gitlab.Response, error) {
		o := gitlab.ListMergeRequestDiscussionsOptions(page)
		return c.api.Discussions.ListMergeRequestDiscussions(c.project, number, &o, opt)
	})
	if err != nil {
		return out, err
	}
	open := 0
	for _, d := range slices.Backward(all) {
		t := c.thread(number, d)
		if len(t.Comments) == 0 {
			continue
		}
		if !t.Resolved {
			if open++; open > forge.MaxThreads {
				out.Cut = true
				break
			}
		}
		out.All = append(out.All, t)
	}
	slices.Reverse(out.All)
	return out, nil
}

func (c *Client) thread(number int, d *gitlab.Discussion) forge.Thread {
	t := forge.Thread{ID: d.ID, Resolved: true}
	for _, n := range d.Notes {
		if n.System || !n.Resolvable {
			continue
		}
		t.Resolved = t.Resolved && n.Resolved
		if p := n.Position; p != nil && t.Path == "" {
			if t.Path, t.Line = p.NewPath, p.NewLine; t.Path == "" {
				t.Path = p.OldPath
			}
		}
		t.Comments = append(t.Comments, c.noteAt(forge.Place{Number: number, Change: true}, n))
	}
	if len(t.Comments) > 0 {
		t.First = t.Comments[0].ID
		newest := max(1, len(t.Comments)-forge.MaxThreadComments)
		t.Comments, t.Cut = slices.Delete(t.Comments, 1, newest), newest > 1
	}
	return t
}

// AnswerThread adds a note to a discussion. After a lost answer it looks for its own words first.
func (c *Client) AnswerThread(ctx context.Context, number int, t forge.Thread, body string) error {
	k := call{what: c.in("answer a thread of !" + hash(number)[1:]), missing: "the thread was deleted"}
	if err := fits(k, "note", body, maxNote); err != nil {
		return err
	}
	return c.do(ctx, k, func(attempt int, opt gitlab.RequestOptionFunc) (*gitlab.Response, error) {
		if attempt > 0 {
			d, resp, err := c.api.Discussions.GetMergeRequestDiscussion(c.project, number, t.ID, opt)
			if err != nil || slices.ContainsFunc(d.Notes, func(n *gitlab.Note) bool { return n.Body == body }) {
				return resp, err
			}
		}
		_, resp, err := c.api.Discussions.AddMergeRequestDiscussionNote(c.project, number, t.ID, &gitlab.AddMergeRequestDiscussionNoteOptions{Body: &body}, opt)
		return resp, err
	})
}
