package market

import "math/bits"

// FeePPM is the share of every payment that goes to the community pool, in parts per million.
const FeePPM = 50_000

// Flops is the amount of work that prices are for: a price is uzen per 10^15 floating-point operations.
const Flops = 1_000_000_000_000_000

// Escrow is the locked budget of one job, in uzen. At every moment Budget = Paid + Fee + Refunded + Remaining.
type Escrow struct {
	Budget   uint64 `cbor:"1,keyasint"`
	Paid     uint64 `cbor:"2,keyasint"` // net, to those who worked
	Fee      uint64 `cbor:"3,keyasint"` // to the community pool
	Refunded uint64 `cbor:"4,keyasint"` // to the consumer
}

// Remaining is what is still locked.
func (e Escrow) Remaining() uint64 { return e.Budget - e.Paid - e.Fee - e.Refunded }

// Pay takes an amount from the escrow and splits it: the fee, rounded down, and the net for the receiver. It never
// takes more than remains; net+fee below amount says that the budget is exhausted.
func (e Escrow) Pay(amount uint64) (after Escrow, net, fee uint64) {
	amount = min(amount, e.Remaining())
	high, low := bits.Mul64(amount, FeePPM)
	fee, _ = bits.Div64(high, low, 1_000_000)
	net = amount - fee
	e.Paid += net
	e.Fee += fee
	return e, net, fee
}

// Close refunds what remains and returns it.
func (e Escrow) Close() (after Escrow, refund uint64) {
	refund = e.Remaining()
	e.Refunded += refund
	return e, refund
}
