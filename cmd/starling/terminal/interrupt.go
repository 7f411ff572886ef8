package terminal

import (
	"context"
	"errors"
)

// IfInterrupted turns the error of a cancelled context into the answer to Ctrl-C.
func IfInterrupted(ctx context.Context, err error, resume string) error {
	if err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return Interrupted(resume)
	}
	return err
}
