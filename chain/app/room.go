package app

import (
	"fmt"

	sdk "github.com/cosmos/cosmos-sdk/types"
)

// Limits of gas.
const (
	// of a block, in the genesis of a new network; what is free is measured by it where a network has no limit
	BlockGas = 200_000_000
	MaxGas   = 100_000_000 // of a transaction, paid or not: more than the opening of the largest work takes
)

// What transactions without the price of the chain may take of a block, whoever proposes it: duties the lane that an
// honest proposer gives them, other transactions an eighth of that limit, and one account mostOfOne transactions.
const (
	mostFree    = 4096 // transactions
	mostGranted = 256
	mostOfOne   = 16
	gasOfOne    = 24_000_000 // but for moves of disputes, of which the largest takes more
	laneOf4     = 3          // quarters
	grantedPart = 8          // an eighth
)

// share is what is left of a part of a block.
type share struct {
	count int
	bytes int64
	gas   uint64
}

func (s share) fits(d declared) bool { return s.count > 0 && s.bytes >= d.bytes && s.gas >= d.gas }

func (s *share) take(d declared) {
	s.count--
	s.bytes -= d.bytes
	s.gas -= d.gas
}

func (s *share) give(d declared) {
	s.count++
	s.bytes += d.bytes
	s.gas += d.gas
}

// room is what is left of a block. It depends on the state before the block alone, so that who proposes and who votes
// count the same.
type room struct {
	limited bool  // the block has a limit of gas
	all     share // but for bytes, of which CometBFT takes care
	free    share // of what does not pay
	granted share // of that, for what is no duty
	of      map[string]*share
}

func newRoom(ctx sdk.Context) *room {
	const unlimited = 100 << 20 // bytes, of CometBFT
	bytes, gas, limited := int64(unlimited), uint64(BlockGas), false
	if b := ctx.ConsensusParams().Block; b != nil {
		if b.MaxBytes > 0 {
			bytes = b.MaxBytes
		}
		if b.MaxGas > 0 {
			gas, limited = uint64(b.MaxGas), true
		}
	}
	return &room{
		limited: limited, all: share{1 << 30, 1 << 40, gas}, of: map[string]*share{},
		free:    share{mostFree, bytes / 4 * laneOf4, gas / 4 * laneOf4},
		granted: share{mostGranted, bytes / grantedPart, gas / grantedPart},
	}
}

// take takes the room of a transaction, or says why there is none, and leaves it as it was.
func (r *room) take(d declared, paid bool) error {
	own := d // of its account's share
	if d.moves {
		own.gas = 0
	}
	if r.of[d.account] == nil {
		r.of[d.account] = &share{mostOfOne, 2 * MaxTx, gasOfOne}
	}
	switch {
	case d.gas == 0 || d.gas > MaxGas:
		return fmt.Errorf("a limit of %d units of gas, 1 to %d may be", d.gas, MaxGas)
	case r.limited && !r.all.fits(d):
		return fmt.Errorf("%d units of gas, %d are left of the block", d.gas, r.all.gas)
	case paid:
	case d.account == "":
		return fmt.Errorf("nothing is paid, and it is not of one account")
	case !r.free.fits(d):
		return fmt.Errorf("%d bytes and %d units of gas, %d and %d are left of what is free in a block", d.bytes, d.gas,
			r.free.bytes, r.free.gas)
	case !d.owed && !r.granted.fits(d):
		return fmt.Errorf("%d bytes and %d units of gas, %d and %d are left of what is free in a block and no duty", d.bytes,
			d.gas, r.granted.bytes, r.granted.gas)
	case !r.of[d.account].fits(own):
		return fmt.Errorf("%s has at most %d transactions and %d units of gas in a block for nothing", d.account, mostOfOne,
			gasOfOne)
	}
	if r.limited {
		r.all.take(d)
	}
	if paid {
		return nil
	}
	r.free.take(d)
	if !d.owed {
		r.granted.take(d)
	}
	r.of[d.account].take(own)
	return nil
}
