package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/proctor-ci/proctor/internal/config"
	"github.com/proctor-ci/proctor/internal/doctor"
	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/sandbox"
	"github.com/proctor-ci/proctor/internal/scaffold"
)

// examination is one doctor's round: a session that never comes to its loop.
type examination struct {
	s     *session
	at    forgePlace
	issue int
	asks  bool // each model for a token
	rep   *doctor.Report
}

func (x examination) run(ctx context.Context) {
	opened := x.s.open(ctx)
	if opened != nil {
		x.rep.Add(x.unconfigured(opened)...)
	} else if x.s.cfgPath == "" {
		x.rep.Add(doctor.Finding{Check: "config", Status: doctor.OK, Text: "the base commit has no configuration: what the repository looks like decides. `proctor init` writes it down"})
	} else {
		x.rep.Add(doctor.Finding{Check: "config", Status: doctor.OK, Text: x.s.cfgPath + " of the base commit loads"})
	}
	if x.s.store != nil {
		x.files(ctx, opened == nil)
	}
	if opened == nil && !x.stopped(ctx) {
		x.machine(ctx)
	}
	if !x.stopped(ctx) {
		x.forge(ctx)
	}
	x.stopped(ctx)
}

// stopped says once that somebody wanted no more.
func (x examination) stopped(ctx context.Context) bool {
	const check = "doctor"
	if ctx.Err() == nil {
		return false
	}
	if n := len(x.rep.Findings); n == 0 || x.rep.Findings[n-1].Check != check {
		x.rep.Add(doctor.Finding{Check: check, Status: doctor.Unproved, Text: "stopped on request: the rest was not looked at", Fix: "run this again"})
	}
	return true
}

// fault is a failed finding for an error: its own next step, or else one given here.
func fault(check string, err error, fix string) doctor.Finding {
	text, next, found := strings.Cut(err.Error(), ". Next: ")
	if !found {
		next = fix
	}
	for _, verb := range []string{"write ", "install "} {
		if before, after, ok := strings.Cut(text, "; "+verb); ok && !found {
			text, next = before, verb+after
		}
	}
	if e := (*ended)(nil); errors.As(err, &e) && e.next != "" {
		next = e.next
	}
	next = withoutRun(next)
	return doctor.Finding{Check: check, Status: doctor.Failed, Text: text, Fix: next}
}

// withoutRun takes out of a next step what it says to somebody whose run has just ended.
func withoutRun(next string) string {
	for _, of := range []string{"; then add the label again", ", then label again"} {
		next, _, _ = strings.Cut(next, of)
	}
	return next
}

// unconfigured tells of each fault of the configuration apart, and of a repository in which there is nothing to read.
func (x examination) unconfigured(err error) []doctor.Finding {
	all := config.All(err)
	switch {
	case len(all) == 0 && x.s.store == nil:
		return []doctor.Finding{fault("repository", err, "make the first commit: `git add -A && git commit -m \"First commit\"`; in a clone without its history, `git fetch`")}
	case len(all) == 0:
		return []doctor.Finding{fault("config", err, "see `proctor config check`")}
	}
	var out []doctor.Finding
	for _, e := range all {
		alone := *e
		alone.Next = ""
		out = append(out, doctor.Finding{Check: "config", Status: doctor.Failed, Text: alone.Error(), Fix: e.Next})
	}
	return out
}

// files looks at what the base commit holds. Without a configuration the CI files are held against the defaults.
func (x examination) files(ctx context.Context, configured bool) {
	tree, err := newTreeFS(ctx, x.s.store, x.s.store.BaseTree())
	if err != nil {
		x.rep.Add(fault("repository", err, "git fsck"))
		return
	}
	cfg := x.s.cfg
	if !configured {
		cfg = config.Default()
	} else {
		ids := doctor.Tree{}
		for p, e := range tree.files {
			if e.Mode != git.ModeGitlink {
				ids[p] = string(e.ID)
			}
		}
		x.rep.Add(doctor.Traps(cfg, ids)...)
	}
	read := func(path string) []byte {
		b, err := fs.ReadFile(tree, path)
		if err != nil {
			return nil
		}
		return b
	}
	late := x.uncommitted(read)
	switch workflow := read(scaffold.GitHubWorkflow); {
	case x.at.kind == "gitlab":
		x.rep.Add(doctor.Pipeline(read(scaffold.GitLabPipeline), read(scaffold.GitLabTemplate), cfg)...)
	case workflow != nil || !slices.Contains(late, scaffold.GitHubWorkflow): // one that is only to be committed was told
		x.rep.Add(doctor.Workflow(scaffold.GitHubWorkflow, workflow, cfg)...)
	}
}

// uncommitted are the files that lie in the work tree and not in the commit, where alone they count, which people find out late.
func (x examination) uncommitted(base func(string) []byte) (late []string) {
	for _, p := range append(config.Paths(), scaffold.GitHubWorkflow, scaffold.GitLabPipeline, scaffold.GitLabTemplate) {
		here, err := os.ReadFile(filepath.Join(x.s.req.checkout, filepath.FromSlash(p)))
		if err == nil && !bytes.Equal(here, base(p)) {
			late = append(late, p)
		}
	}
	if len(late) > 0 {
		x.rep.Add(doctor.Finding{Check: "config.uncommitted", Status: doctor.Failed, Text: "of " + strings.Join(late, " and ") + " the base commit has something else than the work tree, or nothing, and only that counts",
			Fix: "`git add " + strings.Join(late, " ") + " && git commit -m \"Set up proctor\" && git push`"})
	}
	return late
}

