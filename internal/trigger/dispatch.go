package trigger

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/proctor-ci/proctor/internal/pattern"
)

// Names of the inputs of a dispatched run: workflow_dispatch inputs on GitHub, pipeline variables
// (upper case, PROCTOR_ in front) on GitLab. They carry ids and hashes, never text of a person. Older forges take ten
// inputs at the most and people need seven of them, so the rest travels in one, as a query string.
const (
	InputIssue    = "issue"      // issue number or iid
	InputID       = "proctor_id" // correlation id; the workflow prints it in its run-name
	InputRequest  = "request"    // the members below, by name; each may also be an input of its own
	InputChange   = "change"     // pull request number or iid, for a command on one
	InputEvent    = "event"      // label event: "ID@RFC3339"
	InputDelivery = "delivery"   // delivery id, for the record only
	InputSnapshot = "snapshot"   // Issue.Snapshot of what was approved
	InputCommand  = "command"    // Command.Canonical
	InputComment  = "comment"    // comment id of the command
	InputReview   = "review"     // id of the review that asks for changes, with a change; on GitLab REVIEWER@TIME
	InputCheck    = "check"      // CI that failed, "ID@COMMIT", with the branch
	InputBranch   = "branch"     // the branch that a check failed on: one of ours, by its name
	InputActor    = "actor"      // "ID:login"
)

// ErrNoIssue is a dispatch that names no issue.
var ErrNoIssue = errors.New(`input "issue" is missing: give the number of the issue to work on, for example 12`)

var (
	idForm       = pattern.Of(`\bproctor-[0-9a-f]{20}\b`)
	snapshotForm = pattern.Of(`^[0-9a-f]{64}$`)
	loginForm    = pattern.Of(`^[A-Za-z0-9_.\-]{1,100}(\[bot\])?$`)
	deliveryForm = pattern.Of(`^[A-Za-z0-9_\-]{1,64}$`)
)

// NewID is the correlation id of the run that key asks for. The same key gives the same id, so
// that a second dispatch of one label event can be recognised by whoever meets it.
func NewID(key string) string {
	sum := sha256.Sum256([]byte(key))
	return "proctor-" + hex.EncodeToString(sum[:])[:20]
}

// FindID finds a correlation id in a run's name.
func FindID(s string) (string, bool) {
	id := idForm.FindString(s)
	return id, id != ""
}

// CleanDelivery gives a delivery id that may be logged and passed on, or "" when a header held
// anything but a plain id: the header is not signed.
func CleanDelivery(s string) string {
	if !deliveryForm.MatchString(s) {
		return ""
	}
	return s
}

// Inputs are what a webhook passes to the run that t asks for. Together they stay below 1 kB.
func (t Trigger) Inputs() (map[string]string, error) {
	in := map[string]string{}
	put := func(key, value string) {
		if value != "" {
			in[key] = value
		}
	}
	if t.Change != nil && t.Change.Number > 0 {
		put(InputChange, strconv.Itoa(t.Change.Number))
	}
	if t.Asked.ID != 0 {
		put(InputEvent, strconv.FormatInt(t.Asked.ID, 10)+"@"+t.Asked.At.UTC().Format(time.RFC3339))
	}
	put(InputDelivery, CleanDelivery(t.Delivery))
	put(InputSnapshot, t.Approved())
	if t.Command != nil {
		c, err := t.Command.Canonical()
		if err != nil {
			return nil, err
		}
		put(InputCommand, c)
		put(InputComment, strconv.FormatInt(t.Command.CommentID, 10))
	}
	if t.Review != nil {
		put(InputReview, t.Review.Key())
	}
	if t.Check != nil {
		put(InputCheck, t.Check.key())
		put(InputBranch, t.Change.Head)
	}
	if loginForm.MatchString(t.Actor.Login) {
		put(InputActor, strconv.FormatInt(t.Actor.ID, 10)+":"+t.Actor.Login)
	}
	request := url.Values{}
	for k, v := range in {
		request.Set(k, v)
	}
	return map[string]string{InputIssue: strconv.Itoa(t.Issue.Number), InputID: t.ID, InputRequest: request.Encode()}, nil
}

// Approved is the hash of what the actor approved: what a dispatch carried, else what the event held.
// It is empty where neither is known, as for a workflow_dispatch by hand.
func (t Trigger) Approved() string {
	if t.Snapshot != "" {
		return t.Snapshot
	}
	if t.Issue.Title == "" && t.Issue.Body == "" {
		return ""
	}
	return t.Issue.Snapshot()
}

