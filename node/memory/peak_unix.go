//go:build unix

package memory

import (
	"os"
	"runtime"
	"syscall"
)

// Peak is the most memory that this process has had resident, in bytes; 0 where that is not known.
func Peak() uint64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return inBytes(u.Maxrss)
}

// PeakOf is the Peak of a process that has ended, or of a process that it started, if that had more.
func PeakOf(s *os.ProcessState) uint64 {
	if s != nil {
		if u, ok := s.SysUsage().(*syscall.Rusage); ok {
			return inBytes(u.Maxrss)
		}
	}
	return 0
}

func inBytes(maxrss int64) uint64 {
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		return uint64(maxrss) // bytes there, kilobytes elsewhere
	}
	return uint64(maxrss) << 10
}
