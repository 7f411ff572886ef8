package memory

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// What the collector may leave uncollected: an eighth of what lives, and leastGarbage at least, but never more than
// lives. Nearly all of what lives are elements of tensors, which the collector does not look at, so that it costs
// little to let it run often.
const (
	garbageShare = 8
	leastGarbage = 96 << 20
)

// limitShare is the part of the memory that a process is given beyond which the collector does all it can, in percent.
const limitShare = 90

var pace struct {
	sync.Mutex
	users  int
	before int // percent
}

// Pace keeps the garbage of this process small beside what lives until the returned function is called, whatever the
// number of calls at a time, and lets the collector work harder near limit bytes; 0: near what the machine or the
// control group has. GOGC and GOMEMLIMIT, where they are set, hold instead.
func Pace(limit uint64) (restore func()) {
	if _, total, ok := Available(); ok && (limit == 0 || limit > total) {
		limit = total
	}
	if os.Getenv("GOMEMLIMIT") == "" && limit > 0 && limit <= math.MaxInt64/100 {
		debug.SetMemoryLimit(int64(limit) / 100 * limitShare)
	}
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

// watch sets the percentage again after every collection, as long as somebody wants it.
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
	return percent(live[0].Value.Uint64())
}

// percent is the garbage that is allowed beside so many bytes that live, in parts of a hundred of them.
func percent(live uint64) int {
	garbage := min(max(live/garbageShare, leastGarbage), live)
	if live == 0 {
		return 100
	}
	return max(1, int(garbage*100/live))
}
