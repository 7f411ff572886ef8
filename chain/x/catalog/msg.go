package catalog

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"
	sdkmath "cosmossdk.io/math"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/catalog/catalogpb"
	"github.com/starling-network/starling/chain/x/reward"
	"github.com/starling-network/starling/chain/x/training/runpb"
	"github.com/starling-network/starling/protocol/catalog"
	shares "github.com/starling-network/starling/protocol/reward"
)

// messages implements catalogpb.MsgServer over a keeper.
type messages struct{ *Keeper }

// next is the number of a new record, from 1 on.
func next(ctx context.Context, s collections.Sequence) (uint64, error) {
	sdk.UnwrapSDKContext(ctx).GasMeter().ConsumeGas(recordGas, "record of the catalog")
	n, err := s.Next(ctx)
	return n + 1, err
}

// List implements catalogpb.MsgServer.
func (k messages) List(ctx context.Context, m *catalogpb.MsgList) (*catalogpb.MsgListResponse, error) {
	l, err := k.listing(ctx, m)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	if l.ID, err = next(ctx, k.last); err != nil {
		return nil, err
	}
	for _, d := range l.Terms.Digests {
		c, err := k.claim(ctx, d)
		if err != nil {
			return nil, err
		}
		if c, err = c.List(l.Owner, l.ID); err != nil {
			return nil, ErrorTable.Wrap(fmt.Errorf("%w: %s", err, d.Short()))
		}
		if err := k.claims.Set(ctx, d[:], c); err != nil {
			return nil, err
		}
	}
	for _, p := range l.Parents {
		if err := k.children.Set(ctx, collections.Join(p.Listing, l.ID)); err != nil {
			return nil, err
		}
	}
	if job := l.Terms.Job; job != "" {
		err = k.jobs.Set(ctx, job, l.ID)
	} else {
		err = k.revenues.Create(ctx, l.Pool(), l.Owner)
	}
	return &catalogpb.MsgListResponse{Listing: l.ID}, errors.Join(err, k.listings.Set(ctx, l.ID, l))
}

// listing reads and checks the listing of a message.
func (k messages) listing(ctx context.Context, m *catalogpb.MsgList) (catalog.Listing, error) {
	l := catalog.Listing{Owner: m.Sender, Height: sdk.UnwrapSDKContext(ctx).BlockHeight(), Terms: catalog.Terms{
		Kind: catalog.Kind(m.Kind), Title: m.Title, Licence: catalog.Licence{Name: m.Licence}, Job: m.Job,
		Royalty: m.Royalty}}
	var errs [2]error
	l.Terms.Files, errs[0] = runpb.Digest(m.Files)
	if len(m.LicenceText) > 0 {
		l.Terms.Licence.Text, errs[1] = runpb.Digest(m.LicenceText)
	}
	if err := errors.Join(errs[:]...); err != nil {
		return l, fmt.Errorf("%w: %w", catalog.ErrListing, err)
	}
	if len(m.Digests) > catalog.MaxDigests || len(m.Parents) > catalog.MaxParents {
		return l, fmt.Errorf("%w: %d digests and %d parents, at most %d and %d", catalog.ErrListing, len(m.Digests),
			len(m.Parents), catalog.MaxDigests, catalog.MaxParents)
	}
	for _, b := range m.Digests {
		d, err := runpb.Digest(b)
		if err != nil {
			return l, fmt.Errorf("%w: %w", catalog.ErrListing, err)
		}
		l.Terms.Digests = append(l.Terms.Digests, d)
	}
	if err := l.Terms.Validate(); err != nil {
		return l, err
	}
	var known []catalog.Parent
	if m.Job != "" {
		if err := k.listable(ctx, m.Job, m.Sender); err != nil {
			return l, err
		}
		var err error
		if known, err = k.parentsOf(ctx, m.Job); err != nil {
			return l, err
		}
	}
	var named []catalog.Listing
	for _, id := range m.Parents {
		p, err := k.Listing(ctx, id)
		if err != nil {
			return l, err
		}
		named = append(named, p)
	}
	var err error
	if l.Parents, err = catalog.Made(known, named); err != nil {
		return l, err
	}
	return l, k.alone(ctx, l)
}

// alone refuses parents that the owner of a job names, and that ask for a royalty, while other accounts have shares of
// the job, or may buy them in the same block: the owner could name works of its own, and take the whole revenue.
func (k messages) alone(ctx context.Context, l catalog.Listing) error {
	if l.Terms.Job == "" || !catalog.Asks(l.Parents) {
		return nil
	}
	owner, err := sdk.AccAddressFromBech32(l.Owner)
	if err != nil {
		return err
	}
	if has := k.bank.GetBalance(ctx, owner, reward.Denom(l.Terms.Job)).Amount.Uint64(); has != shares.Shares {
		return fmt.Errorf("%w: %s has %d of the shares of %s, and would take the revenue of the others",
			catalog.ErrParents, l.Owner, has, l.Terms.Job)
	}
	return nil
}

