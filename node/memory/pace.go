package memory

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// The collector may leave garbage uncollected: an eighth of the live bytes, and TightGarbage at least, but never more
// than the live bytes; TightGarbage at most in a process that Tight was called for; and in one that Bare was called for
// a sixteenth, bareGarbage at least, and TightGarbage at most. It is never more than half of the memory that the system
// has left, which other programs may take at any time, or else bareGarbage. Nearly all live bytes are elements of
// tensors, which the collector does not look at, so that it costs little to let it run often.
const (
	GarbageShare = 8
	TightGarbage = 96 << 20
	bareShare    = 16
	bareGarbage  = 16 << 20
)

// limitShare is the part of the memory that a process is given beyond which the collector does all it can, in percent.
const limitShare = 90

var pace struct {
	sync.Mutex
	users  int
	tight  int // of the users, those that allow TightGarbage only
	bare   int // and those of a process that has nothing but tensors
	before int // percent
}

var dropped = sync.OnceFunc(dropProgram)

// Pace keeps the garbage of this process small in comparison with its live bytes until the returned function is called,
// whatever the number of calls at a time, and lets the collector work harder near limit bytes; 0: near the memory of
// the machine or the control group. The first call drops the pages of the program that its start has read. GOGC and
// GOMEMLIMIT, where they are set, hold instead.
func Pace(limit uint64) (restore func()) {
	if _, total, ok := Available(); ok && (limit == 0 || limit > total) {
		limit = total
	}
	if os.Getenv("GOMEMLIMIT") == "" && limit > 0 && limit <= math.MaxInt64/100 {
		debug.SetMemoryLimit(int64(limit) / 100 * limitShare)
	}
	dropped()
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	pace.Lock()
	defer pace.Unlock()
	if pace.users++; pace.users == 1 {
		pace.before = debug.SetGCPercent(percentNow())
		watch()
	}
	return sync.OnceFunc(func() {
		pace.Lock()
		defer pace.Unlock()
		if pace.users--; pace.users == 0 {
			debug.SetGCPercent(pace.before)
		}
	})
}

// Tight lets this process leave TightGarbage uncollected at most while it is paced, until the returned function is
// called. It is for processes in which nearly all live bytes are tensors: looking through other data that often takes
// long.
func Tight() (restore func()) { return tighten(&pace.tight) }

// Bare is Tight for a process that computes units, and has no chain, no peers and no clients: garbage is smaller still.
// Earlier garbage, and the pages of the program's file that were read up to here, leave the memory at once; those that
// are read later leave it every dropEvery.
func Bare() (restore func()) {
	tightened := tighten(&pace.bare)
	sweep()
	ended := make(chan struct{})
	go dropUntil(ended)
	return sync.OnceFunc(func() {
		close(ended)
		tightened()
	})
}

// Rest lets this process leave as little garbage as after Bare until the returned function is called: it computes
// nothing meanwhile, so that a collection more delays no unit.
func Rest() (restore func()) { return tighten(&pace.bare) }

// dropEvery is the time after which pages of the program leave the memory of a process that Bare was called for. A
// collection reads the descriptions of types all over the program's file, and its neighbours come with every page.
const dropEvery = 20 * time.Millisecond

// dropUntil drops the pages of the program again and again, until ended is closed.
func dropUntil(ended <-chan struct{}) {
	again := time.NewTicker(dropEvery)
	defer again.Stop()
	for {
		select {
		case <-ended:
			return
		case <-again.C:
			dropProgram()
		}
	}
}

func tighten(users *int) (restore func()) {
	add := func(n int) {
		pace.Lock()
		defer pace.Unlock()
		*users += n
		if pace.users > 0 {
			debug.SetGCPercent(percentNow())
		}
	}
	add(1)
	return sync.OnceFunc(func() { add(-1) })
}

// Start sweeps, and returns the bytes that a process has resident before its work: code, the types that it has
// registered, and the collector's own; 0 where that is not known.
func Start() uint64 {
	sweep()
	return resident()
}

// sweep gives back what the steps of a process up to here have left, as those that make a job ready: garbage, and the
// pages of the program's file, which are mapped again when they are needed.
func sweep() {
	debug.FreeOSMemory()
	dropProgram()
}

// watch sets the percentage again after every collection, as long as a caller wants it.
func watch() {
	runtime.AddCleanup(new([64]byte), func(struct{}) {
		pace.Lock()
		defer pace.Unlock()
		if pace.users > 0 {
			debug.SetGCPercent(percentNow())
			watch()
		}
	}, struct{}{})
}

func percentNow() int {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	left, _, ok := Available()
	if !ok {
		left = math.MaxUint64
	}
	return percent(live[0].Value.Uint64(), left, pace.tight > 0, pace.bare > 0)
}

// percent is the garbage that the collector allows with live bytes, as a percentage of these, while the system has some
// bytes left.
func percent(live, left uint64, tight, bare bool) int {
	garbage := max(live/GarbageShare, TightGarbage)
	if bare {
		garbage = max(live/bareShare, bareGarbage)
	}
	if tight || bare {
		garbage = min(garbage, TightGarbage)
	}
	garbage = min(garbage, max(left/2, bareGarbage))
	if live == 0 {
		return 100
	}
	return max(1, int(min(garbage, live)*100/live))
}
