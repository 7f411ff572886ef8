package random

import (
	"context"
	"encoding/binary"
	"slices"
	"strconv"

	"github.com/cosmos/cosmos-sdk/testutil/simsx"
	"github.com/oasisprotocol/curve25519-voi/primitives/ed25519"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/x/beacon/beaconpb"
	"github.com/starling-network/starling/chain/x/registry/registrypb"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/sim/random/draw"
	"github.com/starling-network/starling/sim/random/genesis"
	"github.com/starling-network/starling/sim/random/quotes"
)

// beacons are those of all blocks. The engine makes blocks without the votes of validators, of which a beacon is made.
func beacons(blocks int) func(draw.Source) map[string][]entry {
	return func(d draw.Source) map[string][]entry {
		var all []entry
		for height := range blocks + 1 {
			var v canon.Digest
			d.Read(v[:])
			all = append(all, entry{strconv.Itoa(height + 1), v})
		}
		return map[string][]entry{"values": all}
	}
}

var ofBeacon = []saying{{weight: 10, of: &beaconpb.MsgSetVRFKey{}, say: func(x *msgFactory) error {
	if ok, err := x.operator(); err != nil || !ok {
		return err
	}
	var seed [32]byte
	x.Read(seed[:])
	key := ed25519.NewKeyFromSeed(seed[:]).Public().(ed25519.PublicKey)
	_, err := x.Submit(x.ctx, &beaconpb.MsgSetVRFKey{Sender: x.Address(), PublicKey: key})
	return err
}}}

var beaconProposals = []simsx.SimMsgFactoryX{governed(func(d draw.Source, authority string) *beaconpb.MsgUpdateParams {
	return &beaconpb.MsgUpdateParams{Authority: authority, Params: beaconpb.Params{
		Keep: d.UpTo(50, 20_000), Turns: uint32(d.UpTo(1, 20)), TurnsWithin: d.UpTo(50, 20_000),
		SlashPpm: uint32(d.UpTo(0, 60_000)),
	}}
})}

// registryParams are quick ones: what takes hours on a network takes some blocks.
func registryParams(d draw.Source) registry.Params {
	p := registry.DefaultParams()
	p.BeatBlocks = d.UpTo(1, 5)
	p.EpochBlocks, p.MeasureBlocks, p.UnstakeBlocks, p.JailBlocks = p.BeatBlocks*d.UpTo(2, 8), d.UpTo(2, 20),
		d.UpTo(1, 30), d.UpTo(1, 30)
	p.DowntimePPM, p.Witnesses = uint32(d.Intn(200_000)), uint32(d.UpTo(1, 3))
	p.Earning = registry.Earning{Most: uint32(d.Intn(4)), Stake: uint64(d.UpTo(1, 1_000_000)),
		Audits: uint32(d.UpTo(1, 4)), Rate: 1, Bits: uint32(d.Intn(4)), IdleBlocks: d.UpTo(1, 40)}
	p.ClusterSize, p.ClusterUpload = uint32(d.UpTo(1, 10)), uint32(d.Intn(5))
	return p
}

func registryGenesis(d draw.Source) map[string][]entry {
	return map[string][]entry{"params": {{"item", registryParams(d)}}}
}

var registryProposals = []simsx.SimMsgFactoryX{
	governed(func(d draw.Source, authority string) *registrypb.MsgUpdateParams {
		return &registrypb.MsgUpdateParams{Authority: authority, Params: registrypb.FromParams(registryParams(d))}
	}),
	governed(quotes.Pin),
	simsx.SimMsgFactoryFn[*registrypb.MsgAttest](func(_ context.Context, data *simsx.ChainDataSource,
		report simsx.SimulationReporter) ([]simsx.SimAccount, *registrypb.MsgAttest) {
		return nil, &registrypb.MsgAttest{Authority: data.ModuleAccountAddress(report, "gov"),
			Participant: data.AnyAccount(report).AddressBech32, Attested: data.Rand().Intn(2) == 0}
	}),
}

