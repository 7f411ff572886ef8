// Package clock is virtual time: a heap of events, which happen one after the other, and blocking code that waits for
// them. It reads no real clock, and knows nothing of networks.
package clock

import (
	"container/heap"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"time"
)

// Clock is virtual time: a heap of events, of which one happens after the other. Nothing else runs meanwhile.
type Clock struct {
	Now     time.Duration // since the start
	events  events
	number  uint64
	current *Routine
}

// occurrence is something that happens at a moment. Those of one moment happen in the order in which they were planned.
type occurrence struct {
	at     time.Duration
	number uint64
	do     func()
}

type events []occurrence

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].number < e[j].number
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(occurrence)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// After plans something.
func (c *Clock) After(d time.Duration, do func()) {
	c.number++
	heap.Push(&c.events, occurrence{c.Now + d, c.number, do})
}

// Step lets the next thing happen; false if there is none.
func (c *Clock) Step() bool {
	if len(c.events) == 0 {
		return false
	}
	e := heap.Pop(&c.events).(occurrence)
	c.Now = e.at
	e.do()
	return true
}

// ErrKilled ends what a routine does when the process that it belongs to stops.
var ErrKilled = errors.New("sim: the process is gone")

// Routine is blocking code under virtual time. It runs until it waits, and continues when the event that it waits for
// has happened. Go's coroutines (iter.Pull) hand over from one to the other: no two run at a time, and no scheduler
// decides.
type Routine struct {
	clock *Clock
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
	dead  bool // killed
	ended bool
}

// Start runs f as a routine until it first waits.
func (c *Clock) Start(f func()) *Routine {
	r := &Routine{clock: c}
	r.next, r.stop = iter.Pull(func(yield func(struct{}) bool) {
		r.yield = yield
		defer func() {
			if v := recover(); v != nil && v != ErrKilled {
				panic(fmt.Sprintf("%v\n%s", v, debug.Stack())) // the stack of a coroutine is not that of its caller
			}
		}()
		f()
		r.ended = true
	})
	r.resume()
	return r
}

// Over reports whether there is nothing left to do.
func (r *Routine) Over() bool { return r.ended || r.dead }

func (r *Routine) resume() {
	outer := r.clock.current
	r.clock.current = r
	r.next()
	r.clock.current = outer
}

// Kill ends a routine: whatever it waits for fails.
func (r *Routine) Kill() {
	r.dead = true
	outer := r.clock.current
	r.clock.current = r
	r.stop()
	r.clock.current = outer
}

// Wait suspends the routine that runs now until begin's callback is called, once.
func (c *Clock) Wait(begin func(wake func())) error {
	r := c.current
	if r == nil {
		panic("sim: waits outside of a routine")
	}
	if r.dead {
		return ErrKilled
	}
	done, waiting := false, false
	begin(func() {
		if done {
			return
		}
		done = true
		if waiting && !r.dead {
			r.resume()
		}
	})
	if done {
		return nil
	}
	waiting = true
	if !r.yield(struct{}{}) {
		return ErrKilled
	}
	return nil
}

// Sleep suspends the routine that runs now for a time.
func (c *Clock) Sleep(d time.Duration) error {
	return c.Wait(func(wake func()) { c.After(d, wake) })
}