// listable refuses a job that the account did not order, that has no shares, or that is listed.
func (k messages) listable(ctx context.Context, job, sender string) error {
	o, err := k.orders.Ordered(ctx, job)
	if err != nil || o.Consumer != sender {
		return fmt.Errorf("%w: %s did not order %s", ErrJob, sender, job)
	}
	if err := k.revenues.Accrue(ctx, job); err != nil {
		return fmt.Errorf("%w: %w", ErrJob, err)
	}
	listed, err := k.jobs.Has(ctx, job)
	if listed {
		return fmt.Errorf("%w: %s is listed", ErrJob, job)
	}
	return err
}

// OfferShares implements catalogpb.MsgServer.
func (k messages) OfferShares(ctx context.Context,
	m *catalogpb.MsgOfferShares) (*catalogpb.MsgOfferSharesResponse, error) {
	o := catalog.ShareOffer{Seller: m.Sender, Pool: m.Job, Shares: m.Shares, Left: m.Shares, Price: m.Price,
		Denom: m.Denom}
	if err := o.Validate(); err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	if _, err := k.coins.Open(ctx, m.Denom); err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	from, err := sdk.AccAddressFromBech32(m.Sender)
	if err != nil {
		return nil, err
	}
	if err := k.revenues.Accrue(ctx, o.Pool, from); err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	if err := k.bank.SendCoinsFromAccountToModule(ctx, from, Name, tokens(o, o.Shares)); err != nil {
		return nil, ErrorTable.Wrap(fmt.Errorf("%w: %w", ErrShares, err))
	}
	if o.ID, err = next(ctx, k.lastSale); err != nil {
		return nil, err
	}
	return &catalogpb.MsgOfferSharesResponse{Offer: o.ID}, errors.Join(k.count(ctx, o, o.Shares, 0), k.save(ctx, o))
}

func tokens(o catalog.ShareOffer, n uint64) sdk.Coins {
	return sdk.NewCoins(sdk.NewCoin(reward.Denom(o.Pool), sdkmath.NewIntFromUint64(n)))
}

func (k messages) save(ctx context.Context, o catalog.ShareOffer) error {
	if o.Left == 0 {
		return errors.Join(k.offers.Set(ctx, o.ID, o), k.open.Remove(ctx, o.ID))
	}
	return errors.Join(k.offers.Set(ctx, o.ID, o), k.open.Set(ctx, o.ID))
}

// count adds shares to those that the seller of an offer offers, and removes others.
func (k messages) count(ctx context.Context, o catalog.ShareOffer, more, fewer uint64) error {
	key := collections.Join(o.Pool, o.Seller)
	n, err := k.offered.Get(ctx, key)
	if err != nil && !errors.Is(err, collections.ErrNotFound) {
		return err
	}
	if n = n + more - fewer; n == 0 {
		return k.offered.Remove(ctx, key)
	}
	return k.offered.Set(ctx, key, n)
}

// offer returns an offer, and its seller, which is credited with the revenue of its shares up to now.
func (k messages) offer(ctx context.Context, id uint64) (o catalog.ShareOffer, seller sdk.AccAddress, err error) {
	o, err = k.offers.Get(ctx, id)
	if errors.Is(err, collections.ErrNotFound) {
		return o, nil, fmt.Errorf("%w: offer %d", ErrNone, id)
	}
	if err != nil {
		return o, nil, err
	}
	if seller, err = sdk.AccAddressFromBech32(o.Seller); err != nil {
		return o, nil, err
	}
	return o, seller, k.revenues.Accrue(ctx, o.Pool, seller)
}

// WithdrawShares implements catalogpb.MsgServer.
func (k messages) WithdrawShares(ctx context.Context,
	m *catalogpb.MsgWithdrawShares) (*catalogpb.MsgWithdrawSharesResponse, error) {
	o, seller, err := k.offer(ctx, m.Offer)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	o, n, err := o.Withdraw(m.Sender)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	return &catalogpb.MsgWithdrawSharesResponse{Shares: n}, k.release(ctx, o, seller, n)
}

// release moves shares of an offer to an account, and stores the offer.
func (k messages) release(ctx context.Context, o catalog.ShareOffer, to sdk.AccAddress, n uint64) error {
	if err := k.bank.SendCoinsFromModuleToAccount(ctx, Name, to, tokens(o, n)); err != nil {
		return err
	}
	return errors.Join(k.count(ctx, o, 0, n), k.save(ctx, o))
}

// BuyShares implements catalogpb.MsgServer.
func (k messages) BuyShares(ctx context.Context,
	m *catalogpb.MsgBuyShares) (*catalogpb.MsgBuySharesResponse, error) {
	o, seller, err := k.offer(ctx, m.Offer)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	o, price, err := o.Buy(m.Sender, m.Shares)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	c, err := k.coins.Find(ctx, o.Denom)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	buyer, err := sdk.AccAddressFromBech32(m.Sender)
	if err != nil {
		return nil, err
	}
	if err := k.bank.SendCoins(ctx, buyer, seller, adapter.CoinsOf(c.Coin, price)); err != nil {
		return nil, ErrorTable.Wrap(fmt.Errorf("%w: %w", ErrFunds, err))
	}
	return &catalogpb.MsgBuySharesResponse{Paid: price}, k.release(ctx, o, buyer, m.Shares)
}
