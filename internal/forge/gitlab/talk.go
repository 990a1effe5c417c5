package gitlab

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/xanzy/go-gitlab"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/forge/wire"
)

var _ forge.Talker = (*Client)(nil)

// place names an issue as "#7" and a merge request as "!7", as GitLab does.
func place(at forge.Place) string {
	if at.Change {
		return fmt.Sprintf("!%d", at.Number)
	}
	return hash(at.Number)
}

// CommentAt reads one note of an issue or a merge request.
func (c *Client) CommentAt(ctx context.Context, at forge.Place, id int64) (forge.Comment, error) {
	k := call{what: c.in("read a comment on " + place(at)), missing: "the comment was deleted; write it again if it still counts"}
	var n *gitlab.Note
	err := c.do(ctx, k, func(_ int, opt gitlab.RequestOptionFunc) (resp *gitlab.Response, err error) {
		if at.Change {
			n, resp, err = c.api.Notes.GetMergeRequestNote(c.project, at.Number, int(id), opt)
		} else {
			n, resp, err = c.api.Notes.GetIssueNote(c.project, at.Number, int(id), opt)
		}
		return resp, err
	})
	if err != nil {
		return forge.Comment{}, err
	}
	return c.noteAt(at, n), nil
}

func (c *Client) noteAt(at forge.Place, n *gitlab.Note) forge.Comment {
	out := c.comment(at.Number, n)
	if at.Change {
		out.URL = fmt.Sprintf("%s/-/merge_requests/%d#note_%d", c.web(), at.Number, n.ID)
	}
	return out
}

// Answer writes one note. After a lost answer it looks for its own words among the newest.
func (c *Client) Answer(ctx context.Context, at forge.Place, body string) (forge.Comment, error) {
	if !at.Change {
		return c.CreateComment(ctx, at.Number, body)
	}
	k := call{what: c.in("comment on " + place(at)), missing: "check the merge request number (the iid in its URL)"}
	if err := fits(k, "note", body, maxNote); err != nil {
		return forge.Comment{}, err
	}
	started := c.now().Add(-clockSkew)
	var n *gitlab.Note
	err := c.do(ctx, k, func(attempt int, opt gitlab.RequestOptionFunc) (resp *gitlab.Response, err error) {
		if attempt > 0 {
			if n, resp, err = c.newestMergeNote(at.Number, body, started, opt); n != nil || err != nil {
				return resp, err
			}
		}
		n, resp, err = c.api.Notes.CreateMergeRequestNote(c.project, at.Number, &gitlab.CreateMergeRequestNoteOptions{Body: &body}, opt)
		return resp, err
	})
	if err != nil {
		return forge.Comment{}, err
	}
	return c.noteAt(at, n), nil
}

func (c *Client) newestMergeNote(number int, body string, since time.Time, opt gitlab.RequestOptionFunc) (*gitlab.Note, *gitlab.Response, error) {
	notes, resp, err := c.api.Notes.ListMergeRequestNotes(c.project, number, &gitlab.ListMergeRequestNotesOptions{
		ListOptions: gitlab.ListOptions{Page: 1, PerPage: perPage}, OrderBy: gitlab.Ptr("created_at"), Sort: gitlab.Ptr("desc")}, opt)
	if err != nil {
		return nil, resp, err
	}
	for _, n := range notes {
		if n.Body == body && !at(n.CreatedAt).Before(since) {
			return n, resp, nil
		}
	}
	return nil, resp, nil
}

// Acknowledge awards an emoji to a note; a repeated one counts as done.
func (c *Client) Acknowledge(ctx context.Context, at forge.Place, id int64, r forge.Reaction) error {
	if !at.Change {
		return c.React(ctx, at.Number, id, r)
	}
	k := call{what: c.in("react to a comment on " + place(at)), missing: "the comment was deleted"}
	o := &gitlab.CreateAwardEmojiOptions{Name: string(r)}
	return c.do(ctx, k, func(_ int, opt gitlab.RequestOptionFunc) (*gitlab.Response, error) {
		_, resp, err := c.api.AwardEmoji.CreateMergeRequestAwardEmojiOnNote(c.project, at.Number, int(id), o, opt)
		if err != nil && resp != nil && strings.Contains(wire.ErrorText(resp.Response), "has already been taken") {
			return resp, nil
		}
		return resp, err
	})
}
