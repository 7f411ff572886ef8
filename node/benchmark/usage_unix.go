//go:build unix

package benchmark

import (
	"runtime"
	"syscall"
	"time"
)

// Usage returns the processor time that this process has used on all threads, and the most memory that it has had
// resident, in MiB.
func Usage() (cpu time.Duration, peakMiB int) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, 0
	}
	cpu = time.Duration(u.Utime.Nano() + u.Stime.Nano())
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		return cpu, int(u.Maxrss >> 20) // bytes there, kilobytes elsewhere
	}
	return cpu, int(u.Maxrss >> 10)
}
