// Package room counts the room in a block: the gas of all transactions, and the part of the block for those that do not
// pay the gas price of the chain. The proposer and the voters count the same. Other packages decide which transactions
// are duties.
package room

import (
	"fmt"

	sdk "github.com/cosmos/cosmos-sdk/types"
)

// Limits of gas, in units.
const (
	// of a block, in the genesis of a new network; where a network has no limit, the room for free transactions follows
	// from it
	BlockGas = 200_000_000
	MaxGas   = 100_000_000 // of a transaction, paid or not: more than opening the largest job takes
)

// MaxTx is the size limit of a transaction in bytes, paid or not, in a block or simulated.
const MaxTx = 5 << 20

// Limits of the transactions in a block that do not pay the gas price of the chain, with any proposer: duties the share
// that an honest proposer gives them (Front), other transactions an eighth of the gas and of the bytes, and one account
// mostOfOne transactions.
const (
	mostFree    = 4096 // transactions
	mostGranted = 256
	mostOfOne   = 16
	gasOfOne    = 24_000_000 // except for moves of disputes, the largest of which takes more
	laneOf4     = 3          // quarters
	GrantedPart = 8          // an eighth
)

// Share is the remaining room of a part of a block.
type Share struct {
	Count int
	Bytes int64
	Gas   uint64
}

// Fits reports whether there is room for a transaction.
func (s Share) Fits(d Declared) bool { return s.Count > 0 && s.Bytes >= d.Bytes && s.Gas >= d.Gas }

// Take subtracts a transaction.
func (s *Share) Take(d Declared) {
	s.Count--
	s.Bytes -= d.Bytes
	s.Gas -= d.Gas
}

// Give adds a transaction back.
func (s *Share) Give(d Declared) {
	s.Count++
	s.Bytes += d.Bytes
	s.Gas += d.Gas
}

// Room is the remaining room of a block. It depends only on the state before the block, so that the proposer and the
// voters count the same.
type Room struct {
	limited bool  // whether the block has a gas limit
	all     Share // of all transactions; CometBFT limits the bytes
	free    Share // of transactions that do not pay
	granted Share // of those, transactions that are no duties
	of      map[string]*Share
}

// New returns the room of the block of a context.
func New(ctx sdk.Context) *Room {
	const unlimited = 100 << 20 // bytes, as CometBFT reads -1
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

// Front is the share of a block that an honest proposer fills with duties first. bytes is the size limit of the block.
func (r *Room) Front(bytes int64) Share {
	return Share{mostFree, bytes / 4 * laneOf4, r.all.Gas / 4 * laneOf4}
}

// Take subtracts a transaction, or returns an error that says why there is no room for it and changes nothing.
func (r *Room) Take(d Declared, paid bool) error {
	own := d // counted against the share of its account
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
		return fmt.Errorf("%d bytes and %d units of gas, %d and %d are left of the free share of a block", d.Bytes, d.Gas,
			r.free.Bytes, r.free.Gas)
	case !d.Owed && !r.granted.Fits(d):
		return fmt.Errorf("%d bytes and %d units of gas, %d and %d are left of the free share of a block for transactions "+
			"that are no duty", d.Bytes, d.Gas, r.granted.Bytes, r.granted.Gas)
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
