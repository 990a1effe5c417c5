package publish

import (
	"context"
	"fmt"

	"github.com/proctor-ci/proctor/internal/forge"
)

// SetLabels moves the issue's state labels. Which ones is package policy's to say. Trouble with
// them is told and ends nothing: the status comment and the record carry the same word.
func SetLabels(ctx context.Context, f forge.Forge, issue int, add, remove []string) error {
	if issue == 0 || len(add)+len(remove) == 0 {
		return nil
	}
	if err := f.SetLabels(ctx, issue, add, remove); err != nil {
		return fmt.Errorf("set labels of issue %d: %w", issue, err)
	}
	return nil
}
