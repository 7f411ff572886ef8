package boxed

import (
	"os"

	"golang.org/x/sys/unix"
)

// shared makes a piece of memory that a child can inherit, empty yet.
func shared(string) (*os.File, error) {
	fd, err := unix.MemfdCreate("starling-child", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "starling-child"), nil
}

// fix gives shared memory its size, for good: who shares it cannot make it larger or smaller.
func fix(f *os.File, size int64) error {
	if err := f.Truncate(size); err != nil {
		return err
	}
	_, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	return err
}
