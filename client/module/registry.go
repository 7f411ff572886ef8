package module

import (
	"context"
	"errors"
	"time"

	sdk "github.com/cosmos/cosmos-sdk/types"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/x/beacon/beaconpb"
	"github.com/starling-network/starling/chain/x/market/marketpb"
	"github.com/starling-network/starling/chain/x/registry/registrypb"
	"github.com/starling-network/starling/chain/x/training/runpb"
	"github.com/starling-network/starling/client/query"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/registry/earning"
)

// Registry sends the messages and the queries of x/registry: participants, their machines and their stakes.
type Registry struct{ account Account }

// Register makes the account a participant, with the roles, addresses and hardware of p; the stake of p, in uzen, is
// added to the account's stake.
func (g Registry) Register(ctx context.Context, p registry.Participant) error {
	return send(ctx, g.account, g.registration(p))
}

func (g Registry) registration(p registry.Participant) *registrypb.MsgRegister {
	m := &registrypb.MsgRegister{
		Sender: g.account.Address(), PeerId: p.PeerID, Addresses: p.Addrs, Device: p.Device, Stake: p.Stake,
		Hardware: registrypb.FromHardware(p.Hardware), Tier: registrypb.Tier(p.Tier), Pool: p.Pool,
	}
	for _, r := range p.Roles {
		m.Roles = append(m.Roles, registrypb.Role(r))
	}
	return m
}

// Enlist makes the account a participant as Register does, or, if it is one that declares the same, only says where it
// is reached now; and makes its offers, in the same transaction. It stakes at the first time alone. With p.Earning it
// registers without a stake, with a proof, which takes some seconds.
func (g Registry) Enlist(ctx context.Context, p registry.Participant, offers ...market.Offer) error {
	first := g.registration(p)
	first.Payee = p.Payee.ID
	msgs := []sdk.Msg{first}
	old, err := g.Participant(ctx, g.account.Address())
	rests := err == nil && old.Earning && !earning.Placed(old) && !old.Jailed
	switch {
	case p.Earning && (rests || errors.Is(err, query.ErrNotFound)):
		if rests { // it keeps the payee that it named
			first.Payee = ""
		}
		first.Stake, first.Earns = 0, true
		if first.ProofHeight, first.Proof, err = g.prove(ctx); err != nil {
			return err
		}
	case errors.Is(err, query.ErrNotFound):
	case err != nil:
		return err
	case !old.Declares(p):
		p.Stake = 0
		msgs[0] = g.registration(p)
	default:
		msgs[0] = &registrypb.MsgUpdateAddresses{Sender: g.account.Address(), PeerId: p.PeerID, Addresses: p.Addrs}
	}
	_, err = g.account.Submit(ctx, append(msgs, offered(g.account, offers)...)...)
	return err
}

func offered(account Account, offers []market.Offer) (msgs []sdk.Msg) {
	for _, o := range offers {
		msgs = append(msgs, marketpb.FromOffer(account.Address(), o))
	}
	return msgs
}

// prove finds the proof of a registration without a stake, for one worker more than earn theirs now: another may
// register meanwhile.
func (g Registry) prove(ctx context.Context) (height int64, number uint64, err error) {
	r, err := registrypb.NewQueryClient(g.account).Params(ctx, &registrypb.QueryParamsRequest{})
	params, err := query.One[registry.Params](r.GetParams(), err)
	if err != nil {
		return 0, 0, err
	}
	height, beacon, err := g.Beacon(ctx)
	if err != nil {
		return 0, 0, err
	}
	zeros := params.Earning.ProofBits(int(r.Earning) + 1)
	for !earning.Proves(g.account.Address(), beacon, zeros, number) {
		if number++; number%(1<<16) == 0 && ctx.Err() != nil {
			return 0, 0, ctx.Err()
		}
	}
	return height, number, nil
}