// ParseDispatch reads the inputs of a dispatched run. Values are trimmed; unknown keys are left to
// the workflow's author; a known key with a bad value is an error that names it. Only "issue" is required.
func ParseDispatch(inputs map[string]string) (Trigger, error) {
	inputs, err := unpack(inputs)
	if err != nil {
		return Trigger{}, err
	}
	in := func(key string) string { return strings.TrimSpace(inputs[key]) }
	t := Trigger{Kind: KindDispatch, Event: "workflow_dispatch"}
	if in(InputIssue) == "" {
		return Trigger{}, ErrNoIssue
	}
	if t.Issue.Number, err = number(InputIssue, strings.TrimPrefix(in(InputIssue), "#")); err != nil {
		return Trigger{}, err
	}
	if v := in(InputChange); v != "" {
		n, err := number(InputChange, v)
		if err != nil {
			return Trigger{}, err
		}
		t.Change = &ChangeRef{Number: n}
	}
	if v := in(InputReview); v != "" {
		if t.Review, err = parseReview(v, t.Change); err != nil {
			return Trigger{}, err
		}
	}
	if v := in(InputEvent); v != "" {
		if t.Asked, err = parseAsked(v); err != nil {
			return Trigger{}, err
		}
	}
	if t.Snapshot = in(InputSnapshot); t.Snapshot != "" && !snapshotForm.MatchString(t.Snapshot) {
		return Trigger{}, badInput(InputSnapshot, t.Snapshot, "64 lower-case hex digits")
	}
	if t.ID = in(InputID); t.ID != "" && idForm.FindString(t.ID) != t.ID {
		return Trigger{}, badInput(InputID, t.ID, `"proctor-" and 20 hex digits`)
	}
	t.Delivery = CleanDelivery(in(InputDelivery))
	if t.Actor, err = parseActor(in(InputActor)); err != nil {
		return Trigger{}, err
	}
	if t.Command, err = parseCommandInput(in(InputCommand), in(InputComment)); err != nil {
		return t, err
	}
	if v := in(InputCheck); v != "" {
		alone := t.Command == nil && t.Change == nil && t.Asked == (Asked{}) && t.Snapshot == ""
		t.Check, t.Change, err = parseCheck(v, in(InputBranch), alone)
		t.Actor = Actor{}
	}
	return t, err
}

// maxRequest is more than Inputs ever writes.
const maxRequest = 4 << 10

// unpack adds the members of the request input to the others. An input of its own wins.
func unpack(inputs map[string]string) (map[string]string, error) {
	packed := strings.TrimSpace(inputs[InputRequest])
	if packed == "" {
		return inputs, nil
	}
	members, err := url.ParseQuery(packed)
	if err != nil || len(packed) > maxRequest {
		return nil, badInput(InputRequest, packed, "what the webhook writes (name=value&…), or nothing")
	}
	all := map[string]string{}
	for k := range members {
		all[k] = members.Get(k)
	}
	for k, v := range inputs {
		if strings.TrimSpace(v) != "" {
			all[k] = v
		}
	}
	return all, nil
}

func parseCommandInput(command, comment string) (*Command, error) {
	if command == "" {
		return nil, nil
	}
	c := parseFields(strings.Fields(command))
	if _, err := c.Canonical(); err != nil {
		return nil, fmt.Errorf("input %q: %w", InputCommand, err)
	}
	if comment != "" {
		id, err := strconv.ParseInt(comment, 10, 64)
		if err != nil || id < 0 {
			return nil, badInput(InputComment, comment, "a comment id")
		}
		c.CommentID = id
	}
	return &c, nil
}

func parseReview(v string, of *ChangeRef) (*ReviewRef, error) {
	const form = "a review id, or REVIEWER@TIME"
	id, at, timed := strings.Cut(v, "@")
	n, err := strconv.ParseInt(id, 10, 64)
	switch {
	case err != nil || n <= 0:
		return nil, badInput(InputReview, v, form)
	case of == nil:
		return nil, fmt.Errorf("input %q names a review and no pull request: give %q too", InputReview, InputChange)
	}
	r := &ReviewRef{ID: n}
	if timed {
		if r.At, err = time.Parse(time.RFC3339, at); err != nil {
			return nil, badInput(InputReview, v, form)
		}
	}
	return r, nil
}

func parseAsked(v string) (Asked, error) {
	id, at, _ := strings.Cut(v, "@")
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil || n <= 0 {
		return Asked{}, badInput(InputEvent, v, "ID@TIME, for example 123@2026-01-02T15:04:05Z")
	}
	when, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return Asked{}, badInput(InputEvent, v, "ID@TIME, for example 123@2026-01-02T15:04:05Z")
	}
	return Asked{ID: n, At: when}, nil
}

func parseActor(v string) (Actor, error) {
	if v == "" {
		return Actor{}, nil
	}
	id, login, _ := strings.Cut(v, ":")
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil || n < 0 || !loginForm.MatchString(login) {
		return Actor{}, badInput(InputActor, v, "ID:login")
	}
	return Actor{ID: n, Login: login, Bot: strings.HasSuffix(login, "[bot]") || GitLabBot(login)}, nil
}

func number(key, v string) (int, error) {
	n, err := strconv.Atoi(v)
	if err != nil || n <= 0 {
		return 0, badInput(key, v, "a positive whole number, for example 12")
	}
	return n, nil
}

func badInput(key, value, want string) error {
	return fmt.Errorf("input %q is %s: want %s", key, name(value), want)
}

// scalar is an input as a string: a workflow may type an input as a number or a boolean.
func scalar(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	case bool:
		return strconv.FormatBool(v), true
	}
	return "", false
}
