package market

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"cosmossdk.io/collections"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/x/market/marketpb"
	"github.com/starling-network/starling/chain/x/training/runpb"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/market/cost"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/refusal"
)

// ErrDigest is returned for a digest of the wrong length in a message.
var ErrDigest = runpb.ErrDigest

// messages implements marketpb.MsgServer over a keeper.
type messages struct{ *Keeper }

// Offer implements marketpb.MsgServer.
func (k messages) Offer(ctx context.Context, m *marketpb.MsgOffer) (*marketpb.MsgOfferResponse, error) {
	role := m.Role.Rule()
	key := collections.Join(uint32(role), m.Sender)
	if m.Slots == 0 {
		return &marketpb.MsgOfferResponse{}, k.offers.Remove(ctx, key)
	}
	sdk.UnwrapSDKContext(ctx).GasMeter().ConsumeGas(offerGas, "offer")
	o, err := k.offer(ctx, m)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	return &marketpb.MsgOfferResponse{}, k.offers.Set(ctx, key, o)
}

// offer reads and checks the offer of a message. It converts a price per hour into a price per operation at the
// measured rate.
func (k messages) offer(ctx context.Context, m *marketpb.MsgOffer) (market.Offer, error) {
	o := market.Offer{ID: m.Sender, Role: m.Role.Rule(), Price: m.Price, Slots: m.Slots,
		At: sdk.UnwrapSDKContext(ctx).BlockHeight(), Pool: m.Pool}
	params, err := k.registry.Params(ctx)
	if err != nil {
		return o, err
	}
	p, err := k.registry.Get(ctx, m.Sender)
	switch {
	case m.Slots > MaxSlots:
		return o, fmt.Errorf("%w: %d, at most %d", ErrSlots, m.Slots, MaxSlots)
	case m.Pool && p.Firm() < params.MinStake(crew.Worker):
		return o, fmt.Errorf("%w: a pool stakes what a worker does, %d uzen", ErrRole, params.MinStake(crew.Worker))
	case err != nil || o.Role == 0 || !m.Pool && !p.Eligible(o.Role.Registered(), params):
		return o, fmt.Errorf("%w: %s", ErrRole, m.Role)
	case m.Pool && o.Role != crew.Worker:
		return o, fmt.Errorf("%w: a pool offers the work of workers", ErrRole)
	case m.Hourly > 0 && p.Rate == 0:
		return o, fmt.Errorf("%w: %s asks %d uzen an hour", ErrRate, m.Sender, m.Hourly)
	case m.Hourly > 0:
		o.Price = cost.PerFlops(m.Hourly, p.Rate)
	}
	o.Foreign = m.Foreign
	return k.asks(ctx, m, o, p.Rate)
}

// asks adds the prices in other coins to an offer.
func (k messages) asks(ctx context.Context, m *marketpb.MsgOffer, o market.Offer, rate uint64) (market.Offer, error) {
	if len(m.Asks) > market.MaxAsks || m.Foreign && len(m.Asks) == 0 {
		return o, fmt.Errorf("%w: prices in %d coins, wanted 1 to %d", coin.ErrCoin, len(m.Asks), market.MaxAsks)
	}
	for _, a := range m.Asks {
		c, err := k.Coins.Open(ctx, a.Denom)
		_, twice := o.Asked(a.Denom)
		switch {
		case err != nil:
			return o, err
		case c.Own() || twice:
			return o, fmt.Errorf("%w: two prices in %s", coin.ErrCoin, c.Name())
		case a.Hourly > 0 && rate == 0:
			return o, fmt.Errorf("%w: %s asks %s an hour", ErrRate, m.Sender, c.Text(a.Hourly))
		case a.Hourly > 0:
			a.Price = cost.PerFlops(a.Hourly, rate)
		}
		o.Asks = append(o.Asks, market.Ask{Denom: a.Denom, Price: a.Price})
	}
	return o, nil
}

