package delegation

import (
	"math/bits"

	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/reward"
)

// Rate is an amount of grains for one share: whole grains, and a part in units of 2^-64.
type Rate struct {
	Whole uint64 `cbor:"1,keyasint,omitempty"`
	Part  uint64 `cbor:"2,keyasint,omitempty"`
}

// plus is the sum of two rates. It reports false if that does not fit.
func (r Rate) plus(s Rate) (Rate, bool) {
	part, carry := bits.Add64(r.Part, s.Part, 0)
	whole, over := bits.Add64(r.Whole, s.Whole, carry)
	return Rate{whole, part}, over == 0
}

// since is the difference of two rates, of which the earlier is no more than the later.
func (r Rate) since(earlier Rate) Rate {
	part, borrow := bits.Sub64(r.Part, earlier.Part, 0)
	whole, _ := bits.Sub64(r.Whole, earlier.Whole, borrow)
	return Rate{whole, part}
}

// of is what shares earn at a rate, in grains, rounded down. Shares of a pool earn no more than was paid in.
func (r Rate) of(shares uint64) uint64 {
	part, _ := bits.Mul64(shares, r.Part)
	return shares*r.Whole + part
}

// Purse is the pay of the delegators of a pool in one coin. Every share has earned the same, so a payment costs the
// same for any number of them.
type Purse struct {
	Pool     string    `cbor:"1,keyasint"` // participant
	Coin     coin.Coin `cbor:"2,keyasint,omitzero"`
	PerShare Rate      `cbor:"3,keyasint,omitzero"`
	Held     uint64    `cbor:"4,keyasint,omitempty"` // grains paid in and not claimed
	Paid     uint64    `cbor:"5,keyasint,omitempty"` // grains that the delegators got so far
}

// Split is how a payment of a participant is divided between it and the delegators of its pool.
type Split struct {
	Delegators uint64 // grains
	Kept       uint64 // grains of the delegators' part that are the commission
}

// Divide divides grains that a participant is paid: the delegators have the part of them that their stake that stays is
// of all of the stake, rounded down, less the commission, rounded up.
func (p Pool) Divide(grains, own uint64) Split {
	staying := p.Staying()
	all, over := bits.Add64(own, staying, 0)
	if staying == 0 || over > 0 {
		return Split{}
	}
	part := reward.Times(grains, staying, all)
	kept := min(part, audit.Ratio(part, uint64(p.Commission), million))
	return Split{Delegators: part - kept, Kept: kept}
}

// Pay divides grains over the shares that are paid. Less than a grain may be left over; it stays. It reports false, and
// changes nothing, if the numbers would be too large.
func (u Purse) Pay(grains, shares uint64) (Purse, bool) {
	if shares == 0 {
		return u, false
	}
	held, over := bits.Add64(u.Held, grains, 0)
	paid, more := bits.Add64(u.Paid, grains, 0)
	part, _ := bits.Div64(grains%shares, 0, shares)
	rate, fits := u.PerShare.plus(Rate{grains / shares, part})
	if over > 0 || more > 0 || !fits {
		return u, false
	}
	u.PerShare, u.Held, u.Paid = rate, held, paid
	return u, true
}

// Earned is what a delegator has earned in one coin: up to Mark it is in Due.
type Earned struct {
	Mark Rate   `cbor:"1,keyasint,omitzero"`  // Purse.PerShare when this was written
	Due  uint64 `cbor:"2,keyasint,omitempty"` // grains
}

// Accrue credits a delegator with the earnings of its shares that do not leave. It must be called before their number
// changes.
func (e Earned) Accrue(u Purse, shares uint64) Earned {
	return Earned{Mark: u.PerShare, Due: e.Due + u.PerShare.since(e.Mark).of(shares)}
}

// Claim pays a delegator with this number of shares that do not leave the amount that it is due.
func (u Purse) Claim(e Earned, shares uint64) (Purse, Earned, uint64) {
	e = e.Accrue(u, shares)
	due := e.Due
	u.Held, e.Due = u.Held-due, 0
	return u, e, due
}

// Shared is the receipt about a payment of which delegators have a part: grains is the payment, own the participant's
// stake. It numbers the receipt.
func (p Pool) Shared(c coin.Coin, grains, own uint64, s Split, height int64) (Pool, reward.Receipt) {
	r := reward.Receipt{Job: reward.DelegationBook + p.ID, Seq: p.Issued, Height: height, Who: p.ID, Kind: reward.Shared,
		Coin: c, Amount: s.Delegators, Reason: reward.ToDelegators, FeePPM: p.Commission, Pot: grains, Part: p.Staying(),
		Whole: own + p.Staying()}
	p.Issued++
	return p, r
}

// Claimed is the receipt of a claim.
func (p Pool) Claimed(who string, c coin.Coin, grains uint64, height int64) (Pool, reward.Receipt) {
	r := reward.Receipt{Job: reward.DelegationBook + p.ID, Seq: p.Issued, Height: height, Who: who,
		Kind: reward.Delegated, Coin: c, Amount: grains, Reason: reward.FromPool}
	p.Issued++
	return p, r
}

// Due is an amount of a coin.
type Due struct {
	Coin   coin.Coin `cbor:"1,keyasint,omitzero"`
	Grains uint64    `cbor:"2,keyasint"`
}
