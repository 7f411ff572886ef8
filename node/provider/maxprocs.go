package provider

import (
	"os"
	"runtime"

	"github.com/starling-network/starling/compute/kernel"
)

// spare is how many goroutines may run beside as many as there are processors. One that computes is made to let another
// go on after 10 ms, and the network and the chain would wait behind all of them, message by message. The operating
// system, which shares the processors out among more threads than there are, lets those go first that have waited.
const spare = 16

// SetMaxProcs lets more goroutines of this process run at a time than there are processors, unless the variable
// GOMAXPROCS says how many may.
func SetMaxProcs() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(kernel.Cores + spare)
	}
}
