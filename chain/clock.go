package chain

import (
	"errors"
	"fmt"
	"time"
)

// ErrClock says that a validator cannot take part because its clock is slow.
var ErrClock = errors.New("chain: the clock of this machine is wrong")

// maxLag is how far the clock of a validator may be behind the time of a block, which is the median of what the
// validators found.
const maxLag = time.Minute

// OnTime says whether the clock of a validator is not behind a block. One that is waits for what is the past for the
// others: CometBFT sleeps until the genesis that it has, and until the time of the next block.
func OnTime(now, block time.Time) error {
	if behind := block.Sub(now); behind > maxLag {
		return fmt.Errorf("%w: it is %v behind the latest block", ErrClock, behind.Round(time.Second))
	}
	return nil
}
