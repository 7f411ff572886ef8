package reward

import (
	"errors"
	"fmt"
)

// Penalty is what a verdict costs and pays; governed.
type Penalty struct {
	SlashPPM  uint32 `cbor:"1,keyasint"` // of the stake, that the loser of a dispute loses
	BountyPPM uint32 `cbor:"2,keyasint"` // of what is lost, that goes to who was right; the rest to the community pool
}

// DefaultSlashPPM is the part of its stake that the loser of a dispute loses, in parts per million.
const DefaultSlashPPM = 500_000

// DefaultPenalty takes half of the stake, and gives half of that to who was right.
func DefaultPenalty() Penalty { return Penalty{SlashPPM: DefaultSlashPPM, BountyPPM: 500_000} }

// ErrPenalty is returned for a penalty that cannot govern.
var ErrPenalty = errors.New("reward: invalid penalty")

// Validate says why a penalty cannot govern: a lie must cost something, also who convicts itself under another name.
func (p Penalty) Validate() error {
	if p.SlashPPM == 0 || p.SlashPPM > million || p.BountyPPM >= million {
		return fmt.Errorf("%w: it takes %d millionths of the stake, wanted 1 to %d, and gives %d of them away, wanted less than %d", ErrPenalty, p.SlashPPM, million, p.BountyPPM, million)
	}
	return nil
}
