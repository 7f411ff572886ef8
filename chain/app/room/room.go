// Package room is what transactions may take of a block: all of them its gas, and those that do not pay the price of
// the chain a part of it. Who proposes and who votes count the same. Which duties an account has is decided elsewhere.
package room

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

// MaxTx is how many bytes every transaction has at most, paid or not, in a block or simulated.
const MaxTx = 5 << 20

// What transactions without the price of the chain may take of a block, whoever proposes it: duties the lane that an
// honest proposer gives them, other transactions an eighth of that limit, and one account mostOfOne transactions.
const (
	mostFree    = 4096 // transactions
	mostGranted = 256
	mostOfOne   = 16
	gasOfOne    = 24_000_000 // but for moves of disputes, of which the largest takes more
	laneOf4     = 3          // quarters
	GrantedPart = 8          // an eighth
)

// Share is what is left of a part of a block.
type Share struct {
	Count int
	Bytes int64
	Gas   uint64
}

// Fits reports whether there is room for a transaction.
func (s Share) Fits(d Declared) bool { return s.Count > 0 && s.Bytes >= d.Bytes && s.Gas >= d.Gas }

// Take takes the room of a transaction.
func (s *Share) Take(d Declared) {
	s.Count--
	s.Bytes -= d.Bytes
	s.Gas -= d.Gas
}

// Give gives it back.
func (s *Share) Give(d Declared) {
	s.Count++
	s.Bytes += d.Bytes
	s.Gas += d.Gas
}

// Room is what is left of a block. It depends on the state before the block alone, so that who proposes and who votes
// count the same.
type Room struct {
	limited bool  // the block has a limit of gas
	all     Share // but for bytes, of which CometBFT takes care
	free    Share // of what does not pay
	granted Share // of that, for what is no duty
	of      map[string]*Share
}

// New is the room of the block that a context is of.
func New(ctx sdk.Context) *Room {
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
	return &Room{
		limited: limited, all: Share{1 << 30, 1 << 40, gas}, of: map[string]*Share{},
		free:    Share{mostFree, bytes / 4 * laneOf4, gas / 4 * laneOf4},
		granted: Share{mostGranted, bytes / GrantedPart, gas / GrantedPart},
	}
}

// Front is the share of a block of the given size, in bytes, that an honest proposer fills with duties first.
func (r *Room) Front(bytes int64) Share {
	return Share{mostFree, bytes / 4 * laneOf4, r.all.Gas / 4 * laneOf4}
}

// Take takes the room of a transaction, or says why there is none, and leaves it as it was.
func (r *Room) Take(d Declared, paid bool) error {
	own := d // of its account's share
	if d.Moves {
		own.Gas = 0
	}
	if r.of[d.Account] == nil {
		r.of[d.Account] = &Share{mostOfOne, 2 * MaxTx, gasOfOne}
	}
	switch {
	case d.Gas == 0 || d.Gas > MaxGas:
		return fmt.Errorf("a limit of %d units of gas, 1 to %d may be", d.Gas, MaxGas)
	case r.limited && !r.all.Fits(d):
		return fmt.Errorf("%d units of gas, %d are left of the block", d.Gas, r.all.Gas)
	case paid:
	case d.Account == "":
		return fmt.Errorf("nothing is paid, and it is not of one account")
	case !r.free.Fits(d):
		return fmt.Errorf("%d bytes and %d units of gas, %d and %d are left of what is free in a block", d.Bytes, d.Gas,
			r.free.Bytes, r.free.Gas)
	case !d.Owed && !r.granted.Fits(d):
		return fmt.Errorf("%d bytes and %d units of gas, %d and %d are left of what is free in a block and no duty", d.Bytes,
			d.Gas, r.granted.Bytes, r.granted.Gas)
	case !r.of[d.Account].Fits(own):
		return fmt.Errorf("%s has at most %d transactions and %d units of gas in a block for nothing", d.Account, mostOfOne,
			gasOfOne)
	}
	if r.limited {
		r.all.Take(d)
	}
	if paid {
		return nil
	}
	r.free.Take(d)
	if !d.Owed {
		r.granted.Take(d)
	}
	r.of[d.Account].Take(own)
	return nil
}
