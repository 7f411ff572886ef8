// Package catalog sends the messages and the queries of x/catalog in the types of protocol/catalog.
package catalog

import (
	"context"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/x/catalog/catalogpb"
	"github.com/starling-network/starling/client/module/submit"
	"github.com/starling-network/starling/client/query"
	"github.com/starling-network/starling/protocol/catalog"
)

// Client sends the messages and the queries of x/catalog: listed models and data sets, and shares of their revenue.
type Client struct{ submit.Account }

// List lists a work that was made from others, and returns its number.
func (c Client) List(ctx context.Context, t catalog.Terms, parents []uint64) (uint64, error) {
	m := &catalogpb.MsgList{Sender: c.Address(), Kind: string(t.Kind), Title: t.Title, Licence: t.Licence.Name,
		Files: t.Files[:], Job: t.Job, Royalty: t.Royalty, Parents: parents}
	if !t.Licence.Text.IsZero() {
		m.LicenceText = t.Licence.Text[:]
	}
	for _, d := range t.Digests {
		m.Digests = append(m.Digests, d[:])
	}
	var r catalogpb.MsgListResponse
	err := submit.Ask(ctx, c.Account, m, &r)
	return r.Listing, err
}

// OfferShares offers shares of the revenue of a job's model, or of listing/NUMBER, for grains of a coin each, and
// returns the number of the offer.
func (c Client) OfferShares(ctx context.Context, job string, shares, price uint64, denom string) (uint64, error) {
	var r catalogpb.MsgOfferSharesResponse
	err := submit.Ask(ctx, c.Account, &catalogpb.MsgOfferShares{Sender: c.Address(), Job: job, Shares: shares,
		Price: price, Denom: denom}, &r)
	return r.Offer, err
}

// WithdrawShares takes the shares of an offer back that are not sold, and returns their number.
func (c Client) WithdrawShares(ctx context.Context, offer uint64) (uint64, error) {
	var r catalogpb.MsgWithdrawSharesResponse
	err := submit.Ask(ctx, c.Account, &catalogpb.MsgWithdrawShares{Sender: c.Address(), Offer: offer}, &r)
	return r.Shares, err
}

// BuyShares buys shares of an offer, and returns the price in grains.
func (c Client) BuyShares(ctx context.Context, offer, shares uint64) (uint64, error) {
	var r catalogpb.MsgBuySharesResponse
	err := submit.Ask(ctx, c.Account, &catalogpb.MsgBuyShares{Sender: c.Address(), Offer: offer, Shares: shares}, &r)
	return r.Paid, err
}

// Listings are the listed works, or those that were made from one if parent is not 0, the latest first.
func (c Client) Listings(ctx context.Context, parent uint64) ([]catalog.Listing, error) {
	var list []catalog.Listing
	for next := (&catalogpb.QueryListingsRequest{Parent: parent}); ; {
		r, err := catalogpb.NewQueryClient(c.Account).Listings(ctx, next)
		page, err := query.List[catalog.Listing](r.GetListings(), err)
		if err != nil || len(page) == 0 {
			return list, err
		}
		list = append(list, page...)
		if next.Before = page[len(page)-1].ID; next.Before == 1 {
			return list, nil
		}
	}
}

// Listing is a listed work; query.ErrNotFound if there is none with this number.
func (c Client) Listing(ctx context.Context, id uint64) (catalog.Listing, error) {
	r, err := catalogpb.NewQueryClient(c.Account).Listing(ctx, &catalogpb.QueryListingRequest{Listing: id})
	return query.One[catalog.Listing](r.GetListing(), err)
}

// OfJob is the listing of a job, whose number is 0 if it is not listed, and the works that its model was made from.
func (c Client) OfJob(ctx context.Context, job string) (l catalog.Listing, parents []catalog.Parent, err error) {
	r, err := catalogpb.NewQueryClient(c.Account).OfJob(ctx, &catalogpb.QueryOfJobRequest{Job: job})
	if parents, err = query.List[catalog.Parent](r.GetParents(), err); err != nil || len(r.Listing) == 0 {
		return l, parents, err
	}
	return l, parents, canon.Unmarshal(r.Listing, &l)
}

// ShareOffers are the offers of shares with some that are left, or all, the latest first.
func (c Client) ShareOffers(ctx context.Context, all bool) ([]catalog.ShareOffer, error) {
	var list []catalog.ShareOffer
	for next := (&catalogpb.QueryShareOffersRequest{All: all}); ; {
		r, err := catalogpb.NewQueryClient(c.Account).ShareOffers(ctx, next)
		page, err := query.List[catalog.ShareOffer](r.GetOffers(), err)
		if err != nil || len(page) == 0 {
			return list, err
		}
		list = append(list, page...)
		if next.Before = page[len(page)-1].ID; next.Before == 1 {
			return list, nil
		}
	}
}

// ShareOffer is an offer of shares; query.ErrNotFound if there is none with this number.
func (c Client) ShareOffer(ctx context.Context, id uint64) (catalog.ShareOffer, error) {
	r, err := catalogpb.NewQueryClient(c.Account).ShareOffer(ctx, &catalogpb.QueryShareOfferRequest{Offer: id})
	return query.One[catalog.ShareOffer](r.GetOffer(), err)
}

// RegisterKey registers a verifying key, and returns its digest.
func (c Client) RegisterKey(ctx context.Context, key []byte) (d canon.Digest, err error) {
	var r catalogpb.MsgRegisterKeyResponse
	if err = submit.Ask(ctx, c.Account, &catalogpb.MsgRegisterKey{Sender: c.Address(), Key: key}, &r); err == nil {
		copy(d[:], r.Digest)
	}
	return d, err
}

// Prove has the network verify a proof about a listing of the account and its base model, with a registered key.
func (c Client) Prove(ctx context.Context, listing, parent uint64, key canon.Digest, proof []byte) error {
	return submit.Send(ctx, c.Account, &catalogpb.MsgProve{Sender: c.Address(), Listing: listing, Parent: parent,
		Key: key[:], Proof: proof})
}

// Proofs are what was proven about a listing.
func (c Client) Proofs(ctx context.Context, listing uint64) ([]catalog.Proven, error) {
	r, err := catalogpb.NewQueryClient(c.Account).Proofs(ctx, &catalogpb.QueryProofsRequest{Listing: listing})
	return query.List[catalog.Proven](r.GetProofs(), err)
}

// ProofKey is a registered verifying key; query.ErrNotFound if there is none with this digest.
func (c Client) ProofKey(ctx context.Context, d canon.Digest) (catalog.ProofKey, error) {
	r, err := catalogpb.NewQueryClient(c.Account).Key(ctx, &catalogpb.QueryKeyRequest{Digest: d.String()})
	return query.One[catalog.ProofKey](r.GetKey(), err)
}
