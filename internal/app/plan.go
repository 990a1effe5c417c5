package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/loop"
	"github.com/proctor-ci/proctor/internal/prompt"
)

// maxItems bounds a plan; a longer one could not be done in any number of ticks that is allowed.
const maxItems = 200

// planItems finds the items that the run works through; none is no error where nothing asked for a file.
func (s *session) planItems(ctx context.Context) ([]loop.Item, error) {
	from, file := s.cfg.Plan.From, s.cfg.Plan.File
	if from == "off" {
		return nil, nil
	}
	if from == "file" || from == "auto" {
		items, err := s.fileItems(ctx, file)
		switch {
		case errors.Is(err, fs.ErrNotExist) && from == "auto":
		case err != nil:
			return nil, usage(fmt.Errorf("%s: plan.file: read %s of the base commit: %w. Next: commit the checklist to the default branch, or write plan.from: auto", s.configName(), file, err))
		case openItems(items) > 0:
			return items, s.planSize(file, items)
		case from == "file":
			return nil, usage(fmt.Errorf("%s: plan.file: %s of the base commit has no open item. Next: add a line that begins with `- [ ]`, or write plan.from: auto", s.configName(), file))
		}
	}
	items := itemsOf(s.rawBody())
	if openItems(items) == 0 {
		s.note("there is no plan: the issue has no open task, so the run works on it as a whole")
		return nil, nil
	}
	return items, s.planSize("issue", items)
}

func (s *session) planSize(from string, items []loop.Item) error {
	if len(items) > maxItems {
		return usage(fmt.Errorf("the plan has %d items and a run takes at most %d. Next: split it", len(items), maxItems))
	}
	s.rec.Plan = &evidence.Plan{From: from}
	return nil
}

func (s *session) fileItems(ctx context.Context, path string) ([]loop.Item, error) {
	b, err := s.store.ReadFile(ctx, s.store.Base(), path, maxRead)
	if err != nil {
		return nil, err
	}
	return itemsOf(string(b)), nil
}

// itemsOf are the tasks that a reader sees.
func itemsOf(markdown string) []loop.Item {
	var out []loop.Item
	for _, c := range prompt.Criteria(markdown) {
		if text := prompt.Inline(c.Text, 500); text != "" {
			out = append(out, loop.Item{Text: text, Before: c.Done})
		}
	}
	return out
}

func openItems(items []loop.Item) int {
	n := 0
	for _, i := range items {
		if i.Open() {
			n++
		}
	}
	return n
}

// planned gives the run its plan. A resumed one goes on with its own: goal and base are the same, so the items are.
func (s *session) planned(ctx context.Context, st loop.State) (loop.State, error) {
	items, err := s.planItems(ctx)
	if err != nil || len(items) == 0 {
		return st, err
	}
	if len(st.Plan) == 0 && st.Tick == st.TickFloor {
		st = st.WithPlan(items)
	}
	s.showPlan(st)
	return st, nil
}

// keepsPlan says which tracked file a snapshot leaves as the base has it.
func (s *session) keepsPlan() func(string) bool {
	if s.rec.Plan == nil || s.rec.Plan.From == "issue" {
		return nil
	}
	return func(path string) bool { return path == s.rec.Plan.From }
}

// claims reads from the agent's version of the checklist what it ticked off.
func (s *session) claims(ctx context.Context, kept map[string]git.Entry) []int {
	if s.rec.Plan == nil {
		return nil
	}
	e, ok := kept[s.rec.Plan.From]
	if !ok || !e.Mode.IsFile() {
		return nil
	}
	b, err := s.store.ReadBlob(ctx, e.ID, maxRead)
	if err != nil {
		return nil // a claim that cannot be read is none
	}
	var out []int
	for _, i := range itemsOf(string(b)) {
		if !i.Before {
			continue
		}
		for n, item := range s.rec.Plan.Items {
			if item.Text == i.Text && !slices.Contains(out, n) {
				out = append(out, n)
				break
			}
		}
	}
	return out
}

