package market

import (
	"context"
	"errors"

	"cosmossdk.io/collections"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/market/marketpb"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/run/reason"
)

// Queries implements marketpb.QueryServer over a keeper.
type Queries struct{ *Keeper }

// Offers lists offers.
func (q Queries) Offers(ctx context.Context, m *marketpb.QueryOffersRequest) (*marketpb.QueryOffersResponse, error) {
	r := &marketpb.QueryOffersResponse{}
	after := new(collections.Range[offerKey]).StartExclusive(collections.Join(m.Role, m.After))
	err := q.offers.Walk(ctx, after, func(_ offerKey, o market.Offer) (bool, error) {
		r.Offers = append(r.Offers, canon.MustMarshal(o))
		return len(r.Offers) == adapter.Most(m.Limit), nil
	})
	return r, err
}

// Orders lists open orders.
func (q Queries) Orders(ctx context.Context, m *marketpb.QueryOrdersRequest) (*marketpb.QueryOrdersResponse, error) {
	r := &marketpb.QueryOrdersResponse{}
	after := new(collections.Range[string]).StartExclusive(m.After)
	err := q.open.jobs.Walk(ctx, after, func(id string) (bool, error) {
		job, err := q.Job(ctx, id)
		r.Orders = append(r.Orders, placed(job))
		return len(r.Orders) == adapter.Most(m.Limit), err
	})
	return r, err
}

// Order returns the order of a job.
func (q Queries) Order(ctx context.Context, m *marketpb.QueryOrderRequest) (*marketpb.QueryOrderResponse, error) {
	job, err := q.Job(ctx, m.Job)
	return &marketpb.QueryOrderResponse{Order: placed(job)}, found(err)
}

// Escrow returns the budget of a job and what was spent of it.
func (q Queries) Escrow(ctx context.Context, m *marketpb.QueryEscrowRequest) (*marketpb.QueryEscrowResponse, error) {
	e, err := q.Keeper.Escrow(ctx, m.Job)
	return &marketpb.QueryEscrowResponse{Escrow: canon.MustMarshal(e)}, found(err)
}

// Lots lists the offers as the market matches them.
func (q Queries) Lots(ctx context.Context, _ *marketpb.QueryLotsRequest) (*marketpb.QueryLotsResponse, error) {
	lots, _, err := q.lots(ctx)
	r := &marketpb.QueryLotsResponse{}
	for _, l := range lots {
		r.Lots = append(r.Lots, canon.MustMarshal(l))
	}
	return r, err
}

// maxEstimate is the size limit of an order in an estimate, in bytes.
const maxEstimate = 64 << 10

// Estimate returns the result of matching an order now. The beacon of the block that would match the order is not
// known, so the result may differ among equal offers.
func (q Queries) Estimate(ctx context.Context,
	m *marketpb.QueryEstimateRequest) (*marketpb.QueryEstimateResponse, error) {
	var o market.Order
	if len(m.Order) > maxEstimate {
		return nil, status.Errorf(codes.InvalidArgument, "an order of %d bytes, at most %d", len(m.Order), maxEstimate)
	}
	if err := canon.Unmarshal(m.Order, &o); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if err := o.Validate(); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	book, err := q.Book(ctx, canon.Sum("starling/estimate/1"))
	if err != nil {
		return nil, err
	}
	return &marketpb.QueryEstimateResponse{Estimate: canon.MustMarshal(book.Estimate(o))}, nil
}

// Coins lists the registered coins.
func (q Queries) Coins(ctx context.Context, _ *marketpb.QueryCoinsRequest) (*marketpb.QueryCoinsResponse, error) {
	all, err := q.Keeper.Coins.All(ctx)
	r := &marketpb.QueryCoinsResponse{}
	for _, c := range all {
		r.Coins = append(r.Coins, canon.MustMarshal(c))
	}
	return r, err
}

// Params returns the parameters in force.
func (q Queries) Params(ctx context.Context, _ *marketpb.QueryParamsRequest) (*marketpb.QueryParamsResponse, error) {
	p, err := q.Keeper.Params(ctx)
	return &marketpb.QueryParamsResponse{Params: canon.MustMarshal(p)}, err
}

func placed(j Job) marketpb.PlacedOrder {
	why := j.Why
	if j.Short > 0 {
		why = reason.BudgetExhausted
	}
	return marketpb.PlacedOrder{Order: canon.MustMarshal(j.Order), Status: string(j.State()), Why: why}
}

func found(err error) error {
	if errors.Is(err, ErrNoOrder) {
		return status.Error(codes.NotFound, err.Error())
	}
	return err
}

// Module wires the keeper into the application.
type Module struct {
	adapter.Module
	keeper *Keeper
}

// NewModule returns the module of a keeper.
func NewModule(k *Keeper) Module {
	return Module{Module: adapter.Module{
		ID: Name, Messages: &marketpb.Msg_serviceDesc, State: k.Schema,
		Queries: adapter.NewRoutes(marketpb.NewQueryClient, marketpb.RegisterQueryHandlerClient),
	}, keeper: k}
}

// RegisterServices registers messages and queries.
func (m Module) RegisterServices(r grpc.ServiceRegistrar) error {
	marketpb.RegisterMsgServer(r, messages{m.keeper})
	marketpb.RegisterQueryServer(r, Queries{m.keeper})
	return nil
}

// EndBlock matches orders with offers.
func (m Module) EndBlock(ctx context.Context) error { return m.keeper.EndBlock(ctx) }
