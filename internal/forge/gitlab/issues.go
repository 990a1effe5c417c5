package gitlab

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/xanzy/go-gitlab"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/forge/wire"
	"github.com/proctor-ci/proctor/internal/trigger"
)

// Issue by iid. One that was moved to another project is ErrMoved.
func (c *Client) Issue(ctx context.Context, number int) (forge.Issue, error) {
	k := call{what: c.in("read issue " + hash(number)), missing: "check the issue number (the iid in its URL, not its id)"}
	var is *gitlab.Issue
	err := c.do(ctx, k, func(_ int, opt gitlab.RequestOptionFunc) (resp *gitlab.Response, err error) {
		is, resp, err = c.api.Issues.GetIssue(c.project, number, opt)
		return resp, err
	})
	if err != nil {
		return forge.Issue{}, err
	}
	if is.MovedToID != 0 {
		return forge.Issue{}, &forge.Error{Op: k.what, Status: http.StatusOK, Kind: forge.ErrMoved,
			Said: forge.Said(fmt.Sprintf("it was moved to the issue with id %d", is.MovedToID)), Next: "add the label to the issue in its new project"}
	}
	return issue(is), nil
}

func issue(is *gitlab.Issue) forge.Issue {
	out := forge.Issue{
		Number: is.IID, ID: int64(is.ID), Title: is.Title, Body: is.Description, State: state(is.State), Locked: is.DiscussionLocked,
		Confidential: is.Confidential, Labels: slices.Clone([]string(is.Labels)), URL: is.WebURL, UpdatedAt: at(is.UpdatedAt),
	}
	if is.Author != nil {
		out.Author = account(is.Author.ID, is.Author.Username)
	}
	return out
}

// state in GitHub's words.
func state(s string) string {
	if s == "opened" {
		return "open"
	}
	return s
}

