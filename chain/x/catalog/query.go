package catalog

import (
	"context"
	"errors"

	"cosmossdk.io/collections"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/catalog/catalogpb"
	"github.com/starling-network/starling/protocol/catalog"
)

// Queries implements catalogpb.QueryServer over a keeper.
type Queries struct{ *Keeper }

// Listings lists works, the latest first.
func (q Queries) Listings(ctx context.Context,
	m *catalogpb.QueryListingsRequest) (*catalogpb.QueryListingsResponse, error) {
	r, most := &catalogpb.QueryListingsResponse{}, adapter.Most(m.Limit)
	add := func(l catalog.Listing) bool {
		r.Listings = append(r.Listings, canon.MustMarshal(l))
		return len(r.Listings) == most
	}
	if m.Parent == 0 {
		return r, q.listings.Walk(ctx, adapter.Below(m.Before),
			func(_ uint64, l catalog.Listing) (bool, error) { return add(l), nil })
	}
	within := collections.NewPrefixedPairRange[uint64, uint64](m.Parent).Descending()
	if m.Before > 0 {
		within = within.EndExclusive(m.Before)
	}
	return r, q.children.Walk(ctx, within, func(key collections.Pair[uint64, uint64]) (bool, error) {
		l, err := q.Keeper.Listing(ctx, key.K2())
		return err != nil || add(l), err
	})
}

// Listing returns a listing.
func (q Queries) Listing(ctx context.Context,
	m *catalogpb.QueryListingRequest) (*catalogpb.QueryListingResponse, error) {
	l, err := q.Keeper.Listing(ctx, m.Listing)
	if err != nil {
		return nil, status.Error(codes.NotFound, err.Error())
	}
	return &catalogpb.QueryListingResponse{Listing: canon.MustMarshal(l)}, nil
}

// OfJob returns the listing of a job, and the works that its order names.
func (q Queries) OfJob(ctx context.Context, m *catalogpb.QueryOfJobRequest) (*catalogpb.QueryOfJobResponse, error) {
	r := &catalogpb.QueryOfJobResponse{}
	parents, err := q.parentsOf(ctx, m.Job)
	if err != nil {
		return nil, err
	}
	id, err := q.jobs.Get(ctx, m.Job)
	if err == nil {
		var l catalog.Listing
		if l, err = q.Keeper.Listing(ctx, id); err != nil {
			return nil, err
		}
		r.Listing, parents = canon.MustMarshal(l), l.Parents
	} else if !errors.Is(err, collections.ErrNotFound) {
		return nil, err
	}
	for _, p := range parents {
		r.Parents = append(r.Parents, canon.MustMarshal(p))
	}
	return r, nil
}

// ShareOffers lists offers of shares, the latest first.
func (q Queries) ShareOffers(ctx context.Context,
	m *catalogpb.QueryShareOffersRequest) (*catalogpb.QueryShareOffersResponse, error) {
	r, most := &catalogpb.QueryShareOffersResponse{}, adapter.Most(m.Limit)
	add := func(_ uint64, o catalog.ShareOffer) (bool, error) {
		r.Offers = append(r.Offers, canon.MustMarshal(o))
		return len(r.Offers) == most, nil
	}
	if m.All {
		return r, q.offers.Walk(ctx, adapter.Below(m.Before), add)
	}
	return r, q.open.Walk(ctx, adapter.Below(m.Before), func(id uint64) (bool, error) {
		o, err := q.offers.Get(ctx, id)
		if err != nil {
			return true, err
		}
		return add(id, o)
	})
}

// ShareOffer returns an offer of shares.
func (q Queries) ShareOffer(ctx context.Context,
	m *catalogpb.QueryShareOfferRequest) (*catalogpb.QueryShareOfferResponse, error) {
	o, err := q.offers.Get(ctx, m.Offer)
	if err != nil {
		return nil, status.Error(codes.NotFound, ErrNone.Error())
	}
	return &catalogpb.QueryShareOfferResponse{Offer: canon.MustMarshal(o)}, nil
}

// Module wires the keeper into the application.
type Module struct {
	adapter.Module
	keeper *Keeper
}

// NewModule returns the module of a keeper.
func NewModule(k *Keeper) Module {
	return Module{Module: adapter.Module{
		ID: Name, Messages: &catalogpb.Msg_serviceDesc, State: k.Schema,
		Queries: adapter.NewRoutes(catalogpb.NewQueryClient, catalogpb.RegisterQueryHandlerClient),
	}, keeper: k}
}

// RegisterServices registers messages and queries.
func (m Module) RegisterServices(r grpc.ServiceRegistrar) error {
	catalogpb.RegisterMsgServer(r, messages{m.keeper})
	catalogpb.RegisterQueryServer(r, Queries{m.keeper})
	return nil
}
