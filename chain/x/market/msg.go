package market

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/market/marketpb"
	"github.com/starling-network/starling/chain/x/training/runpb"
	"github.com/starling-network/starling/protocol/market"
)

// ErrDigest is a digest of the wrong length in a message.
var ErrDigest = runpb.ErrDigest

// Offer implements marketpb.MsgServer.
func (k *Keeper) Offer(ctx context.Context, m *marketpb.MsgOffer) (*marketpb.MsgOfferResponse, error) {
	role := m.Role.Rule()
	key := collections.Join(uint32(role), m.Sender)
	if m.Slots == 0 {
		return &marketpb.MsgOfferResponse{}, k.offers.Remove(ctx, key)
	}
	ok, err := k.registry.Eligible(ctx, m.Sender, role)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, Refusals.Wrap(fmt.Errorf("%w: %s", ErrRole, m.Role))
	}
	height := sdk.UnwrapSDKContext(ctx).BlockHeight()
	return &marketpb.MsgOfferResponse{}, k.offers.Set(ctx, key, market.Offer{ID: m.Sender, Role: role, Price: m.Price, Slots: m.Slots, At: height})
}

// Order implements marketpb.MsgServer.
func (k *Keeper) Order(ctx context.Context, m *marketpb.MsgOrder) (*marketpb.MsgOrderResponse, error) {
	o, err := k.order(ctx, m)
	if err != nil {
		return nil, Refusals.Wrap(err)
	}
	from, err := sdk.AccAddressFromBech32(m.Sender)
	if err != nil {
		return nil, err
	}
	if err := k.bank.SendCoinsFromAccountToModule(ctx, from, Name, adapter.Coins(o.Budget)); err != nil {
		return nil, Refusals.Wrap(fmt.Errorf("%w: %w", ErrFunds, err))
	}
	err = errors.Join(
		k.jobs.Set(ctx, o.ID, Job{Order: o, Status: Open}),
		k.open.Set(ctx, o.ID),
		k.escrows.Set(ctx, o.ID, market.Escrow{Budget: o.Budget}),
	)
	if err != nil {
		return nil, err
	}
	return &marketpb.MsgOrderResponse{}, emit(ctx, &marketpb.EventOrdered{Job: o.ID, Consumer: o.Consumer, Budget: o.Budget})
}

// order reads and checks the order of a message.
func (k *Keeper) order(ctx context.Context, m *marketpb.MsgOrder) (market.Order, error) {
	terms, err := m.Terms.Rule()
	if err != nil {
		return market.Order{}, err
	}
	o := market.Order{
		ID: terms.Job, Consumer: m.Sender, Terms: terms, Budget: m.Budget, PriceCap: m.PriceCap,
		Workers:   market.Workers{Min: m.WorkersMin, Target: m.WorkersTarget, Max: m.WorkersMax},
		Verifiers: m.Verifiers, Deadline: m.Deadline, At: sdk.UnwrapSDKContext(ctx).BlockHeight(),
	}
	if err := o.Validate(); err != nil {
		return o, err
	}
	if !nameable(o.ID) {
		return o, fmt.Errorf("%w: %q", ErrJob, o.ID)
	}
	if o.Expired(o.At) {
		return o, fmt.Errorf("%w: %d, the chain is at %d", ErrDeadline, o.Deadline, o.At)
	}
	taken, err := k.jobs.Has(ctx, o.ID)
	if taken {
		return o, fmt.Errorf("%w: %s", ErrTaken, o.ID)
	}
	return o, err
}

// nameable reports whether a job can have a name: it is part of file names, addresses and keys everywhere.
func nameable(job string) bool {
	for _, c := range job {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '-', c == '_':
		default:
			return false
		}
	}
	return job != "" && len(job) <= 128
}

// CancelOrder implements marketpb.MsgServer.
func (k *Keeper) CancelOrder(ctx context.Context, m *marketpb.MsgCancelOrder) (*marketpb.MsgCancelOrderResponse, error) {
	job, err := k.Job(ctx, m.Job)
	switch {
	case err != nil:
		return nil, Refusals.Wrap(err)
	case job.Order.Consumer != m.Sender:
		return nil, Refusals.Wrap(fmt.Errorf("%w: %s ordered %s", ErrNotYours, job.Order.Consumer, m.Job))
	case job.Status != Open:
		return nil, Refusals.Wrap(fmt.Errorf("%w: %s is %s", ErrNotOpen, m.Job, job.Status))
	}
	return &marketpb.MsgCancelOrderResponse{}, k.refund(ctx, job, Cancelled, "")
}
