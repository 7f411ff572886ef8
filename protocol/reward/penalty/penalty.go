// Package penalty has the rules of how much of a stake a conviction takes. It knows no coins and no runs.
package penalty

import (
	"errors"
	"fmt"

	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/market"
)

const million = 1_000_000

// Params are the slashes and bounties of a verdict; governed.
type Params struct {
	SlashPPM  uint32 `cbor:"1,keyasint"` // of the stake, that the loser of a dispute loses
	BountyPPM uint32 `cbor:"2,keyasint"` // of the slash, to the party that was right; the rest to the community pool

	// of the stake, that a verifier loses if it does not open its seal; all of it to the community pool
	UnopenedPPM uint32 `cbor:"3,keyasint"`

	FirstPPM     uint32 `cbor:"4,keyasint,omitempty"` // of the stake, that a first conviction takes at least, see Taken
	MemoryBlocks int64  `cbor:"5,keyasint,omitempty"` // for which a conviction is remembered; 0: all take SlashPPM
}

// DefaultSlashPPM is the part of its stake that the loser of a dispute loses, in parts per million.
const DefaultSlashPPM = 500_000

// DefaultUnopenedPPM is the part of its stake that a seal which is not opened costs, in parts per million: little,
// since a machine that stops after it sealed does not open it either.
const DefaultUnopenedPPM = 20_000

// DefaultFirstPPM is the part of its stake that a first conviction takes at least, in parts per million.
const DefaultFirstPPM = 100_000

// DefaultMemoryBlocks is for how many blocks a conviction is remembered: thirty days of one second each.
const DefaultMemoryBlocks = 2_592_000

// Default takes at most half of the stake for a first conviction, at least half for another within the memory,
// and gives half of that to the party that was right.
func Default() Params {
	return Params{
		SlashPPM: DefaultSlashPPM, BountyPPM: 500_000, UnopenedPPM: DefaultUnopenedPPM,
		FirstPPM: DefaultFirstPPM, MemoryBlocks: DefaultMemoryBlocks,
	}
}

// ErrParams is returned for parameters that cannot govern.
var ErrParams = errors.New("reward: invalid penalty")

// Validate returns why a penalty cannot govern: a lie must cost something even if its author convicts itself under
// another name.
func (p Params) Validate() error {
	if p.UnopenedPPM > million {
		return fmt.Errorf("%w: a seal that is not opened takes %d millionths of the stake, wanted at most %d", ErrParams,
			p.UnopenedPPM, million)
	}
	if p.FirstPPM > p.SlashPPM || p.MemoryBlocks < 0 {
		return fmt.Errorf("%w: a first conviction takes %d millionths of the stake at least and %d at most, and is "+
			"remembered for %d blocks",
			ErrParams, p.FirstPPM, p.SlashPPM, p.MemoryBlocks)
	}
	if p.SlashPPM == 0 || p.SlashPPM > million || p.BountyPPM >= million {
		return fmt.Errorf("%w: it takes %d millionths of the stake, wanted 1 to %d, and gives %d of them away, wanted "+
			"less than %d", ErrParams, p.SlashPPM, million, p.BountyPPM, million)
	}
	return nil
}

// Conviction is the convicted account, as far as its penalty depends on it. Amounts are in grains of one coin.
type Conviction struct {
	Stake uint64 // now
	Bond  uint64 // that a conviction must take so that no lie gains (market.Order.Value)
	Least uint64 // the smallest stake of its role
	Again bool   // it was convicted within MemoryBlocks
}

// Taken is the amount that a conviction takes of a stake. A first one takes an amount that deters: the bond
// of the seat that lied, raised by the share of the accuser, which may be an accomplice; and never less than FirstPPM
// of the stake, nor than SlashPPM of the smallest stake. It is bounded by SlashPPM of the stake. So a machine that
// erred once costs an honest owner of a large stake a small part of it, and a liar loses no less than its lie could
// gain, since the stake of all its seats is at least cover times their bonds (market.Order.Stake). A further
// conviction within MemoryBlocks takes at least SlashPPM of the stake, and the bond.
func (p Params) Taken(c Conviction) uint64 {
	half := market.Share(c.Stake, p.SlashPPM)
	if p.MemoryBlocks == 0 {
		return half
	}
	deters := grossed(c.Bond, p.BountyPPM)
	if c.Again {
		return min(c.Stake, max(half, deters))
	}
	return min(half, max(deters, market.Share(c.Stake, p.FirstPPM), market.Share(min(c.Stake, c.Least), p.SlashPPM)))
}

// grossed is the amount of which amount is left after a part in parts per million of it is given away, rounded up.
func grossed(amount uint64, ppm uint32) uint64 {
	return audit.Ratio(amount, million, uint64(million-min(ppm, million)))
}
