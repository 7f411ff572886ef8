package cohort

import (
	"context"
	"time"

	"github.com/starling-network/starling/sim/clock"
)

// tick is how exactly a party under virtual time notices that another one has changed something.
const tick = 20 * time.Millisecond

// virtual is the wire.Clock of parties that are routines of a clock.
type virtual struct{ clock *clock.Clock }

// Now implements wire.Clock.
func (v virtual) Now() time.Time { return time.Unix(0, 0).Add(v.clock.Now) }

// Within implements wire.Clock.
func (v virtual) Within(ctx context.Context, most time.Duration) (context.Context, context.CancelFunc) {
	inner, cancel := context.WithCancel(ctx)
	until := v.Now().Add(most)
	if outer, limited := ctx.Deadline(); limited && outer.Before(until) {
		until = outer
	}
	return deadline{inner, v, until}, cancel
}

// Wait implements wire.Clock.
func (v virtual) Wait(ctx context.Context, closed <-chan struct{}) error {
	for {
		select {
		case <-closed:
			return nil
		default:
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		d := tick
		if until, limited := ctx.Deadline(); limited && (closed == nil || until.Sub(v.Now()) < d) {
			d = until.Sub(v.Now())
		}
		if err := v.clock.Sleep(d); err != nil {
			return err
		}
	}
}

// deadline is a context that is over at a moment of virtual time.
type deadline struct {
	context.Context
	virtual virtual
	until   time.Time
}

// Deadline implements context.Context.
func (d deadline) Deadline() (time.Time, bool) { return d.until, true }

// Err implements context.Context.
func (d deadline) Err() error {
	if err := d.Context.Err(); err != nil {
		return err
	}
	if !d.virtual.Now().Before(d.until) {
		return context.DeadlineExceeded
	}
	return nil
}
