package chain

import (
	"os"
	"runtime/debug"
)

// garbagePercent is how much a validator allocates, in parts of a hundred of what it keeps, between two collections of
// garbage. It keeps little and allocates for every transaction, and what it keeps grows with the accounts of the chain,
// so that to mark it often would make a transaction dearer the more accounts there are.
const garbagePercent = 400

// CollectLess sets the pace of garbage collection for a process that is a validator and little else, unless GOGC says
// what it shall be. The returned function sets it back.
func CollectLess() (restore func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	before := debug.SetGCPercent(garbagePercent)
	return func() { debug.SetGCPercent(before) }
}
