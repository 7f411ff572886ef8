//go:build !linux

package opencl

import "errors"

// open loads no library here.
func open(string) (find func(name string) (uintptr, error), err error) {
	return nil, errors.New("devices are used on Linux alone")
}