// Beacon is the latest one, and its height. The first blocks of a chain have none: it waits for them.
func (g Registry) Beacon(ctx context.Context) (height int64, beacon canon.Digest, err error) {
	for {
		b, err := beaconpb.NewQueryClient(g.account).Beacon(ctx, &beaconpb.QueryBeaconRequest{})
		if err == nil {
			beacon, err = runpb.Digest(b.Value)
			return b.Height, beacon, err
		}
		if status.Code(err) != codes.NotFound {
			return 0, beacon, err
		}
		select {
		case <-ctx.Done():
			return 0, beacon, ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// SetPayee names the account that is paid in place of a participant; none: the participant.
func (g Registry) SetPayee(ctx context.Context, participant, payee string) error {
	return send(ctx, g.account, &registrypb.MsgSetPayee{Sender: g.account.Address(), Participant: participant,
		Payee: payee})
}

// UpdateAddresses replaces the addresses of the participant.
func (g Registry) UpdateAddresses(ctx context.Context, peerID string, addresses []string) error {
	return send(ctx, g.account, &registrypb.MsgUpdateAddresses{Sender: g.account.Address(), PeerId: peerID,
		Addresses: addresses})
}

// Unstake sets how much of the account's stake, in uzen, is to leave it, in place of an earlier amount.
func (g Registry) Unstake(ctx context.Context, amount uint64) error {
	return send(ctx, g.account, &registrypb.MsgUnstake{Sender: g.account.Address(), Amount: amount})
}

// Unjail lets the account, which was convicted, be matched again.
func (g Registry) Unjail(ctx context.Context) error {
	return send(ctx, g.account, &registrypb.MsgUnjail{Sender: g.account.Address()})
}

// Heartbeat reports that the account, which committed to a tier, is online.
func (g Registry) Heartbeat(ctx context.Context) error {
	return send(ctx, g.account, &registrypb.MsgHeartbeat{Sender: g.account.Address()})
}

// AskMeasure begins the measurement of the machine of the account. A segment of the program has the given steps.
func (g Registry) AskMeasure(ctx context.Context, steps uint32) error {
	return send(ctx, g.account, &registrypb.MsgAskMeasure{Sender: g.account.Address(), Steps: steps})
}

// AnswerMeasure binds the account to the results of its measurement.
func (g Registry) AnswerMeasure(ctx context.Context, root canon.Digest) error {
	return send(ctx, g.account, &registrypb.MsgAnswerMeasure{Sender: g.account.Address(), Root: root[:]})
}

// CheckMeasure sends the account's sealed results of the drawn segments of a participant's measurement.
func (g Registry) CheckMeasure(ctx context.Context, participant string, result canon.Digest) error {
	return send(ctx, g.account, &registrypb.MsgCheckMeasure{Sender: g.account.Address(), Participant: participant,
		Result: result[:]})
}

// OpenMeasure shows the results of the account's measurement.
func (g Registry) OpenMeasure(ctx context.Context, results []canon.Digest) error {
	return send(ctx, g.account, &registrypb.MsgOpenMeasure{Sender: g.account.Address(),
		Results: runpb.FromDigests(results)})
}

// Participants are all participants of the network, in order of address.
func (g Registry) Participants(ctx context.Context) ([]registry.Participant, error) {
	var all []registry.Participant
	after := ""
	for {
		r, err := registrypb.NewQueryClient(g.account).Participants(ctx, &registrypb.QueryParticipantsRequest{After: after})
		page, err := query.List[registry.Participant](r.GetParticipants(), err)
		if err != nil || len(page) == 0 {
			return all, err
		}
		all = append(all, page...)
		after = page[len(page)-1].ID
	}
}

// Addrs lists the addresses of all participants.
func (g Registry) Addrs(ctx context.Context) ([]string, error) {
	participants, err := g.Participants(ctx)
	var addrs []string
	for _, p := range participants {
		addrs = append(addrs, p.Addrs...)
	}
	return addrs, err
}

// Participant is one participant, or ErrNotFound.
func (g Registry) Participant(ctx context.Context, id string) (registry.Participant, error) {
	r, err := registrypb.NewQueryClient(g.account).Participant(ctx, &registrypb.QueryParticipantRequest{Id: id})
	return query.One[registry.Participant](r.GetParticipant(), err)
}

// RegistryParams are the parameters of the registry in force.
func (g Registry) Params(ctx context.Context) (registry.Params, error) {
	r, err := registrypb.NewQueryClient(g.account).Params(ctx, &registrypb.QueryParamsRequest{})
	return query.One[registry.Params](r.GetParams(), err)
}

// Measurements are those in progress, in order of participant.
func (g Registry) Measurements(ctx context.Context) ([]registry.Measurement, error) {
	r, err := registrypb.NewQueryClient(g.account).Measurements(ctx, &registrypb.QueryMeasurementsRequest{})
	return query.List[registry.Measurement](r.GetMeasurements(), err)
}

// Uptime is the uptime of a participant with a tier in the current epoch, and in parts per million; or ErrNotFound.
func (g Registry) Uptime(ctx context.Context, id string) (registry.Uptime, uint32, error) {
	r, err := registrypb.NewQueryClient(g.account).Uptime(ctx, &registrypb.QueryUptimeRequest{Id: id})
	u, err := query.One[registry.Uptime](r.GetUptime(), err)
	return u, r.GetPpm(), err
}
