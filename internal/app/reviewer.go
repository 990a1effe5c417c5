package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/judge"
	"github.com/proctor-ci/proctor/internal/loop"
	"github.com/proctor-ci/proctor/internal/meter"
	"github.com/proctor-ci/proctor/internal/pattern"
	"github.com/proctor-ci/proctor/internal/prompt"
	"github.com/proctor-ci/proctor/internal/sandbox"
)

// reviewTimeout bounds one question to the reviewer.
const reviewTimeout = 5 * time.Minute

// judgesByModel says whether the reviewer is a model: the maintainer's own command needs no key.
func (s *session) judgesByModel() bool {
	return s.cfg.Review.Enabled && len(s.cfg.Review.Command.Argv) == 0
}

// chooseReviewer makes the judge, and refuses a model without a price before anything is paid.
func (s *session) chooseReviewer() error {
	switch {
	case !s.cfg.Review.Enabled:
		return nil
	case !s.judgesByModel():
		s.judge = &judge.Judge{Model: judge.Command{Argv: s.cfg.Review.Command.Argv, Run: s.runReviewer}, Rand: s.env.Random}
		return nil
	}
	if err := s.priced(s.cfg.Review.Model); err != nil {
		return usage(fmt.Errorf("review.model: %w", err))
	}
	if s.meter.Meter == nil {
		return nil // a rehearsal asks nobody
	}
	at := s.meter.ReviewEndpoint()
	e := judge.Endpoint{Client: &http.Client{Timeout: reviewTimeout}, BaseURL: at.BaseURL, Nonce: at.Nonce, Model: s.cfg.Review.Model}
	s.judge = &judge.Judge{Model: patient{speaks(s.reviewAPI(), e), s.env.Sleep}, Rand: s.env.Random}
	return nil
}

// Words of review.api.
const (
	overMessages  = "anthropic"
	overResponses = "responses"
	overChat      = "chat"
	overGemini    = "gemini"
)

// reviewAPI is the API that the reviewer's model is asked over: the one that is named, or by the model's name.
func (s *session) reviewAPI() string {
	model := s.cfg.Review.Model
	switch {
	case s.cfg.Review.API != "auto":
		return s.cfg.Review.API
	case strings.HasPrefix(model, "gpt-"), strings.HasPrefix(model, "codex-"), openAIReasoning.MatchString(model):
		return overResponses
	case strings.HasPrefix(model, "gemini-"):
		return overGemini
	}
	return overMessages
}

// openAIReasoning are OpenAI's models of the form o3 and o4-mini.
var openAIReasoning = pattern.Of(`^o[1-9](-|$)`)

func speaks(api string, e judge.Endpoint) judge.Model {
	switch api {
	case overResponses:
		return judge.Responses{Endpoint: e}
	case overChat:
		return judge.Chat{Endpoint: e}
	case overGemini:
		return judge.Gemini{Endpoint: e}
	}
	return judge.Anthropic{Endpoint: e}
}

// reviewProvider is whose key the reviewer's model needs; empty: none.
func (s *session) reviewProvider() meter.API {
	if !s.judgesByModel() {
		return ""
	}
	switch s.reviewAPI() {
	case overResponses, overChat:
		return meter.OpenAI
	case overGemini:
		return meter.Gemini
	}
	return meter.Anthropic
}

// patient waits out a provider that is throttling or overloaded, on the run's own clock.
type patient struct {
	judge.Model
	sleep func(context.Context, time.Duration) error
}

// Complete asks up to four times, five seconds apart at first.
func (p patient) Complete(ctx context.Context, r judge.Request) (string, error) {
	for wait := 5 * time.Second; ; wait *= 2 {
		text, err := p.Model.Complete(ctx, r)
		var answer *judge.HTTPError
		if !errors.As(err, &answer) || wait > 20*time.Second {
			return text, err
		}
		switch answer.Status {
		case http.StatusTooManyRequests, http.StatusServiceUnavailable, 529:
		default:
			return text, err
		}
		if p.sleep(ctx, wait) != nil {
			return text, err
		}
	}
}

// Review asks the judge about the whole diff over base. An unchanged tree on the same question is not asked
// about twice, also in a run that resumes another's work.
func (s *session) Review(ctx context.Context, candidate loop.Commit) (loop.ReviewSeen, error) {
	n := s.now()
	in, err := s.question(ctx, candidate.Tree)
	if err != nil {
		return loop.ReviewSeen{}, err
	}
	v, known := s.saved.Reviews.Find(in)
	if !known {
		if v, err = s.ask(ctx, "review", in, s.snap.Changes); err != nil {
			return unheard(err), nil
		}
		if err := s.saved.Reviews.Keep(in, v); err != nil {
			return loop.ReviewSeen{}, err
		}
		s.saved.Said = append(s.saved.Said, v)
	}
	s.keepReview(n, v, known)
	return seenReview(v), nil
}

