package wire

import (
	"context"
	"errors"
	"time"
)

// Clock is the time of a coordinator and of owners, and how they wait. The simulator has another one than Wall.
type Clock interface {
	Now() time.Time
	// Within is a context that is over after a time, with context.DeadlineExceeded.
	Within(ctx context.Context, most time.Duration) (context.Context, context.CancelFunc)
	// Wait waits until a channel is closed, or a context of Within is over, of which it returns the error.
	Wait(ctx context.Context, closed <-chan struct{}) error
}

// Wall is the clock of the machine.
type Wall struct{}

// Now implements Clock.
func (Wall) Now() time.Time { return time.Now() }

// Within implements Clock.
func (Wall) Within(ctx context.Context, most time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, most)
}

// Wait implements Clock.
func (Wall) Wait(ctx context.Context, closed <-chan struct{}) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-closed:
		return nil
	}
}

// Pause waits for a time. Its error is that of the context, or of a clock that has stopped.
func Pause(ctx context.Context, c Clock, d time.Duration) error {
	within, cancel := c.Within(ctx, d)
	defer cancel()
	if err := c.Wait(within, nil); !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return ctx.Err()
}
