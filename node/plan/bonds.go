package plan

import (
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/market/cost"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/reward/deterrence"
	"github.com/starling-network/starling/protocol/reward/penalty"
	"github.com/starling-network/starling/protocol/run/crew"
)

// Bonds are the stakes that the members of a job must have, by the parameters that a network begins with, and what a
// unit that is faked is then expected to gain, which is not above 0; in uzen, or grains of the coin
// of the plan.
type Bonds struct {
	Worker   uint64 `json:"worker_uzen"`
	Verifier uint64 `json:"verifier_uzen"`
	Gain     int64  `json:"faked_unit_gain_uzen"`
}

func bonds(o market.Order, price uint64) Bonds {
	params := registry.DefaultParams()
	b := Bonds{Worker: o.Stake(crew.Worker, price, params), Verifier: o.Stake(crew.Verifier, price, params)}
	unit, _ := cost.Of(o.Terms.UnitFlops, price)
	switch {
	case o.Terms.AuditPPM == 0:
	case o.Terms.Tolerance.DistancePPM > 0:
		b.Gain = deterrence.Backed(unit, b.Worker, o.Terms.Floor())
	default:
		b.Gain = deterrence.Temptation(penalty.Default(), unit, b.Worker, o.Terms.Least())
	}
	return b
}
