package market

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/starling-network/starling/protocol/market/cost"
)

// Parameters until governance changes them, and the most that they may say.
const (
	FeePPM   = 50_000 // share of every payment that goes to the community pool, in parts per million
	GasPrice = 10_000 // of a million units of gas, in uzen

	MostNumerics = 2             // the newest version of the numerics; a build that raises it has an upgrade
	mostGasPrice = 1_000_000_000 // 1,000 uzen for a unit of gas: a higher price is an error of the proposer
)

// Params are governed.
type Params struct {
	FeePPM      uint32 `cbor:"1,keyasint"`           // of every payment, to the community pool
	PauseBlocks int64  `cbor:"2,keyasint"`           // that a run may be paused at a time before it is cancelled
	GasPrice    uint64 `cbor:"3,keyasint"`           // of a million units of gas, in uzen; 0: nothing
	Numerics    uint32 `cbor:"4,keyasint,omitempty"` // version of the numerics that orders must have; 0: 1

	NextNumerics   uint32 `cbor:"5,keyasint,omitempty"` // from NumericsHeight on; 0: no change is scheduled
	NumericsHeight int64  `cbor:"6,keyasint,omitempty"`
}

// NumericsAt is the version of the numerics that an order at a height must have.
func (p Params) NumericsAt(height int64) uint32 {
	if p.NextNumerics > 0 && height >= p.NumericsHeight {
		return p.NextNumerics
	}
	return max(p.Numerics, 1)
}

// Follows returns why parameters cannot follow those in force at a height: the numerics change at a later one, and a
// scheduled change is not dropped by parameters that name none.
func (p Params) Follows(now Params, height int64) error {
	if was, is := now.NumericsAt(height), p.NumericsAt(height); was != is {
		return fmt.Errorf("%w: version %d of the numerics would be version %d at once", ErrParams, was, is)
	}
	if p.NextNumerics == 0 && now.NextNumerics > 0 && height < now.NumericsHeight {
		return fmt.Errorf("%w: numerics %d are scheduled: name them or the version in force", ErrParams, now.NextNumerics)
	}
	return nil
}

// DefaultPrice is the price of a participant that names none, in uzen per 10^15 floating-point operations.
const DefaultPrice = 1_000_000_000

// DefaultParams are those of a network that has decided nothing.
func DefaultParams() Params { return Params{FeePPM, 600_000, GasPrice, 1, 1, 1} }

// Validate returns why parameters cannot govern.
func (p Params) Validate() error {
	newest := max(p.Numerics, p.NextNumerics)
	switch {
	case p.FeePPM > million || p.PauseBlocks < 1:
		return fmt.Errorf("%w: a fee of %d millionths, pauses of %d blocks", ErrParams, p.FeePPM, p.PauseBlocks)
	case newest > MostNumerics:
		return fmt.Errorf("%w: version %d of the numerics, the newest is %d", ErrParams, newest, MostNumerics)
	case p.GasPrice > mostGasPrice:
		return fmt.Errorf("%w: %d uzen for a million units of gas, at most %d", ErrParams, p.GasPrice, mostGasPrice)
	}
	return nil
}

// Errors of parameters that cannot govern, and of an order in another version of the numerics than is in force.
var (
	ErrParams   = errors.New("market: invalid parameters")
	ErrNumerics = errors.New("market: another version of the numerics is in force")
)

// Escrow is the locked budget of one job, in grains of the coin of its order. At every moment Budget = Paid + Fee +
// Refunded + Remaining.
type Escrow struct {
	Budget   uint64 `cbor:"1,keyasint"`
	Paid     uint64 `cbor:"2,keyasint"` // net, to those who worked
	Fee      uint64 `cbor:"3,keyasint"` // to the community pool
	Refunded uint64 `cbor:"4,keyasint"` // to the consumer
}

// Remaining is the amount that is still locked.
func (e Escrow) Remaining() uint64 { return e.Budget - e.Paid - e.Fee - e.Refunded }

// Pay takes an amount from the escrow and splits it: the fee, a share in parts per million rounded down, and the net
// for the receiver. It never takes more than remains; net+fee below amount says that the budget is exhausted.
func (e Escrow) Pay(amount uint64, feePPM uint32) (after Escrow, net, fee uint64) {
	amount = min(amount, e.Remaining())
	fee = Share(amount, feePPM)
	net = amount - fee
	e.Paid += net
	e.Fee += fee
	return e, net, fee
}

// TopUp adds to the budget.
func (e Escrow) TopUp(amount uint64) (after Escrow, err error) {
	sum, carry := bits.Add64(e.Budget, amount, 0)
	if carry != 0 {
		return e, fmt.Errorf("%w: %d on top of a budget of %d", cost.ErrOverflow, amount, e.Budget)
	}
	e.Budget = sum
	return e, nil
}

// Share is a part of an amount, in parts per million, rounded down.
func Share(amount uint64, ppm uint32) uint64 {
	high, low := bits.Mul64(amount, uint64(min(ppm, million)))
	part, _ := bits.Div64(high, low, million)
	return part
}

// Charge takes a fee from the escrow, or what remains if that is less.
func (e Escrow) Charge(amount uint64) (after Escrow, fee uint64) {
	fee = min(amount, e.Remaining())
	e.Fee += fee
	return e, fee
}

// Close refunds what remains and returns it.
func (e Escrow) Close() (after Escrow, refund uint64) {
	refund = e.Remaining()
	e.Refunded += refund
	return e, refund
}
