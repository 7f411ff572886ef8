package sale

import (
	"context"

	"cosmossdk.io/collections"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/sale/salepb"
	"github.com/starling-network/starling/protocol/sale"
)

// Queries implements salepb.QueryServer over a keeper.
type Queries struct{ *Keeper }

// Offers lists offers, the latest first.
func (q Queries) Offers(ctx context.Context, m *salepb.QueryOffersRequest) (*salepb.QueryOffersResponse, error) {
	r, most := &salepb.QueryOffersResponse{}, adapter.Most(m.Limit)
	within := adapter.Below(m.Before)
	add := func(_ uint64, o sale.Offer) (bool, error) {
		r.Offers = append(r.Offers, canon.MustMarshal(o))
		return len(r.Offers) == most, nil
	}
	if m.All {
		return r, q.offers.Walk(ctx, within, add)
	}
	return r, q.open.Walk(ctx, within, func(id uint64) (bool, error) {
		o, err := q.offers.Get(ctx, id)
		if err != nil {
			return true, err
		}
		return add(id, o)
	})
}

// Offer returns an offer.
func (q Queries) Offer(ctx context.Context, m *salepb.QueryOfferRequest) (*salepb.QueryOfferResponse, error) {
	o, err := q.offers.Get(ctx, m.Offer)
	if err != nil {
		return nil, status.Error(codes.NotFound, ErrNone.Error())
	}
	return &salepb.QueryOfferResponse{Offer: canon.MustMarshal(o)}, nil
}

// Orders lists the orders of an offer.
func (q Queries) Orders(ctx context.Context, m *salepb.QueryOrdersRequest) (*salepb.QueryOrdersResponse, error) {
	r, most := &salepb.QueryOrdersResponse{}, adapter.Most(m.Limit)
	within := collections.NewPrefixedPairRange[uint64, uint64](m.Offer).StartExclusive(m.After)
	err := q.of.Walk(ctx, within, func(key collections.Pair[uint64, uint64]) (bool, error) {
		o, err := q.orders.Get(ctx, key.K2())
		r.Orders = append(r.Orders, canon.MustMarshal(o))
		return len(r.Orders) == most, err
	})
	return r, err
}

// Order returns an order.
func (q Queries) Order(ctx context.Context, m *salepb.QueryOrderRequest) (*salepb.QueryOrderResponse, error) {
	o, err := q.orders.Get(ctx, m.Order)
	if err != nil {
		return nil, status.Error(codes.NotFound, ErrNone.Error())
	}
	return &salepb.QueryOrderResponse{Order: canon.MustMarshal(o)}, nil
}

// Module wires the keeper into the application.
type Module struct {
	adapter.Module
	keeper *Keeper
}

// NewModule returns the module of a keeper.
func NewModule(k *Keeper) Module {
	return Module{Module: adapter.Module{
		ID: Name, Messages: &salepb.Msg_serviceDesc, State: k.Schema,
		Queries: adapter.NewRoutes(salepb.NewQueryClient, salepb.RegisterQueryHandlerClient),
	}, keeper: k}
}

// RegisterServices registers messages and queries.
func (m Module) RegisterServices(r grpc.ServiceRegistrar) error {
	salepb.RegisterMsgServer(r, messages{m.keeper})
	salepb.RegisterQueryServer(r, Queries{m.keeper})
	return nil
}

// EndBlock draws leaves, and settles the orders whose phase is over.
func (m Module) EndBlock(ctx context.Context) error { return m.keeper.EndBlock(ctx) }
