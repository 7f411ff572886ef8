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
	// stake per amount that convictions must take from a member, in parts per million: see market.Order.Value
	CoverPPM uint32 `cbor:"3,keyasint"`

	Classes []ClassRule `cbor:"4,keyasint"` // the best first
	// rate, in operations a second, at which the work of a processor weighs as much as a consumer's
	ProcessorRate uint64     `cbor:"5,keyasint"`
	Tiers         []TierRule `cbor:"6,keyasint"`

	EpochBlocks int64 `cbor:"7,keyasint"`
	BeatBlocks  int64 `cbor:"8,keyasint"` // length of a window in which a participant with a tier sends one heartbeat

	DowntimePPM uint32 `cbor:"9,keyasint"`  // of the stake, for an epoch below the uptime of the tier
	Witnesses   uint32 `cbor:"11,keyasint"` // least number of peers that measured a participant before it is reported slow

	MeasureBlocks int64  `cbor:"12,keyasint"` // for the answer to a measurement, for its check, and for its opening
	ClusterRTT    uint32 `cbor:"13,keyasint"` // milliseconds between any two of a cluster, at most
	ClusterSize   uint32 `cbor:"14,keyasint"` // participants of a cluster, at most
	StickyPPM     uint32 `cbor:"15,keyasint"` // by how much closer members of one cluster count

	UnstakeBlocks int64 `cbor:"16,keyasint"` // for which a stake that leaves can still be slashed

	// times the upload of any of a cluster that another's may be, at most; 0: any
	ClusterUpload uint32 `cbor:"17,keyasint"`

	JailBlocks int64 `cbor:"18,keyasint,omitempty"` // after a conviction before which its account is not matched again

	Earning Earning `cbor:"19,keyasint,omitempty"` // of stakes, by workers that registered without one
}

const gib = 1 << 10 // MiB

// DefaultStake is the stake of a worker or verifier that names none, in uzen.
const DefaultStake = 100_000_000

// DefaultParams cover four times the amount that a conviction must take: it takes half of the stake, and half of that
// goes to a challenger, which may be an accomplice. A participant without a tier and a rating needs only a small
// stake.
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
		UnstakeBlocks: 20_000, ClusterUpload: 4, JailBlocks: 20_000, Earning: DefaultEarning(),
	}
}

// Validate returns why parameters cannot govern.
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
	if err := p.Earning.Validate(); err != nil {
		return err
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