// showPlan puts the plan as it stands into the record.
func (s *session) showPlan(st loop.State) {
	if s.rec.Plan == nil {
		return
	}
	by := "gates"
	if s.cfg.Review.Enabled {
		by = "gates and reviewer"
	}
	s.rec.Plan.Items = []evidence.PlanItem{}
	for _, i := range st.Plan {
		item := evidence.PlanItem{Text: i.Text, Status: "open"}
		switch {
		case i.Before:
			item.Status = "before"
		case i.Done > 0:
			item.Status, item.Tick, item.By = "passed", i.Done, by
			if st.End != nil && st.End.Terminal == loop.Done {
				item.Status = "proved"
			}
		case i.Claimed > 0:
			item.Status, item.Tick = "claimed", i.Claimed
		}
		s.rec.Plan.Items = append(s.rec.Plan.Items, item)
	}
}

// tellPlan tells which items the tick got done.
func (s *session) tellPlan(st loop.State) {
	s.showPlan(st)
	for n, i := range st.Plan {
		if i.Done == st.Tick && st.Tick > 0 {
			s.emit(evidence.PlanProgress, st.Tick, slog.Int(evidence.KeyNumber, n+1), slog.String(evidence.KeyStatus, "done"))
		}
	}
}

// itemsDone is how many items the tick in flight ticked off.
func itemsDone(st loop.State) int {
	n := 0
	for _, i := range st.Plan {
		if i.Done == st.Tick && st.Tick > 0 {
			n++
		}
	}
	return n
}

// promptPlan is what the agent reads of the plan.
func promptPlan(t loop.Turn) *prompt.Plan {
	if len(t.Plan) == 0 {
		return nil
	}
	p := &prompt.Plan{Current: t.Item}
	for _, i := range t.Plan {
		p.Items = append(p.Items, prompt.PlanItem{Text: i.Text, Done: !i.Open()})
	}
	return p
}

// ReviewItem asks the reviewer about one item and its share of the change. Where nothing came since the last item, the
// whole change is shown: the item may have been done along with another one.
func (s *session) ReviewItem(ctx context.Context, item loop.Item, from, candidate loop.Commit) (loop.ReviewSeen, error) {
	n := s.now()
	tick := s.tick(n)
	changes, base := s.snap.Changes, s.rec.Base.Tree
	if from.Tree != candidate.Tree {
		var err error
		if changes, err = s.store.Diff(ctx, git.ID(from.Tree), git.ID(candidate.Tree)); err != nil {
			return loop.ReviewSeen{}, fmt.Errorf("find the item's share of the change: %w", err)
		}
		base = from.Tree
	}
	in, err := s.question(ctx, candidate.Tree)
	if err != nil {
		return loop.ReviewSeen{}, err
	}
	in.Goal, in.BaseTree, in.Previous = itemGoal(item, s.goal), base, nil
	v, err := s.ask(ctx, "item_review", in, changes)
	if err != nil {
		return unheard(err), nil
	}
	status := "rejected"
	if v.Approved {
		status = "approved"
	}
	tick.Share = reviewOf(v, false)
	s.emit(evidence.PlanProgress, n, slog.Int(evidence.KeyNumber, tick.Item), slog.String(evidence.KeyStatus, status),
		slog.Int(evidence.KeyFindings, len(v.Findings)), slog.String(evidence.KeyModel, v.Model))
	return seenReview(v), nil
}

// itemGoal is what the reviewer is asked about one item. The whole stands behind it, since an item is seldom
// understood alone.
func itemGoal(item loop.Item, g goal) string {
	return "Judge one item of a plan, and nothing else of the plan: is this item done, whole, by the change (or, when the change is the whole one, within it)?\n\nThe item:\n" +
		item.Text + "\n\nThe issue that the plan belongs to, for understanding only; its other items are done in other turns:\n" + g.title + "\n\n" + g.body
}
