package capacity

import (
	"os"

	"golang.org/x/sys/unix"
)

// dropCached asks the system to forget the pages of a file.
func dropCached(f *os.File) { _ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) }
