// Package orders draws orders of small runs for the play of random messages. It submits none, and knows no account.
package orders

import (
	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/sim/random/draw"
	"github.com/starling-network/starling/sim/random/listings"
)

// Next is the order of a small run with a budget in a coin, at a height.
func Next(x draw.Source, c coin.Coin, budget uint64, height int64) market.Order {
	var name [8]byte
	x.Read(name[:])
	id := "job-" + canon.Sum("random/job", name[:]).String()[:12]
	n := uint32(x.UpTo(1, 3))
	o := market.Order{
		Coin: c, ID: id, Budget: budget, PriceCap: 200 + x.Below(1200),
		Workers: market.Workers{Min: n, Target: n + uint32(x.Intn(2)), Max: n + 2}, Verifiers: uint32(x.Intn(3)),
		SharesPPM: uint32(x.Intn(1_010_000)), OnExceed: market.Exceed(x.Intn(2)),
		Terms: terms.Terms{
			Job: id, Spec: listings.Work(id), SpecCID: "spec",
			Genesis: terms.Checkpoint{Root: canon.Sum("genesis"), CID: "genesis"},
			Rounds:  uint32(x.UpTo(1, 4)), Units: uint32(x.UpTo(1, 4)),
			Segments: uint32(x.UpTo(1, 4)), UnitFlops: 1_000_000_000_000 * (1 + x.Below(2000)), PartialAudits: x.Often(50),
			Window: uint32(x.UpTo(1, 4)),
			Deadlines: terms.Deadlines{
				Train:     x.UpTo(2, 20),
				Audit:     x.UpTo(2, 20),
				Attest:    x.UpTo(2, 20),
				Challenge: x.UpTo(0, 6),
			},
		},
	}
	if x.Often(20) {
		o.Deadline = height + x.UpTo(-2, 40)
	}
	if x.Often(20) {
		o.Conditions = market.Conditions{Domains: uint32(x.Intn(3)), Machines: []market.Machine{{Memory: x.Below(16 << 10)}},
			Disk: x.Below(8), Passed: uint32(x.Intn(2)), Tier: registry.Tier(x.Intn(3))}
	}
	if o.Verifiers > 0 {
		o.Terms.AuditPPM = uint32(x.Intn(1_000_001))
	}
	switch x.Intn(6) {
	case 0:
		o.Terms.Slices = uint32(x.UpTo(1, 3))
	case 1:
		o.Terms.Tolerance, o.Terms.PartialAudits = terms.Tolerance{DistancePPM: 100_000, CosinePPM: 900_000}, false
	}
	if x.Often(15) {
		o.Terms.Attested = terms.Attested{Measurements: []canon.Digest{canon.Sum("image")},
			FactorPPM: uint32(x.UpTo(200_000, 1_100_000))}
		o.Conditions.Attested = x.Often(30)
	}
	return o
}
