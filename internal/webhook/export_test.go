package webhook

import "context"

// DrainOne is one worker's one step.
func DrainOne(h *Handler, ctx context.Context, src Source) bool { return h.drainOne(ctx, src) }