// Order implements marketpb.MsgServer.
func (k messages) Order(ctx context.Context, m *marketpb.MsgOrder) (*marketpb.MsgOrderResponse, error) {
	sdk.UnwrapSDKContext(ctx).GasMeter().ConsumeGas(orderGas, "order")
	o, err := k.order(ctx, m)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	params, err := k.Params(ctx)
	if err != nil {
		return nil, err
	}
	if err := k.lock(ctx, m.Sender, o.Coin, o.Budget); err != nil {
		return nil, err
	}
	if err := k.runs.Admit(ctx, o.Consumer, o.Terms, m.Opening, params.NumericsAt(o.At)); err != nil {
		if errors.Is(err, refusal.ErrTerms) {
			err = fmt.Errorf("%w: %w", market.ErrOrder, err)
		}
		return nil, ErrorTable.Wrap(err)
	}
	fee, err := k.waiting(ctx, m)
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		k.jobs.Set(ctx, o.ID, Job{Order: o, Status: Open, Fee: fee}),
		k.open.enter(ctx, o),
		k.escrows.Set(ctx, o.ID, market.Escrow{Budget: o.Budget}),
	)
	if err != nil {
		return nil, err
	}
	return &marketpb.MsgOrderResponse{},
		emit(ctx, &marketpb.EventOrdered{Job: o.ID, Consumer: o.Consumer, Budget: o.Budget, Denom: o.Coin.Denom})
}

// waiting is what an order pays if it ends without a run.
func (k messages) waiting(ctx context.Context, m *marketpb.MsgOrder) (uint64, error) {
	c, err := k.Coins.Find(ctx, m.Denom)
	return c.WaitingFee(len(m.Opening)), err
}

// order reads and checks the order of a message.
func (k messages) order(ctx context.Context, m *marketpb.MsgOrder) (market.Order, error) {
	terms, err := m.Terms.Rule()
	if err != nil {
		return market.Order{}, err
	}
	o := market.Order{
		ID: terms.Job, Consumer: m.Sender, Terms: terms, Budget: m.Budget, PriceCap: m.PriceCap,
		Workers:   market.Workers{Min: m.WorkersMin, Target: m.WorkersTarget, Max: m.WorkersMax},
		Verifiers: m.Verifiers, Deadline: m.Deadline, At: sdk.UnwrapSDKContext(ctx).BlockHeight(),
		Conditions: m.Conditions.Rule(), OnExceed: m.OnExceed.Rule(), SharesPPM: m.SharesPpm,
		Generators: m.Generators,
	}
	c, err := k.Coins.Open(ctx, m.Denom)
	if err != nil {
		return o, err
	}
	if o.Coin = c.Coin; !c.Own() {
		o.Waiting = c.Waiting
	}
	if err := o.Validate(); err != nil {
		return o, err
	}
	if least := c.WaitingFee(len(m.Opening)); o.Budget < least {
		return o, fmt.Errorf("%w: a budget of %s, at least %s", market.ErrOrder, c.Text(o.Budget), c.Text(least))
	}
	if !nameable(o.ID) {
		return o, fmt.Errorf("%w: %q", ErrJob, o.ID)
	}
	if o.Deadline == 0 {
		o.Deadline = o.At + waiting
	}
	if o.Expired(o.At) || o.Deadline > o.At+mostWaiting {
		return o, fmt.Errorf("%w: %d, the chain is at %d", ErrDeadline, o.Deadline, o.At)
	}
	if owner := kept(o.ID); owner != "" && owner != o.Consumer {
		return o, fmt.Errorf("%w: %s is kept for %s", ErrTaken, o.ID, owner)
	}
	taken, err := k.jobs.Has(ctx, o.ID)
	if taken {
		return o, fmt.Errorf("%w: %s", ErrTaken, o.ID)
	}
	return o, err
}

// Limits of orders and offers, and the gas for the work that they cause in later blocks.
const (
	MaxName     = 96        // bytes of the name of a job, which is part of the token of its model's shares
	MaxSlots    = 64        // of an offer
	waiting     = 600_000   // blocks until an order without a deadline expires
	mostWaiting = 2_592_000 // most blocks until an order expires
	orderGas    = 50_000
	offerGas    = 20_000
)

// kept returns the account for which a job name is reserved: the address after its last dot; "" if there is none. So an
// account that sees an order before a block contains it cannot take such a name.
func kept(job string) string {
	name := job[strings.LastIndexByte(job, '.')+1:]
	if _, err := sdk.AccAddressFromBech32(name); err != nil || name == job {
		return ""
	}
	return name
}

// nameable reports whether a job can have a name: names are part of file names, addresses and keys.
func nameable(job string) bool {
	for _, c := range job {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '-', c == '_':
		default:
			return false
		}
	}
	return job != "" && len(job) <= MaxName
}
