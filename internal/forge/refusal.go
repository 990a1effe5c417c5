package forge

import "strings"

// Refusal is one known way in which a forge says no, and what a person can click. Tables of them are
// searched in order, so the particular stand before the general.
type Refusal struct {
	Status int    // HTTP status; 0 for any
	Says   string // words of the answer, lower case
	Kind   error
	Next   string // what to do; the client fills in {names in braces}
}

// FindRefusal is the first entry that fits an answer. said may be in any case.
func FindRefusal(known []Refusal, status int, said string) (Refusal, bool) {
	said = strings.ToLower(said)
	for _, r := range known {
		if (r.Status == 0 || r.Status == status) && strings.Contains(said, r.Says) {
			return r, true
		}
	}
	return Refusal{}, false
}

const humanPushed = "somebody pushed to the branch meanwhile: their commits were kept; add the label again to build on them"

// gitRefusals are git's own words, which are the same whatever forge it talks to. Source: git's
// send-pack.c, remote-curl.c and http.c.
var gitRefusals = []Refusal{
	{Says: "stale info", Kind: ErrConflict, Next: humanPushed},
	{Says: "fetch first", Kind: ErrConflict, Next: humanPushed},
	{Says: "non-fast-forward", Kind: ErrConflict, Next: humanPushed},
	{Says: "shallow update not allowed", Kind: ErrConflict, Next: "the branch that the run began on was rewritten meanwhile, and the forge has its base commit no more: add the label again to begin on the new one"},
	{Says: "cannot lock ref", Kind: ErrConflict, Next: "a branch whose name is a folder of this one exists: delete it or change `publish.branch`"},
	{Says: "returned error: 413", Kind: ErrTooLarge, Next: "take the large file out of the change, or use Git LFS"},
	{Says: "returned error: 30", Kind: ErrMoved, Next: "the repository was moved or renamed: configure where it is now; the token was not sent on"},
	{Says: "unable to update url base from redirection", Kind: ErrMoved, Next: "the repository was moved or renamed: configure where it is now; the token was not sent on"},
	{Says: "could not resolve", Kind: ErrUnavailable, Next: "the forge could not be reached: check the runner's network, then add the label again"},
	{Says: "failed to connect", Kind: ErrUnavailable, Next: "the forge could not be reached: check the runner's network, then add the label again"},
	{Says: "connection refused", Kind: ErrUnavailable, Next: "the forge could not be reached: check the runner's network, then add the label again"},
	{Says: "timed out", Kind: ErrUnavailable, Next: "the forge could not be reached: check the runner's network, then add the label again"},
	{Says: "returned error: 5", Kind: ErrUnavailable, Next: "see the forge's status page, then add the label again"},
	{Says: "early eof", Kind: ErrUnavailable, Next: "the connection broke: add the label again"},
	{Says: "hung up unexpectedly", Kind: ErrUnavailable, Next: "the connection broke: add the label again"},
	{Says: "hook declined", Kind: ErrForbidden, Next: "a hook of the server refused the push, in its own words: ask whoever keeps that hook"},
	{Says: "unable to access", Kind: ErrUnavailable, Next: "the forge could not be reached: check the runner's network, then add the label again"},
}

// ExplainPush is what every client's PushExplainer does: the forge's own words first, then git's. fill
// puts names into the next step. An output that nobody knows is ErrInvalid with the line of it that a
// person could use.
func ExplainPush(op, output string, own []Refusal, fill func(string) string) *Error {
	e := &Error{Op: op, Said: Said(TellingLine(output)), Kind: ErrInvalid, Next: "read what git said; the commit is kept on the run's own ref"}
	for _, known := range [][]Refusal{own, gitRefusals} {
		if r, ok := FindRefusal(known, 0, output); ok {
			e.Kind, e.Next = r.Kind, fill(r.Next)
			return e
		}
	}
	return e
}
