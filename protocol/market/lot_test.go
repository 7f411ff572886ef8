package market

import (
	"math"
	"testing"

	"github.com/starling-network/starling/protocol/market/cost"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/terms"
)

// The stake that an order asks of a member covers what it may be leased, and one uzen less does not.
func TestStakeCovers(t *testing.T) {
	params := registry.DefaultParams()
	for _, flops := range []uint64{1, 1e9, 1e15, 123_456_789_012_345_678, math.MaxUint64} {
		for _, role := range []crew.Role{crew.Worker, crew.Verifier} {
			o := Order{Workers: Workers{Min: 3, Target: 4, Max: 5}, Verifiers: 2,
				Terms: terms.Terms{Rounds: 7, Units: 4, Segments: 1, UnitFlops: flops, AuditPPM: 100_000}}
			const price = 1_000_000_000
			stake, value := o.Stake(role, price, params), o.Value(role, price)
			if covered := (registry.Participant{Stake: stake}).Collateral(params, 0); covered < value ||
				stake < params.MinStake(role) {
				t.Errorf("%d operations: a stake of %d covers %d of %d", flops, stake, covered, value)
			}
			if less := (registry.Participant{Stake: stake - 1}); stake > params.MinStake(role) &&
				less.Collateral(params, 0) >= value {
				t.Errorf("%d operations: a stake of %d is more than is needed", flops, stake)
			}
		}
	}
}

// In a job of any length, a lie costs a member more than it gains: half of the stake is taken, and half of that may
// come back through an accomplice that accuses first. A longer job needs no more stake, and one with fewer audits
// does.
func TestStakeOfASeatMakesFakingALoss(t *testing.T) {
	const price = 1_000_000_000
	for _, rounds := range []uint32{1, 20, 100, 10_000} {
		last := uint64(math.MaxUint64)
		for _, rate := range []uint32{10_000, 50_000, 100_000, 500_000, 1_000_000} {
			o := Order{Workers: Workers{Min: 4, Target: 4, Max: 4}, Verifiers: 2,
				Terms: terms.Terms{Rounds: rounds, Units: 4, Segments: 1, UnitFlops: 1e9, AuditPPM: rate}}
			unit, _ := cost.Of(o.Terms.UnitFlops, price)
			stake := o.Stake(crew.Worker, price, registry.Params{CoverPPM: registry.DefaultParams().CoverPPM})
			lost := stake / 2 / 2
			// Of 10^6 faked units the audits of honest verifiers meet rate x 3/4.
			if gained, caught := unit*(1_000_000-uint64(rate)*3/4), lost*uint64(rate)*3/4; gained > caught {
				t.Errorf("%d rounds at a rate of %d: a faked unit gains %d for %d", rounds, rate, gained, caught)
			}
			if stake >= last {
				t.Errorf("at a rate of %d the stake is %d, at less %d", rate, stake, last)
			}
			last = stake
		}
	}
}
