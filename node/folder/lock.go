package folder

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrInUse is returned for a folder that another process has locked.
var ErrInUse = errors.New("folder: another process uses it")

// Lock keeps other processes out of a folder until unlock, or the end of the process. The error is ErrInUse if one is
// in.
func Lock(dir string) (unlock func() error, err error) {
	f, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := exclusive(f); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %s", ErrInUse, dir), f.Close())
	}
	return f.Close, nil
}