func at(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// account knows bots by their names, as the event that asked for a run does: only the users API says "bot", and only ids are authority.
func account(id int, login string) forge.User {
	return forge.User{Login: login, ID: int64(id), Bot: trigger.GitLabBot(login)}
}

// LabelEvent is the newest addition.
func (c *Client) LabelEvent(ctx context.Context, number int, label string) (forge.LabelEvent, error) {
	k := call{what: c.in("read the label events of issue " + hash(number)), missing: "check the issue number (the iid in its URL)"}
	events, err := every(ctx, c, k, func(page gitlab.ListOptions, opt gitlab.RequestOptionFunc) ([]*gitlab.LabelEvent, *gitlab.Response, error) {
		return c.api.ResourceLabelEvents.ListIssueLabelEvents(c.project, number, &gitlab.ListLabelEventsOptions{ListOptions: page}, opt)
	})
	if err != nil {
		return forge.LabelEvent{}, err
	}
	for _, e := range slices.Backward(events) {
		if e.Action == "add" && e.Label.Name == label { // GitLab's label names do distinguish case
			return forge.LabelEvent{ID: int64(e.ID), Actor: account(e.User.ID, e.User.Username), At: at(e.CreatedAt)}, nil
		}
	}
	return forge.LabelEvent{}, &forge.Error{Op: k.what, Kind: forge.ErrNotFound,
		Said: forge.Said("the label " + label + " was never added"), Next: "add the label " + label + " to the issue"}
}

// SetLabels is one call that changes both; GitLab creates what is missing.
func (c *Client) SetLabels(ctx context.Context, number int, add, remove []string) error {
	if len(add)+len(remove) == 0 {
		return nil
	}
	k := call{what: c.in("change the labels of issue " + hash(number)), missing: "check the issue number (the iid in its URL)"}
	o := &gitlab.UpdateIssueOptions{AddLabels: labels(add), RemoveLabels: labels(remove)}
	return c.do(ctx, k, func(_ int, opt gitlab.RequestOptionFunc) (*gitlab.Response, error) {
		_, resp, err := c.api.Issues.UpdateIssue(c.project, number, o, opt)
		return resp, err
	})
}

func labels(names []string) *gitlab.LabelOptions {
	if len(names) == 0 {
		return nil
	}
	l := gitlab.LabelOptions(names)
	return &l
}

// Comments of an issue, oldest first, without the system's own notes ("changed the description").
func (c *Client) Comments(ctx context.Context, number int) ([]forge.Comment, error) {
	k := call{what: c.in("read the comments of " + hash(number)), missing: "check the issue number (the iid in its URL)"}
	notes, err := c.notes(ctx, k, number)
	if err != nil {
		return nil, err
	}
	var out []forge.Comment
	for _, n := range notes {
		if !n.System {
			out = append(out, c.comment(number, n))
		}
	}
	return out, nil
}

func (c *Client) notes(ctx context.Context, k call, number int) ([]*gitlab.Note, error) {
	return every(ctx, c, k, func(page gitlab.ListOptions, opt gitlab.RequestOptionFunc) ([]*gitlab.Note, *gitlab.Response, error) {
		return c.api.Notes.ListIssueNotes(c.project, number, &gitlab.ListIssueNotesOptions{
			ListOptions: page, OrderBy: gitlab.Ptr("created_at"), Sort: gitlab.Ptr("asc")}, opt)
	})
}

func (c *Client) comment(number int, n *gitlab.Note) forge.Comment {
	return forge.Comment{ID: int64(n.ID), Body: n.Body, Author: account(n.Author.ID, n.Author.Username), CreatedAt: at(n.CreatedAt),
		URL: fmt.Sprintf("%s/-/issues/%d#note_%d", c.web(), number, n.ID)}
}

// clockSkew allowed between the forge and us when looking for a note of our own.
const clockSkew = 2 * time.Minute

// CreateComment writes one note. After a lost answer it looks for its own words among the newest notes.
func (c *Client) CreateComment(ctx context.Context, number int, body string) (forge.Comment, error) {
	k := call{what: c.in("comment on " + hash(number)), missing: "check the issue number (the iid in its URL)"}
	if err := fits(k, "note", body, maxNote); err != nil {
		return forge.Comment{}, err
	}
	started := c.now().Add(-clockSkew)
	var n *gitlab.Note
	err := c.do(ctx, k, func(attempt int, opt gitlab.RequestOptionFunc) (resp *gitlab.Response, err error) {
		if attempt > 0 {
			if n, resp, err = c.newestNote(number, body, started, opt); n != nil || err != nil {
				return resp, err
			}
		}
		n, resp, err = c.api.Notes.CreateIssueNote(c.project, number, &gitlab.CreateIssueNoteOptions{Body: &body}, opt)
		return resp, err
	})
	if err != nil {
		return forge.Comment{}, err
	}
	return c.comment(number, n), nil
}

// newestNote looks at the newest page only: a note of a moment ago is there.
func (c *Client) newestNote(number int, body string, since time.Time, opt gitlab.RequestOptionFunc) (*gitlab.Note, *gitlab.Response, error) {
	notes, resp, err := c.api.Notes.ListIssueNotes(c.project, number, &gitlab.ListIssueNotesOptions{
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

// UpdateComment edits in place.
func (c *Client) UpdateComment(ctx context.Context, number int, id int64, body string) error {
	k := call{what: c.in("edit a comment on " + hash(number)), missing: "the comment was deleted; a new one is needed"}
	if err := fits(k, "note", body, maxNote); err != nil {
		return err
	}
	return c.do(ctx, k, func(_ int, opt gitlab.RequestOptionFunc) (*gitlab.Response, error) {
		_, resp, err := c.api.Notes.UpdateIssueNote(c.project, number, int(id), &gitlab.UpdateIssueNoteOptions{Body: &body}, opt)
		return resp, err
	})
}

// React awards an emoji; a repeated one is refused by the forge with 404 or 400 and counts as done.
func (c *Client) React(ctx context.Context, number int, commentID int64, r forge.Reaction) error {
	k := call{what: c.in("react to a comment on " + hash(number)), missing: "the comment was deleted"}
	o := &gitlab.CreateAwardEmojiOptions{Name: string(r)}
	return c.do(ctx, k, func(_ int, opt gitlab.RequestOptionFunc) (resp *gitlab.Response, err error) {
		if commentID == 0 {
			_, resp, err = c.api.AwardEmoji.CreateIssueAwardEmoji(c.project, number, o, opt)
		} else {
			_, resp, err = c.api.AwardEmoji.CreateIssuesAwardEmojiOnNote(c.project, number, int(commentID), o, opt)
		}
		if err != nil && resp != nil && strings.Contains(wire.ErrorText(resp.Response), "has already been taken") {
			return resp, nil
		}
		return resp, err
	})
}

// Assign people to a merge request.
func (c *Client) Assign(ctx context.Context, number int, logins []string) error {
	k := call{what: c.in("assign " + strings.Join(logins, ", ") + " to " + hash(number)), missing: "check the number"}
	ids, err := c.ids(ctx, k, logins)
	if err != nil {
		return err
	}
	return c.do(ctx, k, func(_ int, opt gitlab.RequestOptionFunc) (*gitlab.Response, error) {
		_, resp, err := c.api.MergeRequests.UpdateMergeRequest(c.project, number, &gitlab.UpdateMergeRequestOptions{AssigneeIDs: &ids}, opt)
		return resp, err
	})
}

func fits(k call, what, body string, limit int) error {
	if n := utf8.RuneCountInString(body); n > limit {
		return &forge.Error{Op: k.what, Kind: forge.ErrTooLarge, Said: fmt.Sprintf("the %s has %d characters, %d are allowed", what, n, limit),
			Next: "shorten it and point at the full report"}
	}
	return nil
}

func hash(number int) string { return "#" + strconv.Itoa(number) }
