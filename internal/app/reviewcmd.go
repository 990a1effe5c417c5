package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/proctor-ci/proctor/internal/config"
	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/judge"
	"github.com/proctor-ci/proctor/internal/money"
	"github.com/proctor-ci/proctor/internal/prompt"
)

// Exit codes of `proctor review`: a script can tell no from nobody said.
const (
	exitApproved  = 0
	exitRejected  = 1
	exitNoVerdict = 2
)

// reviewOptions are the flags of `proctor review`.
type reviewOptions struct {
	base, head, goal, model, cost string
	json                          bool
}

// defaultReviewCost is the ceiling of one review where neither flag nor configuration sets a lower one.
const defaultReviewCost = "1"

func reviewCommand(env Env, code *int) *cobra.Command {
	var o reviewOptions
	c := &cobra.Command{
		Use:   "review",
		Short: "Ask the reviewer alone about a local change",
		Long: `Review shows the change between two commits of this checkout to the reviewer, as a run would: the whole diff in parts that
fit, with the criteria that the base commit names. Only what is committed counts. Nothing else is run and nothing is pushed.

It needs ANTHROPIC_API_KEY, unless review.command of the base commit names a reviewer of your own.

Exit code 0: approved. 1: rejected. 2: there is no verdict, for whatever reason; that is never an approval.`,
		Example: `  proctor review
  proctor review --base origin/main --head my-branch --goal "Discounts are applied once"`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				*code = exitNoVerdict
				return fmt.Errorf("%q is no flag. Next: proctor review --base REF --head REF", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			r := &reviewing{opts: o, session: &session{env: env, log: slog.New(slog.DiscardHandler), status: &statusKeeper{}}}
			var err error
			*code, err = r.run(cmd.Context())
			return err
		},
	}
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		*code = exitNoVerdict
		return fmt.Errorf("%w. Next: %s --help lists the flags", err, c.CommandPath())
	})
	f := c.Flags()
	f.StringVar(&o.base, "base", "", "branch, tag or commit that the change starts from (default: origin/HEAD, else main or master)")
	f.StringVar(&o.head, "head", "HEAD", "branch, tag or commit that holds the change")
	f.StringVar(&o.goal, "goal", "", "what the change is for (default: what its commits say)")
	f.StringVar(&o.model, "model", "", "model instead of the configured one")
	f.StringVar(&o.cost, "max-cost", defaultReviewCost, "ceiling in dollars")
	f.BoolVar(&o.json, "json", false, "print the verdict as one JSON object and nothing else")
	return c
}

// reviewing is one review by itself. Of the session it uses the store, the meter and the judge.
type reviewing struct {
	*session
	opts reviewOptions
	head git.ID
}

// opinion is what --json prints.
type opinion struct {
	Verdict  string             `json:"verdict"` // "approved", "rejected" or "none"
	ExitCode int                `json:"exit_code"`
	Base     string             `json:"base,omitempty"`
	Head     string             `json:"head,omitempty"`
	Model    string             `json:"model,omitempty"`
	Findings []evidence.Finding `json:"findings"`
	CostUSD  string             `json:"cost_usd"`
	Reason   string             `json:"reason,omitempty"` // why there is none
}

func (r *reviewing) run(ctx context.Context) (int, error) {
	v, err := r.review(ctx)
	out := opinion{Verdict: "rejected", ExitCode: exitRejected, Base: r.rec.Base.ID, Head: string(r.head), Findings: []evidence.Finding{}, CostUSD: r.Spent().Decimal()}
	r.close(ctx)
	switch {
	case err != nil:
		e := terminalOf(ctx, err)
		out.Verdict, out.ExitCode, out.Reason = "none", exitNoVerdict, r.red.String(prompt.Inline(e.reason, 1000))
		err = &ended{terminal: e.terminal, reason: "there is no verdict: " + out.Reason, next: e.next, err: err}
	case v.Approved:
		out.Verdict, out.ExitCode = "approved", exitApproved
	}
	if err == nil {
		kept := reviewOf(v, false)
		out.Model, out.Findings = kept.Model, append(out.Findings, kept.Findings...)
	}
	if r.opts.json {
		enc := json.NewEncoder(r.env.Stdout)
		enc.SetIndent("", "  ")
		return out.ExitCode, enc.Encode(out)
	}
	if err == nil {
		r.tell(out)
	}
	return out.ExitCode, err
}

// tell prints the verdict for a person.
func (r *reviewing) tell(o opinion) {
	view := newAccount(r.env.Stdout, r.env.Terminal, r.env.Now)
	for _, f := range o.Findings {
		where := f.Path
		if f.Line > 0 {
			where = fmt.Sprintf("%s:%d", f.Path, f.Line)
		}
		view.say("  %-14s %s", f.Rule, strings.TrimSpace(where+"  "+f.Detail))
	}
	view.say("%s by %s: %s on %s, %s", view.mark(o.Verdict), o.Model, short(o.Head), short(o.Base), r.Spent())
}

