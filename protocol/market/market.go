// Package market matches orders with offers, and keeps the budget of a job: matching, quotes, escrow, fees.
//
// It is pure integer arithmetic in grains of the coin of an order (protocol/coin), and converts none into another. It
// holds no coins (the chain's bank does), and reward decides which account has earned how much.
package market

import (
	"errors"
	"fmt"
	"slices"

	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/terms"
)

// ErrOrder is returned for an order that can never be matched.
var ErrOrder = errors.New("market: invalid order")

// Offer is a participant's price for one class of its work. A pool is an account that offers for many: see Pooled.
type Offer struct {
	ID    string    `cbor:"1,keyasint"` // account address
	Role  crew.Role `cbor:"2,keyasint"` // class of work: crew.Generator, or the role
	Price uint64    `cbor:"3,keyasint"` // uzen per 10^15 floating-point operations
	Slots uint32    `cbor:"4,keyasint"` // jobs it takes in addition to those it has
	At    int64     `cbor:"5,keyasint"` // height
	// it is for every worker that named the account as its pool, not for the account's own work
	Pool bool `cbor:"6,keyasint"`

	Asks []Ask `cbor:"7,keyasint,omitempty"` // prices in other coins, each coin once; Price is in the network's own
	// only the coins of Asks are taken, and not the network's own
	Foreign bool `cbor:"8,keyasint,omitempty"`
}

// Ask is a price in a coin other than the network's own.
type Ask struct {
	Denom string `cbor:"1,keyasint"`
	Price uint64 `cbor:"2,keyasint"` // grains per 10^15 floating-point operations
}

// MaxAsks is the most coins of one offer.
const MaxAsks = 8

// Asked is the price of an offer in a coin, by its denomination ("": the network's own), and whether it takes the coin.
func (f Offer) Asked(denom string) (price uint64, takes bool) {
	if denom == "" {
		return f.Price, !f.Foreign
	}
	for _, a := range f.Asks {
		if a.Denom == denom {
			return a.Price, true
		}
	}
	return 0, false
}

// Pooled is the offer of a pool for one of its members. A member with an offer of its own is left out.
func (f Offer) Pooled(member string) Offer {
	f.ID, f.Pool = member, false
	return f
}

// Workers is how many workers an order wants.
type Workers struct {
	Min    uint32 `cbor:"1,keyasint"` // the run does not begin with fewer
	Target uint32 `cbor:"2,keyasint"` // as many are taken if that many offer
	Max    uint32 `cbor:"3,keyasint"` // no more ever take part
}

// Order is a consumer's wish for a run.
type Order struct {
	ID        string      `cbor:"1,keyasint"` // of the job: equals Terms.Job
	Consumer  string      `cbor:"2,keyasint"` // account address
	Terms     terms.Terms `cbor:"3,keyasint"`
	Budget    uint64      `cbor:"4,keyasint"` // grains of its coin, locked in escrow
	PriceCap  uint64      `cbor:"5,keyasint"` // grains per 10^15 floating-point operations, for every role
	Workers   Workers     `cbor:"6,keyasint"`
	Verifiers uint32      `cbor:"7,keyasint"` // exactly as many
	Deadline  int64       `cbor:"8,keyasint"` // height after which an unmatched order is refunded; 0: none
	At        int64       `cbor:"9,keyasint"` // height

	Conditions Conditions `cbor:"10,keyasint"`
	OnExceed   Exceed     `cbor:"13,keyasint"`
	SharesPPM  uint32     `cbor:"14,keyasint"` // of the model, to the accounts with verified work, in proportion to it
	// of the seats of workers, those that offers of crew.Generator may have; below Workers.Min
	Generators uint32 `cbor:"15,keyasint,omitempty"`

	// Coin of all amounts of the order: of its budget, its prices, and what it pays and refunds.
	Coin coin.Coin `cbor:"16,keyasint,omitzero"`
	// grains that stand for 1,000 uzen (coin.Registered); 0: the coin is the network's own
	Waiting uint64 `cbor:"17,keyasint,omitempty"`
}

// Rank is the budget as orders in all coins compare (coin.Rank).
func (o *Order) Rank() uint64 {
	if o.Coin.Own() {
		return o.Budget
	}
	return coin.Rank(o.Budget, o.Waiting)
}

