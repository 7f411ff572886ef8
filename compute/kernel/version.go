package kernel

import (
	"errors"
	"fmt"
)

// Versions of the numerics, which a program names. They differ in the elementary functions and in all that is computed
// with them (package elementary): everything else has the same bits in both.
const (
	Version1 uint32 = 1
	Version2 uint32 = 2
	Newest          = Version2
)

// ErrVersion wraps the reason why something of a version of the numerics is refused that this build does not compute.
var ErrVersion = errors.New("unknown version of the numerics")

// Knows returns an error that wraps ErrVersion unless this build computes a version of the numerics.
func Knows(version uint32) error {
	if version < Version1 || version > Newest {
		return fmt.Errorf("%w: %d; this build computes versions %d to %d", ErrVersion, version, Version1, Newest)
	}
	return nil
}
