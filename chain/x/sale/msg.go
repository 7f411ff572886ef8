package sale

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/x/sale/salepb"
	"github.com/starling-network/starling/chain/x/training/runpb"
	"github.com/starling-network/starling/protocol/sale"
)

// messages implements salepb.MsgServer over a keeper.
type messages struct{ *Keeper }

// Offer implements salepb.MsgServer.
func (k messages) Offer(ctx context.Context, m *salepb.MsgOffer) (*salepb.MsgOfferResponse, error) {
	o := sale.Offer{Seller: m.Sender, Terms: sale.Terms{Name: m.Name, Price: m.Price, Denom: m.Denom, Bond: m.Bond,
		Answer: m.Answer, Complaint: m.Complaint, Seal: m.Seal, Locations: m.Locations, Job: m.Job,
		Listing: m.Listing, SellerPart: m.SellerPart}}
	var err error
	if o.Terms.Content, err = contentOf(m.Content); err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	if err := o.Terms.Validate(); err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	if _, err := k.custody.Coins.Open(ctx, m.Denom); err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	if err := k.listed(ctx, o); err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	if err := k.first(ctx, "offer", m.Sender, 0, o.Terms.Content.Key); err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	if o.ID, err = k.number(ctx); err != nil {
		return nil, err
	}
	if err := k.custody.Lock(ctx, m.Sender, m.Denom, o.Terms.Bond); err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	if o.Draws() {
		if err := k.draws.Set(ctx, collections.Join(height(ctx), o.ID)); err != nil {
			return nil, err
		}
	}
	return &salepb.MsgOfferResponse{Offer: o.ID}, k.save(ctx, o)
}

// listed refuses an offer of a listing of another account, or of other files than those of the listing.
func (k messages) listed(ctx context.Context, o sale.Offer) error {
	if o.Terms.Listing == 0 {
		return nil
	}
	l, err := k.catalog.Listing(ctx, o.Terms.Listing)
	if err == nil && l.Owner == o.Seller && l.Terms.Files == o.Terms.Content.Index {
		return nil
	}
	return errors.Join(fmt.Errorf("%w: listing %d of %s", ErrFiles, o.Terms.Listing, l.Owner), err)
}

func contentOf(m salepb.Content) (sale.Content, error) {
	c := sale.Content{Leaves: m.Leaves, Bytes: m.Bytes, Scheme: sale.Scheme(m.Scheme)}
	var err error
	if c.Plain, err = runpb.Digest(m.Plain); err != nil {
		return c, err
	}
	if c.Sealed, err = runpb.Digest(m.Sealed); err != nil {
		return c, err
	}
	if c.Key, err = runpb.Digest(m.Key); err != nil {
		return c, err
	}
	c.Index, err = runpb.Digest(m.Index)
	return c, err
}

// Withdraw implements salepb.MsgServer.
func (k messages) Withdraw(ctx context.Context, m *salepb.MsgWithdraw) (*salepb.MsgWithdrawResponse, error) {
	o, err := k.offer(ctx, m.Offer)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	o, payments, err := o.Withdraw(m.Sender)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	if err := k.save(ctx, o); err != nil {
		return nil, err
	}
	return &salepb.MsgWithdrawResponse{}, k.pay(ctx, o, payments)
}

// Order implements salepb.MsgServer.
func (k messages) Order(ctx context.Context, m *salepb.MsgOrder) (*salepb.MsgOrderResponse, error) {
	o, err := k.offer(ctx, m.Offer)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	mask, err := runpb.Digest(m.Mask)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	if err := k.first(ctx, "order", m.Sender, o.ID, mask); err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	id, err := k.number(ctx)
	if err != nil {
		return nil, err
	}
	o, r, err := o.Place(id, sale.Order{Buyer: m.Sender, Mask: mask, Box: m.Box}, height(ctx))
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	if err := k.custody.Lock(ctx, m.Sender, o.Terms.Denom, o.Terms.Price); err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	if err := k.of.Set(ctx, collections.Join(o.ID, r.ID)); err != nil {
		return nil, err
	}
	return &salepb.MsgOrderResponse{Order: r.ID}, k.turn(ctx, o, sale.Order{}, r, nil)
}

// Answer implements salepb.MsgServer.
func (k messages) Answer(ctx context.Context, m *salepb.MsgAnswer) (*salepb.MsgAnswerResponse, error) {
	o, old, err := k.order(ctx, m.Order)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	r, err := o.Reply(old, m.Sender, m.Answer, height(ctx))
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	return &salepb.MsgAnswerResponse{}, k.turn(ctx, o, old, r, nil)
}

// Reject implements salepb.MsgServer.
func (k messages) Reject(ctx context.Context, m *salepb.MsgReject) (*salepb.MsgRejectResponse, error) {
	if len(m.Orders) == 0 || len(m.Orders) > sale.MaxRejected {
		return nil, ErrorTable.Wrap(fmt.Errorf("%w: %d orders are rejected, wanted 1 to %d", sale.ErrOrder, len(m.Orders),
			sale.MaxRejected))
	}
	for _, id := range m.Orders {
		o, old, err := k.order(ctx, id)
		if err != nil {
			return nil, ErrorTable.Wrap(err)
		}
		o, r, payments, err := o.Reject(old, m.Sender)
		if err != nil {
			return nil, ErrorTable.Wrap(err)
		}
		if err := k.turn(ctx, o, old, r, payments); err != nil {
			return nil, err
		}
	}
	return &salepb.MsgRejectResponse{}, nil
}

// Complain implements salepb.MsgServer.
func (k messages) Complain(ctx context.Context, m *salepb.MsgComplain) (*salepb.MsgComplainResponse, error) {
	o, old, err := k.order(ctx, m.Order)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	sdk.UnwrapSDKContext(ctx).GasMeter().ConsumeGas(evidenceGas, "evidence")
	e, err := sale.ParseEvidence(m.Evidence)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	o, r, payments, err := o.Complain(old, m.Sender, m.Mask, e, height(ctx))
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	return &salepb.MsgComplainResponse{Paid: payments[0].Amount}, k.turn(ctx, o, old, r, payments)
}

func height(ctx context.Context) int64 { return sdk.UnwrapSDKContext(ctx).BlockHeight() }
