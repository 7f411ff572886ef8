//go:build unix

package folder

import (
	"os"
	"syscall"
)

// exclusive locks an open file until it is closed.
func exclusive(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
