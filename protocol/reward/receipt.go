// Package reward settles a run in coins: which account is paid for which verified work, which is slashed, and why one
// is paid nothing.
//
// Its results are data: receipts to show and transfers to execute. It moves no coins (the chain does) and judges no
// work (run and dispute have).
package reward

import (
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/run/crew"
)

// Kind of a receipt.
type Kind string

// The kinds of receipts. Amount is what Who receives, except for the kinds that Lost names: there it is what Who loses.
const (
	Work    Kind = "work"    // an attempt at a unit
	Audit   Kind = "audit"   // an audit that was drawn
	Slash   Kind = "slash"   // taken from the stake of Who
	Bounty  Kind = "bounty"  // the part of a slash that goes to the party that was right
	Fee     Kind = "fee"     // the part of a slash that goes to the community pool
	Deposit Kind = "deposit" // held of the stake of Who, and not taken
	Refund  Kind = "refund"  // what was not spent, back to the consumer

	Base       Kind = "base"        // of an epoch: for uptime
	WorkReward Kind = "work_reward" // for verified work, by the class of the machine
	Bandwidth  Kind = "bandwidth"   // for bytes that peers acknowledged
	Standby    Kind = "standby"     // for being there, as a verifier, when audits are drawn

	Revenue Kind = "revenue" // of a model, claimed by a holder of its shares

	Shared    Kind = "shared"    // the part of a payment to Who that the delegators of its pool have
	Delegated Kind = "delegated" // such pay, claimed by a delegator
)

// Lost reports whether the amount of a receipt is what its account loses.
func (k Kind) Lost() bool { return k == Slash || k == Shared }

// Receipt is one line of why an account was paid, or was not. Every attempt at a unit and every audit ends in one.
type Receipt struct {
	Job    string    `cbor:"1,keyasint" json:"job"`
	Seq    uint64    `cbor:"2,keyasint" json:"seq"` // of the job, without gaps
	Height int64     `cbor:"3,keyasint" json:"height"`
	Round  uint32    `cbor:"4,keyasint" json:"round"`
	Unit   uint32    `cbor:"5,keyasint" json:"unit"`
	Who    string    `cbor:"6,keyasint" json:"who"`
	Role   crew.Role `cbor:"7,keyasint" json:"role"` // 0 for the consumer and the community pool
	Kind   Kind      `cbor:"8,keyasint" json:"kind"`
	Flops  uint64    `cbor:"9,keyasint" json:"flops"`   // floating-point operations of the work, paid or not
	Price  uint64    `cbor:"10,keyasint" json:"price"`  // grains of Coin per 10^15 of them
	Amount uint64    `cbor:"11,keyasint" json:"amount"` // grains, net
	Fee    uint64    `cbor:"12,keyasint" json:"fee"`    // grains to the community pool on top of Amount
	Reason string    `cbor:"13,keyasint" json:"reason"`
	Fix    string    `cbor:"14,keyasint" json:"fix,omitempty"` // what Who can do about it
	// of a payment, to the community pool, as governance had it
	FeePPM uint32 `cbor:"15,keyasint" json:"fee_ppm,omitempty"`

	// Of an epoch: Amount is Pot * Part / Whole. Of a slash: Part of Whole of the stake (in millionths or in uzen), or of
	// the amount taken. Of revenue: Amount is Pot + Part * Whole. Of shared pay: Pot * Part / Whole, less FeePPM.
	Pot   uint64 `cbor:"16,keyasint" json:"pot,omitempty"`
	Part  uint64 `cbor:"17,keyasint" json:"part,omitempty"`
	Whole uint64 `cbor:"18,keyasint" json:"whole,omitempty"`

	// Of an epoch: Amount would be more, but is all that is made of the fees of the work.
	Capped bool `cbor:"19,keyasint,omitzero" json:"capped,omitempty"`

	// of work: whose stake paid it; none: the budget of the job
	Payer string `cbor:"20,keyasint,omitempty" json:"payer,omitempty"`

	// of all amounts: that of the order, or the network's own, in which the zero value is
	Coin coin.Coin `cbor:"21,keyasint,omitzero" json:"coin,omitzero"`
}

// OfDispute reports whether a receipt can follow from the verdict of a dispute, as that of every slash can. Its
// height, round and unit identify the dispute.
func (r Receipt) OfDispute() bool {
	switch r.Kind {
	case Slash, Bounty, Fee:
		return true
	}
	switch r.Reason {
	case FaultFound, NothingShown, WrongWork, Silent, FalseChallenge:
		return true
	}
	return false
}

// Jails reports whether a receipt bars its account from being matched: the account was slashed for a lie. Three
// slashes do not bar: a seal may stay closed because a machine stopped, an account that pays restitution is barred by
// its conviction, and a deposit is forfeited without proof.
func (r Receipt) Jails() bool {
	// in another coin it is the second receipt of one slash
	return r.Kind == Slash && r.Coin.Own() && r.Reason != SealUnopened && r.Reason != Restitution &&
		r.Reason != DepositForfeited
}

// Accounts of transfers that are not a participant's own.
const (
	Escrow        = "escrow"         // of the job
	CommunityPool = "community_pool" // of the chain
	Emission      = "emission"       // coins that are made
)

// Stake names the account that holds a participant's stake.
func Stake(id string) string { return "stake:" + id }

// CoinStake names the account that holds a participant's stake in the coin of an order that is not the network's own.
func CoinStake(id string) string { return "coin-stake:" + id }

// Transfer is one movement of coins for the chain to execute.
type Transfer struct {
	From   string `cbor:"1,keyasint"` // Escrow, Emission, CommunityPool, or Stake or CoinStake of an account
	To     string `cbor:"2,keyasint"` // CommunityPool, or an account address
	Amount uint64 `cbor:"3,keyasint"` // grains, never zero
	// for work: an account that earns its stake gets it as stake, and the payee of an account gets it in its place
	Pay bool `cbor:"4,keyasint,omitempty"`
}
