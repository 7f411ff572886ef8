package home

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Lock keeps other processes out of a folder until unlock, or the end of the process. The error is ErrInUse if one is
// in.
func Lock(dir string) (unlock func() error, err error) {
	f, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %s", ErrInUse, dir), f.Close())
	}
	return f.Close, nil
}
