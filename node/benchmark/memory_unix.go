//go:build unix

package benchmark

import (
	"runtime"
	"syscall"
)

// peakMiB is the most memory that this process has had resident, in MiB.
func peakMiB() int {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		return int(u.Maxrss >> 20) // bytes there, kilobytes elsewhere
	}
	return int(u.Maxrss >> 10)
}