// machine: confinement, the model's key and price, the agent, and the gates, as a run would meet them.
func (x examination) machine(ctx context.Context) {
	s := x.s
	confined := s.confine(ctx)
	x.confinement(confined)
	if confined != nil {
		return
	}
	x.money(ctx)
	if err := s.chooseAgent(ctx); err != nil {
		x.rep.Add(fault("agent", err, "install it, and see docs/agents.md"))
	} else {
		x.rep.Add(doctor.Finding{Check: "agent", Status: doctor.OK, Text: s.cfg.Agent.Name + " can be started"})
	}
	if x.asks {
		x.live(ctx)
	}
	x.gates(ctx)
}

func (x examination) confinement(err error) {
	if err != nil {
		x.rep.Add(fault("confinement", err, "`proctor sandbox check` says what this machine lacks; or write `sandbox.mode: auto`"))
		return
	}
	var missing []string
	for _, e := range x.s.rec.Confinement {
		if !e.Active && !e.Optional {
			missing = append(missing, e.Name+" ("+e.Detail+")")
		}
	}
	switch {
	case x.s.cfg.Sandbox.Mode == string(sandbox.Off):
		x.rep.Add(doctor.Finding{Check: "confinement", Status: doctor.Failed, Text: "sandbox.mode is off: the agent can read the sealed files and whatever the job holds", Fix: "write `sandbox.mode: auto`"})
	case len(missing) > 0 && x.s.cfg.Gates.HeldOut() > 0:
		x.rep.Add(doctor.Finding{Check: "confinement", Status: doctor.Noted, Text: "this machine does not enforce " + strings.Join(missing, ", ") + ": sealed files are hidden, not sealed", Fix: "use a runner with Linux 6.2 or later; `proctor sandbox check` tells what holds"})
	case len(missing) > 0:
		x.rep.Add(doctor.Finding{Check: "confinement", Status: doctor.Noted, Text: "this machine does not enforce " + strings.Join(missing, ", "), Fix: "`proctor sandbox check` tells what holds"})
	default:
		x.rep.Add(doctor.Finding{Check: "confinement", Status: doctor.OK, Text: "everything holds"})
	}
}

// money: a key for the models that are configured, and a price for each of them.
func (x examination) money(ctx context.Context) {
	asked := *x.s
	asked.req.dryRun = false
	if _, err := asked.providers(); err != nil {
		x.rep.Add(fault("model.key", err, "set the key"))
	} else if len(must(x.s.providers())) > 0 {
		x.rep.Add(doctor.Finding{Check: "model.key", Status: doctor.OK, Text: "there is a key; whether the provider takes it shows at the first call"})
	}
	prices := priceTable(x.s.cfg.Budget.Price, x.s.env.Now())
	for _, m := range []struct{ key, model string }{{"agent.model", x.s.cfg.Agent.Model}, {"review.model", x.s.cfg.Review.Model}} {
		used := m.model != "" && (m.key == "agent.model" && needsModel(x.s.cfg.Agent.Name) || m.key == "review.model" && x.s.judgesByModel())
		if !used || x.s.cfg.Budget.Unpriced == "allow" {
			continue
		}
		if _, known := prices.Find(m.model); !known {
			x.rep.Add(doctor.Finding{Check: "budget.price", Status: doctor.Failed, Text: fmt.Sprintf("%s is %q, whose price is not known, so no ceiling could stop it and it is refused", m.key, m.model), Fix: fmt.Sprintf("name a model of `proctor prices`, or write `budget.price: {%s: {input: 3, output: 15}}` with its dollars per million tokens", m.model)})
		}
	}
	if err := x.s.openMeter(ctx); err != nil {
		x.rep.Add(fault("model.meter", err, "check the base URL"))
	}
}

func must[T any](v T, _ error) T { return v }

// gates run on the base commit, each as often as gates.stability says, in the places that a run makes for them.
func (x examination) gates(ctx context.Context) {
	s := x.s
	for _, step := range []func(context.Context) error{s.intake, s.holdOut, s.makeGuard, s.makeTrees, s.loop} {
		if err := step(ctx); err != nil {
			x.rep.Add(fault("gates", err, "run the command by hand in a fresh clone"))
			return
		}
	}
	switch s.rec.Terminal {
	case evidence.Done:
		x.rep.Add(doctor.Finding{Check: "gates", Status: doctor.OK, Text: fmt.Sprintf("each gate runs on the base commit and says the same %d times", s.cfg.Gates.Stability)})
	case evidence.AlreadySatisfied:
		x.rep.Add(doctor.Finding{Check: "gates", Status: doctor.Failed, Text: "the held-out gate passes on the base commit, where it has to fail: every run would end at once",
			Fix: "commit held-out tests that fail until the issue is done, or write `gates.acceptance.must_fail_on_base: auto`"})
	default:
		x.rep.Add(doctor.Finding{Check: "gates", Status: doctor.Failed, Text: s.rec.Terminal + ": " + s.rec.Reason, Fix: first(withoutRun(s.rec.Next), "run the command by hand in a fresh clone")})
	}
}
