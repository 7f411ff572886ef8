// Package coinstake has the rules of stakes in coins other than the network's own. A participant has one in each coin
// in which it takes orders. It backs its work in these orders, in the coin that a lie there would gain, so that no rule
// needs a rate between two coins. Its stake in the network's own coin gives it its seats and votes, as in all orders.
package coinstake

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/registry"
)

// ErrStake is returned for a stake that cannot be added or taken back.
var ErrStake = errors.New("coinstake: not possible")

// Stake is what a participant has locked in one coin, in its grains.
type Stake struct {
	ID       string    `cbor:"1,keyasint"` // participant
	Coin     coin.Coin `cbor:"2,keyasint"`
	Amount   uint64    `cbor:"3,keyasint"`
	Leaving  uint64    `cbor:"4,keyasint,omitempty"` // of it, that backs no new work and is paid out at LeavesAt
	LeavesAt int64     `cbor:"5,keyasint,omitempty"` // height; 0: nothing leaves
	Slashed  uint64    `cbor:"6,keyasint,omitempty"` // so far
}

// Firm is the part that stays: work is leased against it alone. All of the stake can be slashed for past work.
func (s Stake) Firm() uint64 { return s.Amount - s.Leaving }

// Cover is the amount by market.Order.Value that the stake still covers, with leased covered already, as
// registry.Participant.Collateral is of the stake in the network's own coin.
func (s Stake) Cover(params registry.Params, leased uint64) uint64 {
	return registry.Participant{Stake: s.Amount, Leaving: s.Leaving}.Collateral(params, leased)
}

// Add adds an amount.
func (s Stake) Add(amount uint64) (Stake, error) {
	sum, carry := bits.Add64(s.Amount, amount, 0)
	if amount == 0 || carry != 0 {
		return s, fmt.Errorf("%w: %s on top of %s", ErrStake, s.Coin.Text(amount), s.Coin.Text(s.Amount))
	}
	s.Amount = sum
	return s, nil
}

// Leave sets how much of the stake is to leave, in place of an earlier amount: registry.Params.UnstakeBlocks later, and
// not while the participant has a part in a run.
func (s Stake) Leave(amount uint64, params registry.Params, height int64) (Stake, error) {
	if amount > s.Amount {
		return s, fmt.Errorf("%w: %s of a stake of %s", ErrStake, s.Coin.Text(amount), s.Coin.Text(s.Amount))
	}
	if s.Leaving, s.LeavesAt = amount, 0; amount > 0 {
		s.LeavesAt = height + params.UnstakeBlocks
	}
	return s, nil
}

// Release takes out what leaves.
func (s Stake) Release() (after Stake, amount uint64) {
	amount = s.Leaving
	s.Amount -= amount
	s.Leaving, s.LeavesAt = 0, 0
	return s, amount
}

// Take slashes an amount, which the stake must hold.
func (s Stake) Take(amount uint64) (Stake, error) {
	if amount > s.Amount {
		return s, fmt.Errorf("%w: %s from the stake of %s, which is %s", ErrStake, s.Coin.Text(amount), s.ID,
			s.Coin.Text(s.Amount))
	}
	s.Amount -= amount
	s.Slashed += amount
	s.Leaving = min(s.Leaving, s.Amount)
	return s, nil
}
