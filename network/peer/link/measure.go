package link

import (
	"time"

	"golang.org/x/time/rate"

	"github.com/starling-network/starling/network/peer/wire"
)

// Limits of a measurement without bulk.
const (
	drainMessages  = 100 // until what is on the way has arrived
	unloadedSample = 3   // of which the fastest counts
)

// unloaded holds bulk back until what was sent has arrived, and then measures the round trip of messages.
func (l *link) unloaded(c *Control) (at, trip time.Duration, err error) {
	hold := make(chan struct{})
	l.mu.Lock()
	l.hold = hold
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		l.hold = nil
		l.mu.Unlock()
		close(hold)
	}()
	for range drainMessages {
		sent := l.sent.Load()
		e, err := c.ping(l.table.life.Context())
		if err != nil {
			return 0, 0, err
		}
		if e.Arrived >= sent {
			break
		}
	}
	for n := range unloadedSample {
		e, err := c.ping(l.table.life.Context())
		if err != nil {
			return 0, 0, err
		}
		if at = e.At; n == 0 || e.Trip < trip {
			trip = e.Trip
		}
	}
	return at, trip, nil
}

// measure sends control messages to the peer until the connection, or the host, is gone. A peer that does not answer
// them is not paced.
func (l *link) measure() {
	if l.watching.Swap(true) {
		return
	}
	if !l.table.life.Begin() {
		return
	}
	go func() {
		defer l.table.life.Done()
		defer l.watching.Store(false)
		c, err := l.table.control(l.table.life.Context(), l.peer)
		if err != nil {
			return
		}
		defer c.Close()
		for {
			l.mu.Lock()
			l.limiter.SetBurst(max(wire.PieceBytes, int(l.pace.Rate*paceBurst.Seconds())))
			l.limiter.SetLimit(rate.Limit(l.pace.Rate))
			starting, doubts := l.pace.Starting, l.pace.Unsure()
			l.mu.Unlock()
			if doubts {
				at, trip, err := l.unloaded(c)
				if err != nil {
					l.limiter.SetLimit(rate.Inf)
					return
				}
				l.mu.Lock()
				l.pace.Unloaded(at, trip)
				l.mu.Unlock()
				continue
			}
			sent := l.sent.Load()
			e, err := c.ping(l.table.life.Context())
			if err != nil {
				l.limiter.SetLimit(rate.Inf)
				return
			}
			e.Sent = sent
			l.mu.Lock()
			l.pace.Sample(e)
			l.roundTrip = e.Trip
			l.mu.Unlock()
			if !l.pause(starting) {
				return
			}
		}
	}()
}

// paceBurst is how long bulk may exceed its pace after a pause.
const paceBurst = 2 * time.Millisecond

// pause waits until the next control message is due: at once while the pace is searched, soon while bulk is sent.
func (l *link) pause(starting bool) bool {
	idle := time.NewTimer(pingIdle)
	defer idle.Stop()
	select {
	case <-l.busy:
	case <-idle.C:
		return true
	case <-l.table.life.Context().Done():
		return false
	}
	wait := pingBusy
	if starting {
		wait = time.Millisecond
	}
	soon := time.NewTimer(wait)
	defer soon.Stop()
	select {
	case <-soon.C:
		return true
	case <-l.table.life.Context().Done():
		return false
	}
}
