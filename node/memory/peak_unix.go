//go:build unix

package memory

import (
	"runtime"
	"syscall"
)

// Peak is the most memory that this process has had resident, in bytes; 0 where that is not known.
func Peak() uint64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		return uint64(u.Maxrss) // bytes there, kilobytes elsewhere
	}
	return uint64(u.Maxrss) << 10
}
