package kernel

import (
	"runtime"
	"sync"
)

// Cores is how many processors the process may use, as Go found them when it began: how many threads are worth while.
// No result depends on it.
var Cores = runtime.GOMAXPROCS(0)

// Parallel cuts [0, n) into at most threads ranges of nearly equal length, calls f on each at the same time and returns
// when all are done. The cut depends on threads and n alone. f must write only what belongs to its range, so that no
// result depends on the number of threads.
func Parallel(threads, n int, f func(lo, hi int)) {
	threads = min(threads, n)
	if threads <= 1 {
		if n > 0 {
			f(0, n)
		}
		return
	}
	var wait sync.WaitGroup
	for t := 1; t < threads; t++ {
		wait.Go(func() { f(t*n/threads, (t+1)*n/threads) })
	}
	f(0, n/threads)
	wait.Wait()
}
