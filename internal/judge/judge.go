// Package judge owns the review of a candidate by a model: what it is asked, and which answers count. It
// must never take silence, a malformed answer or a failure for consent, and never run anything.
package judge

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
)

// Errors that a caller decides on. Neither is a rejection: nobody said no.
var (
	// ErrUnavailable: there is no verdict. The run stops as judge_unavailable.
	ErrUnavailable = errors.New("the reviewer gave no verdict")
	// ErrUnreadable: an answer came and was none. It is retried once, and is an ErrUnavailable then.
	ErrUnreadable = errors.New("the reviewer's answer is no verdict")
)

// Input is one candidate, whole: a review never sees less than the full diff over base.
type Input struct {
	Goal     string    // the visible text, as it was approved, and in a round what writers ask of the change
	Rubric   string    // review.criteria from the base commit; may be empty
	BaseTree string    // tree ids
	Tree     string    //
	Files    []File    // from [Diff]
	Previous []Verdict // earlier verdicts of this run, oldest first; what they found should be mended
}

// Category of a finding.
type Category string

// Categories. All but Style block.
const (
	Correctness   Category = "correctness"
	Security      Category = "security"
	Incomplete    Category = "incomplete"
	GamedTests    Category = "gamed-tests"
	ContractBreak Category = "contract-break"
	Style         Category = "style"
)

// Blocking says whether a finding of the category bars approval.
func (c Category) Blocking() bool { return c != Style }

// Finding is one thing the reviewer found. The text is a model's: untrusted, printable, cut to 1,000 characters.
type Finding struct {
	Category Category `json:"category"`
	Severity string   `json:"severity"` // "high", "medium" or "low"; for reading order only
	Path     string   `json:"path,omitempty"`
	Line     int      `json:"line,omitempty"`
	Detail   string   `json:"detail"`
}

// Verdict of the reviewer. The zero value is a rejection.
type Verdict struct {
	Approved bool      `json:"approved"`
	Findings []Finding `json:"findings,omitempty"`
	Model    string    `json:"model,omitempty"`
	Parts    int       `json:"parts,omitempty"` // how many parts the diff was judged in
	Calls    int       `json:"calls,omitempty"` // model calls made, retries included
}

// Request is one question. Nonce must come back in the answer; it also stands in User.
type Request struct {
	System    string `json:"system"`
	User      string `json:"user"`
	MaxTokens int    `json:"max_tokens"`
	Nonce     string `json:"nonce"`
}

// Model answers one question with the text of its answer, whole or not at all: an answer that was cut is an
// error. It does not retry.
type Model interface {
	Name() string
	Complete(ctx context.Context, r Request) (string, error)
}

// Judge asks a model. Zero limits stand for their defaults.
type Judge struct {
	Model     Model
	MaxPart   int       // bytes of diff in one question; 96 KiB
	MaxParts  int       // questions for one candidate; 12
	MaxTokens int       // of one answer; 4,096
	Rand      io.Reader // nil: crypto/rand
}

// Review judges one candidate. Every part of the diff must be approved. The error is an ErrUnavailable when there
// is no verdict, or the context's own. The caller keeps the verdict per tree: see [Ledger].
func (j Judge) Review(ctx context.Context, in Input) (Verdict, error) {
	j = j.withDefaults()
	parts, err := split(in.Files, j.MaxPart)
	if err != nil {
		return Verdict{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if len(parts) > j.MaxParts {
		return Verdict{}, fmt.Errorf("%w: the diff needs %d questions of %d bytes and the limit is %d; split the issue, or keep generated files out of the change",
			ErrUnavailable, len(parts), j.MaxPart, j.MaxParts)
	}
	out := Verdict{Approved: true, Model: j.Model.Name(), Parts: len(parts)}
	for i := range parts {
		v, calls, err := j.part(ctx, in, parts, i)
		out.Calls += calls
		if err != nil {
			return Verdict{Model: out.Model, Parts: out.Parts, Calls: out.Calls}, err
		}
		out.Approved = out.Approved && v.Approved
		out.Findings = append(out.Findings, v.Findings...)
	}
	return out, nil
}

// part asks about one part, and once more with a fresh nonce when the answer cannot be read.
func (j Judge) part(ctx context.Context, in Input, parts []part, i int) (Verdict, int, error) {
	var unreadable error
	for attempt := 1; attempt <= 2; attempt++ {
		req, err := j.ask(in, parts, i, unreadable)
		if err != nil {
			return Verdict{}, attempt - 1, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		text, err := j.Model.Complete(ctx, req)
		if cause := context.Cause(ctx); cause != nil {
			return Verdict{}, attempt, cause
		}
		if err == nil {
			var v Verdict
			if v, err = parse(text, req.Nonce); err == nil {
				return v, attempt, nil
			}
		}
		if !errors.Is(err, ErrUnreadable) {
			return Verdict{}, attempt, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		unreadable = err
	}
	return Verdict{}, 2, fmt.Errorf("%w: two answers in a row were none: %w", ErrUnavailable, unreadable)
}

func (j Judge) withDefaults() Judge {
	if j.MaxPart == 0 {
		j.MaxPart = 96 << 10
	}
	if j.MaxParts == 0 {
		j.MaxParts = 12
	}
	if j.MaxTokens == 0 {
		j.MaxTokens = 4096
	}
	if j.Rand == nil {
		j.Rand = rand.Reader
	}
	return j
}
