package sim

import (
	"container/heap"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"time"
)

// clock is virtual time: a heap of events, of which one happens after the other. Nothing else runs meanwhile.
type clock struct {
	now     time.Duration // since the start
	events  events
	number  uint64
	current *routine
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

// after plans something.
func (c *clock) after(d time.Duration, do func()) {
	c.number++
	heap.Push(&c.events, occurrence{c.now + d, c.number, do})
}

// step lets the next thing happen; false if there is none.
func (c *clock) step() bool {
	if len(c.events) == 0 {
		return false
	}
	e := heap.Pop(&c.events).(occurrence)
	c.now = e.at
	e.do()
	return true
}

// errKilled ends what a routine does when the process that it belongs to stops.
var errKilled = errors.New("sim: the process is gone")

// routine is blocking code under virtual time. It runs until it waits, and goes on when what it waits for has happened.
// Go's coroutines (iter.Pull) hand over from one to the other: no two run at a time, and no scheduler decides.
type routine struct {
	clock *clock
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
	dead  bool // killed
	ended bool
}

// start runs f as a routine until it first waits.
func (c *clock) start(f func()) *routine {
	r := &routine{clock: c}
	r.next, r.stop = iter.Pull(func(yield func(struct{}) bool) {
		r.yield = yield
		defer func() {
			if v := recover(); v != nil && v != errKilled {
				panic(fmt.Sprintf("%v\n%s", v, debug.Stack())) // the stack of a coroutine is not that of who resumes it
			}
		}()
		f()
		r.ended = true
	})
	r.resume()
	return r
}

// over reports whether there is nothing left to do.
func (r *routine) over() bool { return r.ended || r.dead }

func (r *routine) resume() {
	outer := r.clock.current
	r.clock.current = r
	r.next()
	r.clock.current = outer
}

// kill ends a routine: whatever it waits for fails.
func (r *routine) kill() {
	r.dead = true
	outer := r.clock.current
	r.clock.current = r
	r.stop()
	r.clock.current = outer
}

// wait suspends the routine that runs now until begin's callback is called, once.
func (c *clock) wait(begin func(wake func())) error {
	r := c.current
	if r == nil {
		panic("sim: waits outside of a routine")
	}
	if r.dead {
		return errKilled
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
		return errKilled
	}
	return nil
}

// sleep suspends the routine that runs now for a time.
func (c *clock) sleep(d time.Duration) error {
	return c.wait(func(wake func()) { c.after(d, wake) })
}
