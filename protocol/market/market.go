// Package market brings orders and offers together, and keeps the budget of a job: matching, quotes, escrow, fees.
//
// It is pure integer arithmetic in uzen. It holds no coins (the chain's bank does), and who has earned what is decided by
// reward.
package market

import (
	"errors"
	"fmt"

	"github.com/starling-network/starling/protocol/run"
)

// ErrOrder is returned for an order that can never be matched.
var ErrOrder = errors.New("market: invalid order")

// Offer is what a participant asks for its work in one role.
type Offer struct {
	ID    string   `cbor:"1,keyasint"` // account address
	Role  run.Role `cbor:"2,keyasint"`
	Price uint64   `cbor:"3,keyasint"` // uzen per 10^15 floating-point operations
	Slots uint32   `cbor:"4,keyasint"` // jobs it takes beside those it has
	At    int64    `cbor:"5,keyasint"` // height
}

// Workers is how many workers an order wants.
type Workers struct {
	Min    uint32 `cbor:"1,keyasint"` // the run does not begin with fewer
	Target uint32 `cbor:"2,keyasint"` // as many are taken if that many offer
	Max    uint32 `cbor:"3,keyasint"` // no more ever take part
}

// Order is a consumer's wish for a run.
type Order struct {
	ID        string    `cbor:"1,keyasint"` // of the job: equals Terms.Job
	Consumer  string    `cbor:"2,keyasint"` // account address
	Terms     run.Terms `cbor:"3,keyasint"`
	Budget    uint64    `cbor:"4,keyasint"` // uzen, locked in escrow
	PriceCap  uint64    `cbor:"5,keyasint"` // uzen per 10^15 floating-point operations, for every role
	Workers   Workers   `cbor:"6,keyasint"`
	Verifiers uint32    `cbor:"7,keyasint"` // exactly as many
	Deadline  int64     `cbor:"8,keyasint"` // height after which an unmatched order is refunded; 0: none
	At        int64     `cbor:"9,keyasint"` // height
}

// Validate says why an order could never be matched.
func (o Order) Validate() error {
	if err := o.Terms.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrOrder, err)
	}
	w := o.Workers
	switch {
	case o.ID != o.Terms.Job:
		return fmt.Errorf("%w: order %q is for job %q", ErrOrder, o.ID, o.Terms.Job)
	case o.Consumer == "":
		return fmt.Errorf("%w: no consumer", ErrOrder)
	case w.Min < 1 || w.Min > w.Target || w.Target > w.Max:
		return fmt.Errorf("%w: workers min %d, target %d, max %d: wanted 1 <= min <= target <= max", ErrOrder, w.Min, w.Target, w.Max)
	case uint64(w.Max)+uint64(o.Verifiers) > run.MaxMembers:
		return fmt.Errorf("%w: %d workers and %d verifiers, at most %d members", ErrOrder, w.Max, o.Verifiers, run.MaxMembers)
	case o.Verifiers == 0 && o.Terms.AuditPPM > 0:
		return fmt.Errorf("%w: audits are wanted, but no verifier: ask for one, or for no audits", ErrOrder)
	case o.Budget == 0:
		return fmt.Errorf("%w: no budget", ErrOrder)
	}
	return nil
}

// Expired reports whether an order that is still open at a height is to be closed and refunded.
func (o Order) Expired(height int64) bool { return o.Deadline > 0 && height > o.Deadline }