// Exceed is the fate of a run whose budget does not cover another round.
type Exceed uint8

// Values of Exceed are part of the format.
const (
	CancelExceeded Exceed = 0 // it ends, and the rest is refunded
	PauseExceeded  Exceed = 1 // it waits for a larger budget
)

// Validate returns why an order could never be matched.
func (o Order) Validate() error {
	if err := o.Terms.Validate(); err != nil {
		return fmt.Errorf("%w: %w: %w", ErrOrder, refusal.ErrTerms, err)
	}
	w := o.Workers
	switch {
	case o.ID != o.Terms.Job:
		return fmt.Errorf("%w: order %q is for job %q", ErrOrder, o.ID, o.Terms.Job)
	case o.Consumer == "":
		return fmt.Errorf("%w: no consumer", ErrOrder)
	case w.Min < 1 || w.Min > w.Target || w.Target > w.Max:
		return fmt.Errorf("%w: workers min %d, target %d, max %d: wanted 1 <= min <= target <= max", ErrOrder, w.Min,
			w.Target, w.Max)
	case uint64(w.Max)+uint64(o.Verifiers) > terms.MaxMembers:
		return fmt.Errorf("%w: %d workers and %d verifiers, at most %d members", ErrOrder, w.Max, o.Verifiers,
			terms.MaxMembers)
	case o.Verifiers == 0 && o.Terms.AuditPPM > 0:
		return fmt.Errorf("%w: audits are wanted, but no verifier: ask for one, or for no audits", ErrOrder)
	case o.Generators > 0 && (o.Terms.Rollout.Units == 0 || o.Generators >= w.Min):
		return fmt.Errorf("%w: %d generators of at least %d workers and %d units that draw", ErrOrder, o.Generators, w.Min,
			o.Terms.Rollout.Units)
	case o.Conditions.Attested && len(o.Terms.Attested.Measurements) == 0:
		return fmt.Errorf("%w: attested machines, of no listed measurement: no machine would do", ErrOrder)
	case o.Terms.Attested.Required && !o.Conditions.Attested:
		return fmt.Errorf("%w: members leave unless their machines are attested, and any is admitted", ErrOrder)
	case o.Budget == 0:
		return fmt.Errorf("%w: no budget", ErrOrder)
	case o.OnExceed > PauseExceeded:
		return fmt.Errorf("%w: %d is nothing to do when the budget is exceeded", ErrOrder, o.OnExceed)
	case o.SharesPPM > million:
		return fmt.Errorf("%w: %d millionths of the model to its workers", ErrOrder, o.SharesPPM)
	}
	return o.Conditions.validate(w.Min)
}

func (c Conditions) validate(workers uint32) error {
	for _, places := range [][]string{c.Regions, c.NotRegions, c.Jurisdictions, c.NotJurisdictions} {
		if len(places) > MaxPlaces {
			return fmt.Errorf("%w: a list of %d places, at most %d", ErrOrder, len(places), MaxPlaces)
		}
		for _, p := range places {
			if p == "" || len(p) > registry.MaxPlace {
				return fmt.Errorf("%w: a place of %d bytes, wanted 1 to %d", ErrOrder, len(p), registry.MaxPlace)
			}
		}
	}
	if len(c.Machines) > MaxPlaces || slices.ContainsFunc(c.Machines,
		func(m Machine) bool { return len(m.Model) > registry.MaxPlace }) {
		return fmt.Errorf("%w: %d kinds of machines, at most %d, of models of at most %d bytes", ErrOrder, len(c.Machines),
			MaxPlaces, registry.MaxPlace)
	}
	for _, class := range c.Classes {
		if class == registry.Unrated || class > registry.Datacentre {
			return fmt.Errorf("%w: class %d is not known", ErrOrder, class)
		}
	}
	switch {
	case len(c.Classes) > int(registry.Datacentre) || c.Tier > registry.Gold:
		return fmt.Errorf("%w: %d classes, tier %d", ErrOrder, len(c.Classes), c.Tier)
	case c.Domains > workers:
		return fmt.Errorf("%w: %d failure domains of at least %d workers", ErrOrder, c.Domains, workers)
	}
	return nil
}

// Expired reports whether an order that is still open at a height is to be closed and refunded.
func (o Order) Expired(height int64) bool { return o.Deadline > 0 && height > o.Deadline }