// review is the stations of a review.
func (r *reviewing) review(ctx context.Context) (judge.Verdict, error) {
	key := modelKey(r.env.Getenv("ANTHROPIC_API_KEY"), r.env.Getenv("CLAUDE_CODE_OAUTH_TOKEN"))
	r.req = request{
		scratch: os.TempDir(), toolPath: r.env.Getenv("PATH"), home: r.env.Getenv("HOME"), key: key,
		modelAt: first(r.env.Getenv("ANTHROPIC_BASE_URL"), defaultModelAt), secrets: held(r.env, key.Value), override: config.Override{From: "flag", Operator: true},
	}
	r.red = evidence.NewRedactor(r.req.secrets...)
	cost, err := money.Parse(r.opts.cost)
	if err != nil || cost == 0 {
		return judge.Verdict{}, usage(fmt.Errorf("flag --max-cost is %q. Next: give dollars above zero, such as 0.50", r.opts.cost))
	}
	if r.req.checkout, err = checkoutOf(r.env.Dir); err != nil {
		return judge.Verdict{}, usage(err)
	}
	if err := r.room(); err != nil {
		return judge.Verdict{}, err
	}
	if err := r.choose(ctx); err != nil {
		return judge.Verdict{}, err
	}
	if r.cfg.Stops.MaxCost > cost {
		r.cfg.Stops.MaxCost = cost
	}
	r.cfg.Review.Enabled, r.cfg.Agent.Name = true, "" // asked for by name, whatever a run would do
	if r.opts.model != "" {
		r.cfg.Review.Model, r.cfg.Review.Command.Argv = r.opts.model, nil
	}
	if key.Value == "" && r.judgesByModel() {
		return judge.Verdict{}, usage(errors.New("the reviewer is a model and there is no key. Next: export ANTHROPIC_API_KEY, or name a reviewer of your own with review.command on the base commit"))
	}
	for _, step := range []func(context.Context) error{r.confine, r.openMeter} {
		if err := step(ctx); err != nil {
			return judge.Verdict{}, err
		}
	}
	if err := r.chooseReviewer(); err != nil {
		return judge.Verdict{}, err
	}
	return r.judgeChange(ctx)
}

// choose finds base and head and opens the store on the commit where the head left the base.
func (r *reviewing) choose(ctx context.Context) error {
	look, err := r.git.OpenStore(ctx, git.StoreOptions{Checkout: r.req.checkout, Dir: r.place("look")})
	if err != nil {
		return usage(err)
	}
	defer look.Close()
	if r.head, err = look.Resolve(ctx, r.req.checkout, r.opts.head); err != nil {
		return usage(fmt.Errorf("flag --head: %w", err))
	}
	base, err := r.baseOf(ctx, look)
	if err != nil {
		return usage(err)
	}
	from, err := look.MergeBase(ctx, base, r.head)
	if err != nil {
		return usage(err)
	}
	if from == r.head {
		return usage(fmt.Errorf("%s holds nothing that %s lacks, so there is no change to review. Next: commit it, or name other commits with --base and --head", r.opts.head, short(string(base))))
	}
	store, err := r.git.OpenStore(ctx, git.StoreOptions{Checkout: r.req.checkout, Dir: r.place("store"), Base: string(from)})
	if err != nil {
		return usage(err)
	}
	return r.adopt(ctx, store)
}

// baseOf is the commit that --base names, or the tip of the default branch as far as this checkout knows it.
func (r *reviewing) baseOf(ctx context.Context, look *git.Store) (git.ID, error) {
	if r.opts.base != "" {
		id, err := look.Resolve(ctx, r.req.checkout, r.opts.base)
		if err != nil {
			return "", fmt.Errorf("flag --base: %w", err)
		}
		return id, nil
	}
	for _, name := range []string{"origin/HEAD", "origin/main", "origin/master", "main", "master"} {
		id, err := look.Resolve(ctx, r.req.checkout, name)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return id, err
		}
	}
	return "", errors.New("no default branch is known here. Next: name the commit that the change starts from with --base REF")
}

// judgeChange asks about the whole change.
func (r *reviewing) judgeChange(ctx context.Context) (judge.Verdict, error) {
	tree, err := r.store.Tree(ctx, r.head)
	if err != nil {
		return judge.Verdict{}, err
	}
	changes, err := r.store.Diff(ctx, r.store.BaseTree(), tree)
	if err != nil {
		return judge.Verdict{}, fmt.Errorf("compare head and base: %w", err)
	}
	if r.goal.body = r.opts.goal; r.goal.body == "" {
		if r.goal.body, err = r.messages(ctx); err != nil {
			return judge.Verdict{}, err
		}
	}
	in, err := r.question(ctx, string(tree))
	if err != nil {
		return judge.Verdict{}, err
	}
	stop := r.wait()
	defer stop()
	return r.ask(ctx, "review", in, changes)
}

// wait says on a terminal that the reviewer reads.
func (r *reviewing) wait() func() {
	if r.opts.json || !r.env.Terminal {
		return func() {}
	}
	view := newAccount(r.env.Stdout, true, r.env.Now)
	view.doing, view.since = "the reviewer reads the change", r.env.Now()
	return spinning(view)
}

// maxMessages bounds how many commits speak for the goal.
const maxMessages = 50

// messages are what the commits of the change say, newest first, along first parents.
func (r *reviewing) messages(ctx context.Context) (string, error) {
	var b strings.Builder
	id := r.head
	for range maxMessages {
		c, err := r.store.ReadCommit(ctx, id)
		if err != nil {
			return "", fmt.Errorf("read what the commits say: %w", err)
		}
		b.WriteString(strings.TrimSpace(c.Message) + "\n\n")
		if len(c.Parents) == 0 || c.Parents[0] == r.store.Base() {
			break
		}
		id = c.Parents[0]
	}
	return strings.TrimSpace(b.String()), nil
}

// close ends the meter and removes the directory.
func (r *reviewing) close(ctx context.Context) {
	last, done := until(ctx, lastWords)
	defer done()
	_ = r.meter.Close(last) // the verdict, or that there is none, stands either way
	if r.store != nil {
		r.store.Close()
	}
	if r.dir != "" {
		if err := git.RemoveAll(r.dir); err != nil {
			fmt.Fprintln(r.env.Stderr, "proctor: the review's directory could not be removed:", err)
		}
	}
}
