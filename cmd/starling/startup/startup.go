// Package startup holds the garbage collector back while the packages of the program are initialised. Most of those are message
// types of the chain, which register 20 MB of descriptors that stay: collecting five times on the way costs a fifth of
// the start and frees next to nothing. It knows nothing of what is initialised.
//
// It depends on nothing but the runtime, so that it is initialised before whatever waits for another package; the order
// decides how much is saved, never what happens.
package startup

import "runtime/debug"

var percent = debug.SetGCPercent(-1)

// Done lets the collector go on as GOGC says. The first line of main calls it.
func Done() { debug.SetGCPercent(percent) }
