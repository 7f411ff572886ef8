// Package uplink is the way of a process to its validator: it waits for one, and tells its owner when no blocks come by
// it.
package uplink

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"
)

// A process may start before the network of its machine does. It tries so often, and so many times, to find a way to
// its validator.
const (
	routeEvery = time.Second
	routeTries = 60
)

// Connect dials a validator, to which C is the connection. That there is no way to it is waited for; that nothing runs
// where it should be, its owner has to mend.
func Connect[C any](ctx context.Context, say func(string), dial func() (C, error)) (C, error) {
	return connect(ctx, say, routeEvery, dial)
}

func connect[C any](ctx context.Context, say func(string), every time.Duration,
	dial func() (C, error)) (C, error) {
	for try := 1; ; try++ {
		c, err := dial()
		if err == nil || try == routeTries || !noRoute(err) {
			return c, err
		}
		if try == 1 {
			say(fmt.Sprintf("waits at most %s for a way to the validator: %v", routeTries*every, err))
		}
		select {
		case <-ctx.Done():
			return c, err
		case <-time.After(every):
		}
	}
}

// noRoute reports whether it is the network of this machine that is not there.
func noRoute(err error) bool {
	return errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH) || errors.Is(err, syscall.ENETDOWN)
}
