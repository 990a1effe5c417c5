package wire

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/proctor-ci/proctor/internal/forge"
)

// Call is Do for a whole operation of a client. A *forge.Error of f is a verdict on an answer that came: it
// is final and the result. explain words any other failure; the end of ctx needs no words.
func (r Retry) Call(ctx context.Context, op string, s Safety, f func(ctx context.Context, attempt int) (*http.Response, error), explain func(*Failure) error) error {
	var own *forge.Error
	fail := r.Do(ctx, op, s, func(ctx context.Context, attempt int) (*http.Response, error) {
		resp, err := f(ctx, attempt)
		if errors.As(err, &own) {
			return nil, nil
		}
		return resp, err
	})
	switch {
	case own != nil:
		return own
	case fail == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", op, context.Cause(ctx))
	}
	return explain(fail)
}