// ask puts one question about changes to the judge. Its calls bear the purpose and are booked before anybody reads what was spent.
func (s *session) ask(ctx context.Context, purpose string, in judge.Input, changes []git.Change) (v judge.Verdict, err error) {
	if in.Files, err = judge.Diff(ctx, changes, s.store); err != nil {
		return v, fmt.Errorf("render the change for the reviewer: %w", err)
	}
	s.meter.SetTick(s.now(), purpose)
	defer func() {
		s.bookCalls(ctx)
		s.meter.SetTick(s.now(), meter.Nobody)
	}()
	return s.judge.Review(ctx, in)
}

// unheard is what the loop hears where there is no verdict: that is no rejection.
func unheard(err error) loop.ReviewSeen {
	// The loop says that there is no verdict; what it was told need not say so again.
	detail := strings.TrimPrefix(err.Error(), judge.ErrUnavailable.Error()+": ")
	return loop.ReviewSeen{Detail: prompt.Inline(detail, 300), OverBudget: overBudget(err)}
}

// seenReview is a verdict as the loop and the agent get it.
func seenReview(v judge.Verdict) loop.ReviewSeen {
	seen := loop.ReviewSeen{Approved: v.Approved, Rejected: !v.Approved}
	for _, f := range v.Findings {
		seen.Feedback += fmt.Sprintf("%s %s:%d %s\n", f.Category, prompt.Inline(f.Path, 200), f.Line, prompt.Inline(f.Detail, 500))
		seen.Fingerprint += string(f.Category) + " " + f.Path + "\n"
	}
	return seen
}

// question is what the judge is asked about a tree, but for the diff: base, goal and rubric make it another question.
func (s *session) question(ctx context.Context, tree string) (judge.Input, error) {
	rubric, err := s.rubric(ctx)
	if err != nil {
		return judge.Input{}, err
	}
	return judge.Input{Goal: strings.TrimSpace(s.goal.title+"\n\n"+s.goal.body) + s.round.asks(), Rubric: rubric, BaseTree: s.rec.Base.Tree, Tree: tree, Previous: s.saved.Said}, nil
}

func (s *session) keepReview(n int, v judge.Verdict, cached bool) {
	s.tick(n).Review = reviewOf(v, cached)
	s.emit(evidence.ReviewEvent, n, slog.Bool(evidence.KeyApproved, v.Approved), slog.Bool(evidence.KeyCached, cached),
		slog.Int(evidence.KeyFindings, len(v.Findings)), slog.String(evidence.KeyModel, v.Model))
}

// reviewOf is a verdict as the record keeps it.
func reviewOf(v judge.Verdict, cached bool) *evidence.Review {
	out := &evidence.Review{Approved: v.Approved, Model: prompt.Inline(v.Model, 200), Cached: cached}
	for _, f := range v.Findings {
		level := "advice"
		if f.Category.Blocking() {
			level = "block"
		}
		out.Findings = append(out.Findings, evidence.Finding{Rule: string(f.Category), Level: level, Path: prompt.Inline(f.Path, 300), Line: f.Line, Detail: prompt.Inline(f.Detail, 500)})
	}
	return out
}

// overBudget tells the meter's own refusal from the provider's answers.
func overBudget(err error) bool {
	var answer *judge.HTTPError
	return errors.As(err, &answer) && answer.Status == http.StatusPaymentRequired && strings.HasPrefix(answer.Message, meter.Mark)
}

// recallVerdicts makes the loop's verdicts those that answer this run's question: an earlier run's on
// another base, goal or rubric decide nothing here.
func (s *session) recallVerdicts(ctx context.Context, st loop.State) (loop.State, error) {
	if !s.cfg.Review.Enabled {
		return st, nil
	}
	in, err := s.question(ctx, "")
	if err != nil {
		return st, err
	}
	st.Verdicts = s.saved.Reviews.On(in)
	return st, nil
}

