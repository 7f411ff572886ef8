// Package registrypb holds the messages of the registry module, generated from chain/proto, and their conversion to the
// rules of protocol/registry. It decides nothing.
package registrypb

import (
	"math"

	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run/crew"
)

// Rule returns the role in the type of the rules; 0, which no rule accepts, for an unknown number.
func (r Role) Rule() crew.Role {
	switch r {
	case Role_ROLE_WORKER:
		return crew.Worker
	case Role_ROLE_VERIFIER:
		return crew.Verifier
	case Role_ROLE_GENERATOR:
		return crew.Generator
	}
	return 0
}

// small converts the number of an enumeration to uint8. Numbers out of range become 255, which the rules refuse.
func small[T ~int32](n T) uint8 {
	if n < 0 || n > math.MaxUint8 {
		return math.MaxUint8
	}
	return uint8(n)
}

// Rule returns the class in the type of the rules.
func (c MachineClass) Rule() registry.Class { return registry.Class(small(c)) }

// Rule returns the tier in the type of the rules.
func (t Tier) Rule() registry.Tier { return registry.Tier(small(t)) }

// Rule returns the hardware in the type of the rules.
func (h Hardware) Rule() registry.Hardware {
	return registry.Hardware{
		Kind: registry.Kind(small(h.Kind)), Memory: h.Memory, Upload: h.Upload, Region: h.Region,
		Jurisdiction: h.Jurisdiction, Domain: h.Domain,
		Disk: h.Disk, Cores: h.Cores, Devices: h.Devices, Model: h.Model,
	}
}

// FromHardware is the inverse of Hardware.Rule.
func FromHardware(h registry.Hardware) Hardware {
	return Hardware{
		Kind: DeviceKind(h.Kind), Memory: h.Memory, Upload: h.Upload, Region: h.Region, Jurisdiction: h.Jurisdiction,
		Domain: h.Domain,
		Disk:   h.Disk, Cores: h.Cores, Devices: h.Devices, Model: h.Model,
	}
}

// Rule returns the participant that a registration makes of old, in the type of the rules, without the stake that it
// adds.
func (m *MsgRegister) Rule(old registry.Participant) registry.Participant {
	p := registry.Participant{
		ID: m.Sender, Addrs: m.Addresses, PeerID: m.PeerId, Device: m.Device, Stake: old.Stake, Leaving: old.Leaving,
		LeavesAt: old.LeavesAt, Earning: old.Earning || m.Earns, // until it has proven itself, whatever it registers
		Hardware: m.Hardware.Rule(), Tier: m.Tier.Rule(), Pool: m.Pool,
	}
	for _, role := range m.Roles {
		p.Roles = append(p.Roles, role.Rule())
	}
	return p
}

// Rule returns the parameters in the type of the rules.
func (p Params) Rule() registry.Params {
	r := registry.Params{
		WorkerStake: p.WorkerStake, VerifierStake: p.VerifierStake, CoverPPM: p.CoverPpm, ProcessorRate: p.ProcessorRate,
		EpochBlocks: p.EpochBlocks, BeatBlocks: p.BeatBlocks, DowntimePPM: p.DowntimePpm, Witnesses: p.Witnesses,
		MeasureBlocks: p.MeasureBlocks, ClusterRTT: p.ClusterRtt, ClusterSize: p.ClusterSize, StickyPPM: p.StickyPpm,
		UnstakeBlocks: p.UnstakeBlocks,
		ClusterUpload: p.ClusterUpload, JailBlocks: p.JailBlocks,
		Earning: registry.Earning{Most: p.Earning.Most, Stake: p.Earning.Stake, Audits: p.Earning.Audits,
			Rate: p.Earning.Rate, Bits: p.Earning.Bits, IdleBlocks: p.Earning.IdleBlocks},
	}
	for _, c := range p.Classes {
		r.Classes = append(r.Classes, registry.ClassRule{
			Class: c.Class.Rule(), Kind: registry.Kind(small(c.Kind)), Memory: c.Memory, Rate: c.Rate,
			MultiplierPPM: c.MultiplierPpm,
		})
	}
	for _, t := range p.Tiers {
		r.Tiers = append(r.Tiers, registry.TierRule{
			Tier: t.Tier.Rule(), UptimePPM: t.UptimePpm, Memory: t.Memory, Upload: t.Upload, Stake: t.Stake, Weight: t.Weight,
		})
	}
	return r
}

// FromParams is the inverse of Params.Rule.
func FromParams(r registry.Params) Params {
	p := Params{
		WorkerStake: r.WorkerStake, VerifierStake: r.VerifierStake, CoverPpm: r.CoverPPM, ProcessorRate: r.ProcessorRate,
		EpochBlocks: r.EpochBlocks, BeatBlocks: r.BeatBlocks, DowntimePpm: r.DowntimePPM, Witnesses: r.Witnesses,
		MeasureBlocks: r.MeasureBlocks, ClusterRtt: r.ClusterRTT, ClusterSize: r.ClusterSize, StickyPpm: r.StickyPPM,
		UnstakeBlocks: r.UnstakeBlocks,
		ClusterUpload: r.ClusterUpload, JailBlocks: r.JailBlocks,
		Earning: Earning{Most: r.Earning.Most, Stake: r.Earning.Stake, Audits: r.Earning.Audits, Rate: r.Earning.Rate,
			Bits: r.Earning.Bits, IdleBlocks: r.Earning.IdleBlocks},
	}
	for _, c := range r.Classes {
		p.Classes = append(p.Classes, ClassRule{
			Class: MachineClass(c.Class), Kind: DeviceKind(c.Kind), Memory: c.Memory, Rate: c.Rate,
			MultiplierPpm: c.MultiplierPPM,
		})
	}
	for _, t := range r.Tiers {
		p.Tiers = append(p.Tiers, TierRule{
			Tier: Tier(t.Tier), UptimePpm: t.UptimePPM, Memory: t.Memory, Upload: t.Upload, Stake: t.Stake, Weight: t.Weight,
		})
	}
	return p
}
