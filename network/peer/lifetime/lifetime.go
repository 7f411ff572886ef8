// Package lifetime bounds the work that a host does for its peers by the life of the host: work begins only while the
// host is open, and the host closes once all of it is done. It starts no work itself.
package lifetime

import (
	"context"
	"sync"
)

// Lifetime is that of one host. Its methods may be called concurrently.
type Lifetime struct {
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu sync.Mutex // while work begins, or the life ends
}

// New returns a lifetime that has begun.
func New() *Lifetime {
	ctx, cancel := context.WithCancel(context.Background())
	return &Lifetime{ctx: ctx, cancel: cancel}
}

// Context ends with the lifetime.
func (l *Lifetime) Context() context.Context { return l.ctx }

// Begin counts work that Wait will wait for, until Done is called: false if the lifetime has ended.
func (l *Lifetime) Begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil {
		return false
	}
	l.running.Add(1)
	return true
}

// Done ends work that began.
func (l *Lifetime) Done() { l.running.Done() }

// End ends the lifetime: no work begins after it.
func (l *Lifetime) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancel()
}

// Wait returns when all work is done.
func (l *Lifetime) Wait() { l.running.Wait() }