// recallReview puts the verdict that the loop knew already into the record of a tick whose tree was judged before.
func (s *session) recallReview(ctx context.Context, n int) error {
	t := s.tick(n)
	if !s.cfg.Review.Enabled || t.Review != nil || t.Commit == nil {
		return nil
	}
	in, err := s.question(ctx, t.Commit.Tree)
	if err != nil {
		return err
	}
	if v, known := s.saved.Reviews.Find(in); known {
		s.keepReview(n, v, true)
	}
	return nil
}

func (s *session) rubric(ctx context.Context) (string, error) {
	var b strings.Builder
	for _, path := range s.cfg.Review.Criteria {
		text, err := s.store.ReadFile(ctx, s.store.Base(), path, maxRead)
		if err != nil {
			return "", usage(fmt.Errorf("review.criteria: read %s of the base commit: %w", path, err))
		}
		b.Write(text)
		b.WriteByte('\n')
	}
	return b.String(), nil
}

// maxReviewOutput is more than any verdict: a longer answer is none.
const maxReviewOutput = 1 << 20

// runReviewer runs review.command, confined like a gate and without a key, in a checkout of the base commit: a
// script of the repository is the base's, whatever the candidate made of it. Sealed files are left out, since what
// it prints goes to the agent.
func (s *session) runReviewer(ctx context.Context, argv []string, stdin []byte) (stdout []byte, exit int, err error) {
	root, err := os.MkdirTemp(s.dir, "review-")
	if err != nil {
		return nil, 0, fmt.Errorf("make a directory for it: %w", err)
	}
	defer func() {
		if gone := git.RemoveAll(root); gone != nil && err == nil {
			err = fmt.Errorf("remove its directory: %w", gone)
		}
	}()
	dirs, err := s.reviewPlace(ctx, root)
	if err != nil {
		return nil, 0, err
	}
	out := &bounded{max: maxReviewOutput}
	res, err := s.proofBox.Run(ctx, sandbox.Command{
		Argv: argv, Dir: dirs[0], Env: sandbox.WithPath(sandbox.BaseEnv(dirs[1], dirs[2]), s.programDirs()...),
		Stdin: bytes.NewReader(stdin), Stdout: out, Timeout: reviewTimeout,
		Policy: sandbox.Policy{ReadWrite: dirs, ReadOnly: s.toolDirs},
	})
	switch {
	case err != nil:
		return nil, 0, err
	case res.TimedOut:
		return nil, 0, fmt.Errorf("it was not finished after %s", reviewTimeout)
	case res.Exceeded != "":
		return nil, 0, errors.New(res.Excess())
	case res.Signal != "" || res.Cancelled:
		return nil, 0, fmt.Errorf("it was ended by signal %s", res.Signal)
	case out.over:
		return nil, 0, fmt.Errorf("it printed more than %d bytes", maxReviewOutput)
	}
	return out.Bytes(), res.ExitCode, nil
}

// reviewPlace is a checkout of the base commit without its sealed files, a HOME and a TMPDIR.
func (s *session) reviewPlace(ctx context.Context, root string) ([]string, error) {
	if err := os.Chmod(root, 0o711); err != nil {
		return nil, err
	}
	sealed, err := s.sealed()
	if err != nil {
		return nil, err
	}
	dirs := []string{filepath.Join(root, "tree"), filepath.Join(root, "home"), filepath.Join(root, "tmp")}
	var opts []git.WorktreeOption
	if id, other := s.proofBox.User(); other {
		opts = append(opts, git.OwnedBy(git.Owner{UID: id.UID, GID: id.GID}))
	}
	if _, err := s.store.NewGate(ctx, dirs[0], sealed, opts...); err != nil {
		return nil, fmt.Errorf("check out the base commit: %w", err)
	}
	for _, d := range dirs[1:] {
		if err := os.Mkdir(d, 0o755); err != nil {
			return nil, err
		}
	}
	return dirs, s.proofBox.Own(dirs...)
}

// bounded keeps the first max bytes and knows whether there were more.
type bounded struct {
	bytes.Buffer
	max  int
	over bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.max {
		b.over = true
		return len(p), nil
	}
	return b.Buffer.Write(p)
}

// forget drops verdicts and findings, for work that begins anew.
func (c *checkpoint) forget() {
	c.Reviews, c.Said = judge.Ledger{}, nil
}

// recallJudged is recallReview at the end of a tick that went as far as its review: its gates are green.
func (s *session) recallJudged(ctx context.Context, n int) error {
	gates := s.tick(n).Gates
	for _, g := range gates {
		if g.Status != "passed" {
			return nil
		}
	}
	if len(gates) == 0 {
		return nil
	}
	return s.recallReview(ctx, n)
}
