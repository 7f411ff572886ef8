// Package maxprocs says how many goroutines of a process may run at a time. It counts no processors; that is package
// kernel.
package maxprocs

import (
	"os"
	"runtime"

	"github.com/starling-network/starling/compute/kernel"
)

// spare is the number of goroutines that may run in addition to one for each processor. The runtime interrupts a
// computing goroutine after 10 ms only, so the network and the chain would wait behind all of them, message by message.
// The operating system shares the processors among more threads than there are, and runs those first that have waited.
const spare = 16

// Set lets more goroutines run at a time than there are processors, unless GOMAXPROCS says how many may.
func Set() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(kernel.Cores + spare)
	}
}
