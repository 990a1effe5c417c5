package clock

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestSleepEndsWithItsContextOrItsTime(t *testing.T) {
	t.Parallel()
	if err := Sleep(t.Context(), time.Nanosecond); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Sleep(ctx, 24*time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
