// Package garbage sets how often a validator's process collects garbage. It does not bound the memory of the process;
// node/memory does.
package garbage

import (
	"os"
	"runtime/debug"
)

// garbagePercent is the value of GOGC for a validator: how much it allocates between two garbage collections, in
// percent of its live heap. A validator has a small live heap and allocates for every transaction. The live heap grows
// with the number of accounts, so that with frequent collections a transaction would cost more the more accounts there
// are.
const garbagePercent = 400

// CollectLess sets GOGC to garbagePercent in a process that runs a validator and little else, unless the environment
// sets GOGC. The returned function restores the previous value.
func CollectLess() (restore func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	before := debug.SetGCPercent(garbagePercent)
	return func() { debug.SetGCPercent(before) }
}
