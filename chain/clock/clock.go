// Package clock compares the clock of a validator with the time of the blocks. It sets no clock.
package clock

import (
	"errors"
	"fmt"
	"time"
)

// ErrClock says that a validator cannot take part because its clock is slow.
var ErrClock = errors.New("clock: the clock of this machine is wrong")

// maxLag is how far the clock of a validator may be behind the time of a block. CometBFT computes the time of a block
// as the median of the validators' clocks.
const maxLag = time.Minute

// OnTime returns ErrClock if the clock of a validator is more than maxLag behind the time of a block. Such a validator
// would stall: CometBFT sleeps until the time of the genesis and until the time of the next block.
func OnTime(now, block time.Time) error {
	if behind := block.Sub(now); behind > maxLag {
		return fmt.Errorf("%w: it is %v behind the latest block", ErrClock, behind.Round(time.Second))
	}
	return nil
}
