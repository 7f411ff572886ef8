package client

import (
	"context"
	"errors"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/x/market/marketpb"
	"github.com/starling-network/starling/chain/x/registry/registrypb"
	"github.com/starling-network/starling/chain/x/training/runpb"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run"
)

// Register makes the account a participant, as p says of its roles, place and hardware; the stake of p, in uzen, is
// added to what the account has staked.
func (c *Client) Register(ctx context.Context, p registry.Participant) error {
	return c.send(ctx, c.registration(p))
}

func (c *Client) registration(p registry.Participant) sdk.Msg {
	m := &registrypb.MsgRegister{
		Sender: c.Address(), PeerId: p.PeerID, Addresses: p.Addrs, Device: p.Device, Stake: p.Stake,
		Hardware: registrypb.FromHardware(p.Hardware), Tier: registrypb.Tier(p.Tier), Pool: p.Pool,
	}
	for _, r := range p.Roles {
		m.Roles = append(m.Roles, registrypb.Role(r))
	}
	return m
}

// Enlist makes the account a participant as Register does, or, if it is one that declares the same, only says where it
// is reached now; and makes its offers, in the same transaction. It stakes at the first time alone.
func (c *Client) Enlist(ctx context.Context, p registry.Participant, offers ...market.Offer) error {
	msgs := []sdk.Msg{c.registration(p)}
	old, err := c.Participant(ctx, c.Address())
	switch {
	case errors.Is(err, ErrNotFound):
	case err != nil:
		return err
	case old.Hardware != p.Hardware || old.Tier != p.Tier || old.Pool != p.Pool:
		p.Stake = 0
		msgs[0] = c.registration(p)
	default:
		msgs[0] = &registrypb.MsgUpdateAddresses{Sender: c.Address(), PeerId: p.PeerID, Addresses: p.Addrs}
	}
	for _, o := range offers {
		msgs = append(msgs, &marketpb.MsgOffer{Sender: c.Address(), Role: registrypb.Role(o.Role), Price: o.Price,
			Slots: o.Slots})
	}
	_, err = c.Submit(ctx, msgs...)
	return err
}

// UpdateAddresses says where the participant is reached.
func (c *Client) UpdateAddresses(ctx context.Context, peerID string, addresses []string) error {
	return c.send(ctx, &registrypb.MsgUpdateAddresses{Sender: c.Address(), PeerId: peerID, Addresses: addresses})
}

// Unstake says how much of the account's stake, in uzen, is to leave it, in place of what was said before.
func (c *Client) Unstake(ctx context.Context, amount uint64) error {
	return c.send(ctx, &registrypb.MsgUnstake{Sender: c.Address(), Amount: amount})
}

// Unjail lets the account, which was convicted, be matched again.
func (c *Client) Unjail(ctx context.Context) error {
	return c.send(ctx, &registrypb.MsgUnjail{Sender: c.Address()})
}

// Heartbeat says that the account, which committed to a tier, is there.
func (c *Client) Heartbeat(ctx context.Context) error {
	return c.send(ctx, &registrypb.MsgHeartbeat{Sender: c.Address()})
}

// AskMeasure begins the measurement of the account's machine, with so many steps in each segment.
func (c *Client) AskMeasure(ctx context.Context, steps uint32) error {
	return c.send(ctx, &registrypb.MsgAskMeasure{Sender: c.Address(), Steps: steps})
}

// AnswerMeasure binds the account to the results of its measurement.
func (c *Client) AnswerMeasure(ctx context.Context, root canon.Digest) error {
	return c.send(ctx, &registrypb.MsgAnswerMeasure{Sender: c.Address(), Root: root[:]})
}

// CheckMeasure says what the account found when it ran the drawn segment of a participant's measurement.
func (c *Client) CheckMeasure(ctx context.Context, participant string, result canon.Digest) error {
	return c.send(ctx, &registrypb.MsgCheckMeasure{Sender: c.Address(), Participant: participant, Result: result[:]})
}

// OpenMeasure shows the results of the account's measurement.
func (c *Client) OpenMeasure(ctx context.Context, results []canon.Digest) error {
	return c.send(ctx, &registrypb.MsgOpenMeasure{Sender: c.Address(), Results: runpb.FromDigests(results)})
}

// Offer offers work in a role at a price in uzen per 10^15 floating-point operations, in as many runs at a time as
// there are slots; none withdraws the offer.
func (c *Client) Offer(ctx context.Context, role run.Role, price uint64, slots uint32) error {
	return c.send(ctx, &marketpb.MsgOffer{Sender: c.Address(), Role: registrypb.Role(role), Price: price, Slots: slots})
}

