// Package startup holds the garbage collector back while the packages of the program are initialised. Most of those
// are message types of the chain, which register 20 MB of descriptors that stay: five collections during the start
// cost a fifth of its time and free almost nothing. The package knows nothing of the initialised packages.
//
// It depends on little of the standard library, so that it is initialised before packages that wait for another; the
// order changes the time saved, never the behaviour.
package startup

import (
	"runtime/debug"
	"time"
)

var percent = debug.SetGCPercent(-1)

// grace is how long the collector waits after that. It would begin at once, because of the descriptors, and a command
// that only says something ends before it is through them.
const grace = 100 * time.Millisecond

// Done restores the collector to GOGC a moment later. The first line of main calls it.
func Done() {
	time.AfterFunc(grace, func() {
		if now := debug.SetGCPercent(percent); now >= 0 { // a command has chosen another meanwhile
			debug.SetGCPercent(now)
		}
	})
}
