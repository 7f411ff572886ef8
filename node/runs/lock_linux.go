package runs

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// lockHeld reports whether a process holds a lock on a file, and whether the system tells. It does not touch the lock:
// a run that starts at this moment must not find it taken.
func lockHeld(path string) (held, known bool) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, true
	}
	if err != nil {
		return false, false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false, false
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return false, false
	}
	for l := range strings.Lines(string(locks)) {
		// 1: FLOCK  ADVISORY  WRITE 708 08:01:131133 0 EOF
		if fields := strings.Fields(l); len(fields) > 5 && fields[1] == "FLOCK" &&
			strings.HasSuffix(fields[5], ":"+strconv.FormatUint(uint64(stat.Ino), 10)) {
			return true, true
		}
	}
	return false, true
}
