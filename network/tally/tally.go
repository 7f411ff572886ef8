// Package tally measures how fast peers deliver, in the time in which this process waits for them. The network and the
// simulator use it, each with its own clock: a moment is a time since some beginning, which does not go back.
//
// Bytes that several peers deliver at once share one line, and say little about the way to each. So the time in which
// several peers are waited for is divided among them: a fast peer is not charged for what a slow one holds up, the slow
// one is when it is the last, and the times of all add up to the time of waiting.
package tally

import (
	"sync"
	"time"
)

// A wait measures the way to a peer if it delivered enough and lasted much longer than a round trip: the request, and
// the slow start of the sender, take several of them.
const (
	leastBytes = 1 << 20
	leastTrips = 32
	unknown    = 250 * time.Millisecond // assumed round trip of a peer that does not answer, and limit of longer ones
)

// Line is the way into a machine, over which peers deliver. The zero value is ready. Methods may be called
// concurrently.
type Line struct {
	// Any says that every wait measures the way, as it does if neither questions nor their answers take time.
	Any bool

	mu     sync.Mutex
	busy   int           // peers that are waited for
	at     time.Duration // of the latest change
	charge time.Duration // of a peer that would have been waited for from the beginning on
}

// Peer is one of those who deliver over a line. The zero value has delivered nothing. It is changed by methods of its
// line only.
type Peer struct {
	waits  int
	since  time.Duration // that it is waited for
	charge time.Duration // of the line, at that moment
	bytes  uint64        // in this wait
	sum    Reading
}

// Reading is what a peer delivered so far.
type Reading struct {
	Bytes  uint64        // all bytes delivered to waiting callers
	Timed  uint64        // of them, those of waits that measure the way
	Waited time.Duration // that these were waited for
}

// pass charges for the time until now.
func (l *Line) pass(now time.Duration) {
	if l.busy > 0 {
		l.charge += (now - l.at) / time.Duration(l.busy)
	}
	l.at = now
}

// Begin says that a caller begins to wait for a peer. Several callers may wait.
func (l *Line) Begin(p *Peer, now time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.waits++; p.waits > 1 {
		return
	}
	l.pass(now)
	l.busy++
	p.since, p.charge, p.bytes = now, l.charge, 0
}

// Add counts bytes that came from a peer.
func (l *Line) Add(p *Peer, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.bytes += uint64(n)
	p.sum.Bytes += uint64(n)
}

// End says that one of those who wait for a peer does no longer. trip is the round trip to it; 0: it is not known.
func (l *Line) End(p *Peer, now, trip time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.waits--; p.waits > 0 {
		return
	}
	l.pass(now)
	l.busy--
	if trip == 0 {
		trip = unknown
	}
	if l.Any && p.bytes > 0 || p.bytes >= leastBytes && now-p.since >= leastTrips*min(trip, unknown) {
		p.sum.Timed += p.bytes
		p.sum.Waited += l.charge - p.charge
	}
}

// Read returns the bytes and times of a peer. A wait that has not ended is not timed yet.
func (l *Line) Read(p *Peer) Reading {
	l.mu.Lock()
	defer l.mu.Unlock()
	return p.sum
}
