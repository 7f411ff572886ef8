package market

import (
	"math"
	"testing"

	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run"
)

// The stake that an order asks of a member covers what it may be leased, and one uzen less does not.
func TestStakeCovers(t *testing.T) {
	params := registry.DefaultParams()
	for _, flops := range []uint64{1, 1e9, 1e15, 123_456_789_012_345_678, math.MaxUint64} {
		for _, role := range []run.Role{run.Worker, run.Verifier} {
			o := Order{Workers: Workers{Min: 3, Target: 4, Max: 5}, Verifiers: 2, Terms: run.Terms{Rounds: 7, Units: 4, Segments: 1, UnitFlops: flops, AuditPPM: 100_000}}
			const price = 1_000_000_000
			stake, value := o.Stake(role, price, params), o.Value(role, price)
			if covered := (registry.Participant{Stake: stake}).Cover(params, 0); covered < value || stake < params.MinStake(role) {
				t.Errorf("%d operations: a stake of %d covers %d of %d", flops, stake, covered, value)
			}
			if less := (registry.Participant{Stake: stake - 1}); stake > params.MinStake(role) && less.Cover(params, 0) >= value {
				t.Errorf("%d operations: a stake of %d is more than is needed", flops, stake)
			}
		}
	}
}
