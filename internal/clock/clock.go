// Package clock owns waiting by the real clock. It must never be the only way to wait: whoever waits takes
// the function as a parameter, so that a test need not.
package clock

import (
	"context"
	"time"
)

// Sleep waits for d, or for the end of ctx, which is then the error.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
