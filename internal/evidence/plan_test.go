package evidence

import (
	"errors"
	"strings"
	"testing"
)

// worked is sample as the work on a plan of two items.
func worked() Record {
	r := sample()
	r.Plan = &Plan{From: "issue", Items: []PlanItem{
		{Text: "one", Status: "proved", Tick: 1, By: "gates and reviewer"}, {Text: "two", Status: "proved", Tick: 2, By: "gates and reviewer"},
	}}
	for i := range r.Ticks {
		r.Ticks[i].Item, r.Ticks[i].Share = i+1, &Review{Approved: true, Model: "model-small"}
	}
	r.Calls[1].Purpose = "item_review"
	return r
}

func TestAnItemIsNotDoneAgainstItsReviewer(t *testing.T) {
	t.Parallel()
	if err := Validate(worked()); err != nil {
		t.Fatalf("control: %v", err)
	}
	for name, c := range map[string]struct {
		change func(*Record)
		want   string
	}{
		"rejected and proved":      {func(r *Record) { r.Ticks[1].Share.Approved = false }, "the reviewer rejected its share in tick 2"},
		"a share of no item":       {func(r *Record) { r.Ticks[0].Item = 0 }, "there is no item 0"},
		"a share of another item":  {func(r *Record) { r.Ticks[0].Item = 3 }, "there is no item 3"},
		"a share without a plan":   {func(r *Record) { r.Plan = nil }, "there is no item 1"},
		"INV-54 a call of no plan": {func(r *Record) { r.Plan = nil }, "call 2 is the review of an item"},
		"proved by nobody":         {func(r *Record) { r.Plan.Items[0].By = "" }, "nobody ticked it off"},
		"done with an open item":   {func(r *Record) { r.Plan.Items[0].Status = "claimed" }, "item 1 of the plan is claimed"},
		"an unknown status":        {func(r *Record) { r.Plan.Items[0].Status = "fine" }, `the status "fine"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := worked()
			c.change(&r)
			if err := Validate(r); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