var ofRegistry = []saying{
	{weight: 100, of: &registrypb.MsgRegister{}, say: (*msgFactory).register},
	{weight: 8, of: &registrypb.MsgUpdateAddresses{}, say: participant(func(x *msgFactory) error {
		return x.Registry.UpdateAddresses(x.ctx, "peer", []string{"/ip4/10.0.0." + strconv.Itoa(x.Intn(256))})
	})},
	{weight: 15, of: &registrypb.MsgSetPayee{}, say: participant(func(x *msgFactory) error {
		payee := ""
		if x.Often(70) {
			payee = x.anyAccount()
		}
		id := x.Address()
		if p, err := x.Registry.Participant(x.ctx, id); err == nil && x.Often(50) && p.Payee.ID != "" && !x.as(p.Payee.ID) {
			return nil
		}
		return x.Registry.SetPayee(x.ctx, id, payee)
	})},
	{weight: 10, of: &registrypb.MsgSubmitQuote{}, say: participant(func(x *msgFactory) error {
		return quotes.Submit(x.ctx, x.Client, x.Source)
	})},
	{weight: 8, of: &registrypb.MsgUnjail{}, say: participant(func(x *msgFactory) error {
		return x.Registry.Unjail(x.ctx)
	})},
	{weight: 15, of: &registrypb.MsgUnstake{},
		say: participant(func(x *msgFactory) error { return x.Registry.Unstake(x.ctx, x.Below(100_000_000)) })},
	{weight: 40, of: &registrypb.MsgStakeCoin{}, say: participant(stakeCoin)},
	{weight: 10, of: &registrypb.MsgUnstakeCoin{}, say: participant(func(x *msgFactory) error {
		return x.Stakes.Leave(x.ctx, "", draw.Pick(x.Source, genesis.Foreign).Coin, x.Below(100_000_000))
	})},
	{weight: 20, of: &registrypb.MsgInvite{}, say: invite},
	{weight: 40, of: &registrypb.MsgEnrol{}, say: enrol},
	{weight: 6, of: &registrypb.MsgChangeMachine{}, say: machine(func(x *msgFactory, p registry.Participant) error {
		return x.Registry.ChangeMachine(x.ctx, p.ID, x.Often(40), x.Below(1_000_000))
	})},
	{weight: 6, of: &registrypb.MsgRevoke{}, say: machine(func(x *msgFactory, p registry.Participant) error {
		return x.Registry.Revoke(x.ctx, p.ID)
	})},
	{weight: 80, of: &registrypb.MsgHeartbeat{}, say: participant(func(x *msgFactory) error {
		if p, err := x.Registry.Participant(x.ctx, x.Address()); err != nil || p.Tier == registry.NoTier {
			return err
		}
		return x.Registry.Heartbeat(x.ctx)
	})},
	{weight: 15, of: &registrypb.MsgAskMeasure{},
		say: participant(func(x *msgFactory) error {
			return x.Registry.AskMeasure(x.ctx, uint32(x.UpTo(0,
				registry.MaxSteps)))
		})},
	{weight: 25, of: &registrypb.MsgAnswerMeasure{}, say: measured(func(x *msgFactory, m registry.Measurement) error {
		if m.Seed.IsZero() || !m.Root.IsZero() || !x.as(m.ID) {
			return nil
		}
		return x.Registry.AnswerMeasure(x.ctx, registry.Root(m.ID, m.Seed, results(m)))
	})},
	{weight: 25, of: &registrypb.MsgCheckMeasure{}, say: measured(func(x *msgFactory, m registry.Measurement) error {
		i := slices.IndexFunc(m.Checks, func(c registry.Checked) bool { return c.Sample.IsZero() })
		if i < 0 || !x.as(m.Checks[i].By) {
			return nil
		}
		all := results(m)
		found := m.Sample(m.Checks[i].By, []canon.Digest{all[m.Picks[0]], all[m.Picks[1]]})
		if x.Often(10) {
			found = canon.Sum("another result")
		}
		return x.Registry.CheckMeasure(x.ctx, m.ID, found)
	})},
	{weight: 25, of: &registrypb.MsgOpenMeasure{}, say: measured(func(x *msgFactory, m registry.Measurement) error {
		if !m.Checked() || !x.as(m.ID) {
			return nil
		}
		return x.Registry.OpenMeasure(x.ctx, results(m))
	})},
}

// register adds a participant, or changes one.
func (x *msgFactory) register() error {
	pool := ""
	if x.Often(30) {
		pool = x.anyAccount()
	}
	roles := []crew.Role{crew.Worker}
	if x.Often(40) {
		roles[0] = crew.Verifier
	}
	p := registry.Participant{
		Roles: roles, PeerID: "peer", Stake: x.spend() + 1_000_000*x.Below(50), Pool: pool,
		Hardware: registry.Hardware{
			Kind: registry.Kind(x.Intn(4)), Memory: x.Below(64 << 10), Upload: x.Below(100_000),
			Region: draw.Pick(x.Source, []string{"eu", "us", ""}), Domain: strconv.Itoa(x.Intn(8)),
		},
	}
	if x.Often(40) {
		p.Tier = registry.Tier(x.Intn(4))
	}
	if x.Often(10) {
		return arrive(x)
	}
	return x.Registry.Register(x.ctx, p)
}

// arrive registers a worker without a stake. Many of its proofs are right: they have few bits.
func arrive(x *msgFactory) error {
	m := &registrypb.MsgRegister{Sender: x.Address(), PeerId: "peer", Earns: true, Proof: x.Uint64(),
		ProofHeight: x.ctx.BlockHeight() - int64(x.Intn(20)), Roles: []registrypb.Role{registrypb.Role_ROLE_WORKER}}
	if x.Often(20) {
		m.Payee = x.anyAccount()
	}
	_, err := x.Submit(x.ctx, m)
	return err
}

// participant lets one of those who are registered speak.
func participant(say func(*msgFactory) error) func(*msgFactory) error {
	return func(x *msgFactory) error {
		all, err := x.Registry.Participants(x.ctx)
		if err != nil || len(all) == 0 || !x.as(draw.Pick(x.Source, all).ID) {
			return err
		}
		return say(x)
	}
}

// measured makes a message of the first account, in a drawn order, that has one to send about a measurement.
func measured(say func(*msgFactory, registry.Measurement) error) func(*msgFactory) error {
	return func(x *msgFactory) error {
		all, err := x.Registry.Measurements(x.ctx)
		if err != nil {
			return err
		}
		return untilSaid(x, all, func(m registry.Measurement) error { return say(x, m) })
	}
}

// results of the segments of a measurement, by a program that everybody can run.
func results(m registry.Measurement) []canon.Digest {
	list := make([]canon.Digest, registry.Segments)
	for i := range list {
		list[i] = canon.Sum("random/result", m.Seed[:], binary.BigEndian.AppendUint32(nil, uint32(i)))
	}
	return list
}
