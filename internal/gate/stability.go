package gate

import (
	"context"
	"errors"
	"fmt"
)

// ErrFlaky says that a gate gave different answers on an unchanged tree.
var ErrFlaky = errors.New("gate is flaky")

// FlakyError holds two runs that disagree.
type FlakyError struct {
	First, Second Result
	Runs          int // which run disagreed with the first, from 2
}

func (e *FlakyError) Error() string {
	return fmt.Sprintf("gate %s: run 1 %s and run %d %s on the same tree: make it repeatable (order, time, network, leftovers) before its exit code can decide",
		e.First.Name, describe(e.First), e.Runs, describe(e.Second))
}

func (e *FlakyError) Unwrap() error { return ErrFlaky }

func describe(r Result) string {
	switch {
	case r.Signal != "":
		return fmt.Sprintf("%s (signal %s)", r.Status, r.Signal)
	case r.Status == Failed:
		return fmt.Sprintf("%s (exit %d)", r.Status, r.ExitCode)
	}
	return string(r.Status)
}

// Stable runs a gate n times (at least once) on the unchanged tree and gives the first result when all
// agree in status. A *FlakyError comes with both results that do not. A broken, timed-out or stopped run
// ends the series at once: repeating it says nothing more. fresh is called before each run to bring the
// place back to the unchanged tree; nil when the gate leaves nothing behind.
func (r Runner) Stable(ctx context.Context, s Spec, p Place, n int, fresh func(context.Context) error) (Result, error) {
	var first Result
	for run := 1; run <= max(n, 1); run++ {
		if fresh != nil {
			if err := fresh(ctx); err != nil {
				return first, fmt.Errorf("gate %s: bring the tree back before run %d: %w", title(s), run, err)
			}
		}
		got, err := r.Run(ctx, s, p)
		if err != nil {
			return first, err
		}
		if run == 1 {
			first = got
		}
		if got.Status == Stopped {
			return got, nil
		}
		if got.Status != first.Status {
			return first, &FlakyError{First: first, Second: got, Runs: run}
		}
		if got.Status == Broken || got.Status == TimedOut {
			break
		}
	}
	return first, nil
}