// OfferHourly is Offer at a price in uzen for an hour of the account's machine, at its measured rate.
func (c *Client) OfferHourly(ctx context.Context, role run.Role, hourly uint64, slots uint32) error {
	return c.send(ctx, &marketpb.MsgOffer{Sender: c.Address(), Role: registrypb.Role(role), Hourly: hourly, Slots: slots})
}

// OfferPool offers the work of every worker that named the account as its pool, each in as many runs as there are
// slots.
func (c *Client) OfferPool(ctx context.Context, price uint64, slots uint32) error {
	return c.send(ctx, &marketpb.MsgOffer{Sender: c.Address(), Role: registrypb.Role(run.Worker), Price: price,
		Slots: slots, Pool: true})
}

// Order places an order of the work that an opening shows (referee.Opening), and locks its budget. Consumer and At are
// the account and the block.
func (c *Client) Order(ctx context.Context, o market.Order, opening []byte) error {
	return c.send(ctx, &marketpb.MsgOrder{
		Sender: c.Address(), Terms: runpb.FromTerms(o.Terms), Budget: o.Budget, PriceCap: o.PriceCap,
		WorkersMin: o.Workers.Min, WorkersTarget: o.Workers.Target, WorkersMax: o.Workers.Max,
		Verifiers: o.Verifiers, Deadline: o.Deadline, Conditions: marketpb.FromConditions(o.Conditions),
		OnExceed: marketpb.OnExceed(o.OnExceed), SharesPpm: o.SharesPPM, Opening: opening,
	})
}

// CancelOrder takes back an order: at once if it is not matched; else its run ends with the rounds that are under way.
func (c *Client) CancelOrder(ctx context.Context, job string) error {
	return c.send(ctx, &marketpb.MsgCancelOrder{Sender: c.Address(), Job: job})
}

// PauseJob lets no further round of a run begin until ResumeJob.
func (c *Client) PauseJob(ctx context.Context, job string) error {
	return c.send(ctx, &marketpb.MsgPauseJob{Sender: c.Address(), Job: job})
}

// ResumeJob ends a pause.
func (c *Client) ResumeJob(ctx context.Context, job string) error {
	return c.send(ctx, &marketpb.MsgResumeJob{Sender: c.Address(), Job: job})
}

// TopUpJob adds to the budget of a job, in uzen.
func (c *Client) TopUpJob(ctx context.Context, job string, amount uint64) error {
	return c.send(ctx, &marketpb.MsgTopUpJob{Sender: c.Address(), Job: job, Amount: amount})
}

// Lots are the offers as they are matched: those of pools one for each member, with the slots that are left.
func (c *Client) Lots(ctx context.Context) ([]market.Listing, error) {
	r, err := marketpb.NewQueryClient(c.conn).Lots(ctx, &marketpb.QueryLotsRequest{})
	return list[market.Listing](r.GetLots(), err)
}

// Estimate is what would become of an order now.
func (c *Client) Estimate(ctx context.Context, o market.Order) (market.Estimate, error) {
	r, err := marketpb.NewQueryClient(c.conn).Estimate(ctx, &marketpb.QueryEstimateRequest{Order: canon.MustMarshal(o)})
	return one[market.Estimate](r.GetEstimate(), err)
}

// MarketParams are the parameters of the market in force.
func (c *Client) MarketParams(ctx context.Context) (market.Params, error) {
	r, err := marketpb.NewQueryClient(c.conn).Params(ctx, &marketpb.QueryParamsRequest{})
	return one[market.Params](r.GetParams(), err)
}

// RegistryParams are the parameters of the registry in force.
func (c *Client) RegistryParams(ctx context.Context) (registry.Params, error) {
	r, err := registrypb.NewQueryClient(c.conn).Params(ctx, &registrypb.QueryParamsRequest{})
	return one[registry.Params](r.GetParams(), err)
}

// Measurements are those that go on, in order of participant.
func (c *Client) Measurements(ctx context.Context) ([]registry.Measurement, error) {
	r, err := registrypb.NewQueryClient(c.conn).Measurements(ctx, &registrypb.QueryMeasurementsRequest{})
	return list[registry.Measurement](r.GetMeasurements(), err)
}

// Uptime of a participant that committed to a tier, in the epoch that goes on, and in parts per million; or
// ErrNotFound.
func (c *Client) Uptime(ctx context.Context, id string) (registry.Uptime, uint32, error) {
	r, err := registrypb.NewQueryClient(c.conn).Uptime(ctx, &registrypb.QueryUptimeRequest{Id: id})
	u, err := one[registry.Uptime](r.GetUptime(), err)
	return u, r.GetPpm(), err
}
