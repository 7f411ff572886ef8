package registry

import (
	"fmt"

	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/terms"
)

// Params are governed.
type Params struct {
	WorkerStake   uint64 `cbor:"1,keyasint"` // smallest stake of a role, uzen
	VerifierStake uint64 `cbor:"2,keyasint"`
	// stake for what convictions must take from a member, parts per million of it: see market.Order.Value
	CoverPPM uint32 `cbor:"3,keyasint"`

	Classes []ClassRule `cbor:"4,keyasint"` // the best first
	// operations a second of a processor whose work weighs as much as a consumer's
	ProcessorRate uint64     `cbor:"5,keyasint"`
	Tiers         []TierRule `cbor:"6,keyasint"`

	EpochBlocks int64 `cbor:"7,keyasint"`
	BeatBlocks  int64 `cbor:"8,keyasint"` // of a window in which who committed to a tier says once that it is there

	DowntimePPM uint32 `cbor:"9,keyasint"`  // of the stake, for an epoch below the uptime of the tier
	Witnesses   uint32 `cbor:"11,keyasint"` // peers that must have measured who is told that it is slow, at least

	MeasureBlocks int64  `cbor:"12,keyasint"` // for the answer to a measurement, for its check, and for its opening
	ClusterRTT    uint32 `cbor:"13,keyasint"` // milliseconds between any two of a cluster, at most
	ClusterSize   uint32 `cbor:"14,keyasint"` // participants of a cluster, at most
	StickyPPM     uint32 `cbor:"15,keyasint"` // by how much closer who is in one cluster already counts

	UnstakeBlocks int64 `cbor:"16,keyasint"` // for which a stake that leaves still answers for what was done

	// times the upload of any of a cluster that another's may be, at most; 0: any
	ClusterUpload uint32 `cbor:"17,keyasint"`

	JailBlocks int64 `cbor:"18,keyasint,omitempty"` // after a conviction before which its account is not matched again
}

const gib = 1 << 10 // MiB

// DefaultStake is the stake of a worker or verifier that names none, in uzen.
const DefaultStake = 100_000_000

// DefaultParams cover four times what a conviction must take: it takes half of the stake, and half of that goes to a
// challenger, who may be an accomplice. They ask nothing of who neither commits to a tier nor wants to be rated, but a
// small stake.
func DefaultParams() Params {
	return Params{
		WorkerStake: 1_000_000, VerifierStake: 1_000_000, CoverPPM: 4_000_000,
		Classes: []ClassRule{
			{Class: Datacentre, Kind: GPU, Memory: 40 * gib, Rate: 5_000_000_000_000, MultiplierPPM: 3_000_000},
			{Class: Professional, Kind: GPU, Memory: 16 * gib, Rate: 1_000_000_000_000, MultiplierPPM: 1_500_000},
			{Class: Consumer, Kind: GPU, Memory: 8 * gib, Rate: 500_000_000_000, MultiplierPPM: 1_000_000},
			{Class: AppleSilicon, Kind: Apple, Memory: 8 * gib, Rate: 100_000_000_000, MultiplierPPM: 800_000},
		},
		ProcessorRate: 500_000_000_000,
		Tiers: []TierRule{
			{Tier: Bronze, UptimePPM: 950_000, Memory: 4 * gib, Upload: 5_000, Stake: 10_000_000, Weight: 1},
			{Tier: Silver, UptimePPM: 990_000, Memory: 16 * gib, Upload: 50_000, Stake: 50_000_000, Weight: 2},
			{Tier: Gold, UptimePPM: 995_000, Memory: 40 * gib, Upload: 500_000, Stake: 250_000_000, Weight: 4},
		},
		EpochBlocks: 3600, BeatBlocks: 15, DowntimePPM: 10_000, Witnesses: 3,
		MeasureBlocks: 120, ClusterRTT: 30, ClusterSize: 64, StickyPPM: 200_000,
		UnstakeBlocks: 20_000, ClusterUpload: 4, JailBlocks: 20_000,
	}
}

// Validate says why parameters cannot govern.
func (p Params) Validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrParams}, args...)...)
	}
	switch {
	case p.WorkerStake == 0 || p.VerifierStake == 0:
		return bad("a role without stake")
	case p.ProcessorRate == 0:
		return bad("no rate of a processor")
	case p.BeatBlocks < 1 || p.EpochBlocks < p.BeatBlocks || p.EpochBlocks%p.BeatBlocks != 0:
		return bad("epochs of %d blocks with windows of %d: wanted a whole number of windows", p.EpochBlocks, p.BeatBlocks)
	case p.DowntimePPM > million || p.StickyPPM > million || p.CoverPPM > 100*million:
		return bad("a part of more than the whole")
	case p.UnstakeBlocks < 1 || p.UnstakeBlocks > terms.MaxBlocks:
		return bad("a stake that leaves in %d blocks", p.UnstakeBlocks)
	case p.JailBlocks < 0 || p.JailBlocks > terms.MaxBlocks:
		return bad("a conviction that bars for %d blocks", p.JailBlocks)
	case p.Witnesses < 1 || p.ClusterSize < 1 || p.MeasureBlocks < 1 || p.MeasureBlocks > terms.MaxBlocks:
		return bad("%d witnesses, clusters of %d, measurements of %d blocks: wanted at least one", p.Witnesses,
			p.ClusterSize, p.MeasureBlocks)
	}
	for i, c := range p.Classes {
		if c.Class <= Processor || c.Class > Datacentre || c.Kind > Apple || c.MultiplierPPM > 100*million ||
			i >= int(Datacentre) {
			return bad("class %d of kind %d with multiplier %d", c.Class, c.Kind, c.MultiplierPPM)
		}
	}
	for i, t := range p.Tiers {
		if t.Tier == NoTier || t.Tier > Gold || t.UptimePPM > million || t.Weight == 0 || i >= int(Gold) {
			return bad("tier %d with uptime %d and weight %d", t.Tier, t.UptimePPM, t.Weight)
		}
	}
	return nil
}

// MinStake is the smallest stake for a role.
func (p Params) MinStake(r crew.Role) uint64 {
	if r == crew.Verifier {
		return p.VerifierStake
	}
	return p.WorkerStake
}
