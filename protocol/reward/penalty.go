package reward

import (
	"errors"
	"fmt"
)

const million = 1_000_000

// Penalty has the slashes and bounties of a verdict; governed.
type Penalty struct {
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

// DefaultPenalty takes at most half of the stake for a first conviction, at least half for another within the memory,
// and gives half of that to the party that was right.
func DefaultPenalty() Penalty {
	return Penalty{
		SlashPPM: DefaultSlashPPM, BountyPPM: 500_000, UnopenedPPM: DefaultUnopenedPPM,
		FirstPPM: DefaultFirstPPM, MemoryBlocks: DefaultMemoryBlocks,
	}
}

// ErrPenalty is returned for a penalty that cannot govern.
var ErrPenalty = errors.New("reward: invalid penalty")

// Validate returns why a penalty cannot govern: a lie must cost something even if its author convicts itself under
// another name.
func (p Penalty) Validate() error {
	if p.UnopenedPPM > million {
		return fmt.Errorf("%w: a seal that is not opened takes %d millionths of the stake, wanted at most %d", ErrPenalty,
			p.UnopenedPPM, million)
	}
	if p.FirstPPM > p.SlashPPM || p.MemoryBlocks < 0 {
		return fmt.Errorf("%w: a first conviction takes %d millionths of the stake at least and %d at most, and is "+
			"remembered for %d blocks",
			ErrPenalty, p.FirstPPM, p.SlashPPM, p.MemoryBlocks)
	}
	if p.SlashPPM == 0 || p.SlashPPM > million || p.BountyPPM >= million {
		return fmt.Errorf("%w: it takes %d millionths of the stake, wanted 1 to %d, and gives %d of them away, wanted "+
			"less than %d", ErrPenalty, p.SlashPPM, million, p.BountyPPM, million)
	}
	return nil
}
