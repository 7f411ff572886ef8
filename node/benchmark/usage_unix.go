//go:build unix

package benchmark

import (
	"syscall"
	"time"

	"github.com/starling-network/starling/node/memory"
)

// Usage returns the processor time that this process has used on all threads, and the most memory that it has had
// resident, in MiB.
func Usage() (cpu time.Duration, peakMiB int) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), int(memory.Peak() >> 20)
}
