package uplink

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrSilent is the reason for which While ends a wait for a network without blocks.
var ErrSilent = errors.New("no block came")

// While does something that waits for the network from which the blocks come. Its context ends when none has come for a
// time (0: never); the error wraps ErrSilent then.
func While[B any](ctx context.Context, blocks <-chan B, limit time.Duration, do func(context.Context) error) error {
	if limit == 0 {
		return do(ctx)
	}
	waits, end := context.WithCancelCause(ctx)
	defer end(nil)
	go func() {
		silence := time.NewTimer(limit)
		defer silence.Stop()
		for {
			select {
			case _, ok := <-blocks:
				if !ok {
					blocks = nil // the connection ends
				}
				silence.Reset(limit)
			case <-silence.C:
				end(ErrSilent)
				return
			case <-waits.Done():
				return
			}
		}
	}()
	err := do(waits)
	if err != nil && errors.Is(context.Cause(waits), ErrSilent) {
		return fmt.Errorf("%w for %s", ErrSilent, limit)
	}
	return err
}
