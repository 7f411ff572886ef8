// Package ladder has the scores that a host may show while a contest is under way, so that many answers disclose little
// of the hidden set: the ladder without parameters of Blum and Hardt (The Ladder: A Reliable Leaderboard for Machine
// Learning Competitions, ICML 2015, algorithm 2). A model gets a score of its own only if it is better than the best
// before by a standard error of their difference; any other gets the best score again.
package ladder

import (
	"errors"
	"math/big"
	"math/bits"

	"github.com/starling-network/starling/canon"
)

// grain is what a score is rounded to, in units of losses, of which a nat has 2^20: about 0.01 nats.
const grain = 10_486

// ErrLosses is returned for losses that are of other examples than those before.
var ErrLosses = errors.New("ladder: the losses are not of the same examples")

// Ladder is what was shown so far. The zero value has shown nothing.
type Ladder struct {
	Shown   uint64   `cbor:"1,keyasint"` // the best score, in units of losses
	Best    []uint32 `cbor:"2,keyasint"` // losses of the model that has it
	Queries uint64   `cbor:"3,keyasint"`
}

// Decode reads the canonical bytes of a ladder.
func Decode(b []byte) (l Ladder, err error) { return l, canon.Unmarshal(b, &l) }

// Score is the score that is shown for the losses of a model, and whether it is a new best one.
func (l Ladder) Score(losses []uint32) (_ Ladder, score uint64, better bool, _ error) {
	if len(losses) == 0 || l.Best != nil && len(losses) != len(l.Best) {
		return l, 0, false, ErrLosses
	}
	l.Queries++
	if l.Best != nil && !clearly(l.Best, losses) {
		return l, l.Shown, false, nil
	}
	sum := uint64(0)
	for _, x := range losses {
		sum += uint64(x)
	}
	mean := sum / uint64(len(losses))
	l.Shown, l.Best = (mean+grain/2)/grain*grain, losses
	return l, l.Shown, true, nil
}

// clearly reports whether the mean gain of losses over those before is above its standard error: for gains with the sum
// s and the sum of squares q, whether s is positive and s²(n+1) > qn.
func clearly(before, losses []uint32) bool {
	sum, high, low := int64(0), uint64(0), uint64(0)
	for i := range losses {
		gain := int64(before[i]) - int64(losses[i])
		sum += gain
		var carry uint64
		low, carry = bits.Add64(low, uint64(gain*gain), 0) // a gain has 32 bits
		high += carry
	}
	if sum <= 0 {
		return false
	}
	squares := new(big.Int).SetUint64(high)
	squares.Add(squares.Lsh(squares, 64), new(big.Int).SetUint64(low))
	left := new(big.Int).Mul(big.NewInt(sum), big.NewInt(sum))
	n := int64(len(losses))
	return left.Mul(left, big.NewInt(n+1)).Cmp(squares.Mul(squares, big.NewInt(n))) > 0
}
