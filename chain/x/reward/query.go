package reward

import (
	"context"

	"cosmossdk.io/collections"
	sdk "github.com/cosmos/cosmos-sdk/types"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/reward/rewardpb"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/reward"
)

// Queries implements rewardpb.QueryServer over a keeper.
type Queries struct{ *Keeper }

// Receipts lists the receipts of an account, the latest first.
func (q Queries) Receipts(ctx context.Context,
	m *rewardpb.QueryReceiptsRequest) (*rewardpb.QueryReceiptsResponse, error) {
	r := &rewardpb.QueryReceiptsResponse{}
	most := adapter.Most(m.Limit)
	within := collections.NewPrefixedQuadRange[string, int64, string, uint64](m.Account)
	err := q.receipts.Walk(ctx, within, func(_ receiptKey, receipt reward.Receipt) (bool, error) {
		r.Receipts = append(r.Receipts, canon.MustMarshal(receipt))
		return len(r.Receipts) == most, nil
	})
	return r, err
}

// Book lists the receipts of an epoch, or of the revenue of a model.
func (q Queries) Book(ctx context.Context, m *rewardpb.QueryBookRequest) (*rewardpb.QueryBookResponse, error) {
	r := &rewardpb.QueryBookResponse{}
	most := adapter.Most(m.Limit)
	within := collections.NewPrefixedPairRange[string, uint64](m.Book).StartInclusive(m.From)
	err := q.books.Walk(ctx, within, func(key collections.Pair[string, uint64], at entry) (bool, error) {
		receipt, err := q.receipts.Get(ctx, collections.Join4(at.Who, -at.Height, key.K1(), key.K2()))
		r.Receipts = append(r.Receipts, canon.MustMarshal(receipt))
		return len(r.Receipts) == most, err
	})
	return r, err
}

// Params returns the parameters in force.
func (q Queries) Params(ctx context.Context, _ *rewardpb.QueryParamsRequest) (*rewardpb.QueryParamsResponse, error) {
	s, err := q.Keeper.Params(ctx)
	return &rewardpb.QueryParamsResponse{Params: canon.MustMarshal(s)}, err
}

// Model returns a model, and the earnings of a holder of its shares.
func (q Queries) Model(ctx context.Context, m *rewardpb.QueryModelRequest) (*rewardpb.QueryModelResponse, error) {
	models, err := q.inCoins(ctx, m.Job)
	if err != nil {
		return nil, status.Error(codes.NotFound, ErrNoModel.Error())
	}
	r := &rewardpb.QueryModelResponse{Model: canon.MustMarshal(models[0])}
	if m.Holder == "" {
		for _, model := range models[1:] {
			r.Coins = append(r.Coins, &rewardpb.CoinRevenue{Model: canon.MustMarshal(model)})
		}
		return r, nil
	}
	account, err := sdk.AccAddressFromBech32(m.Holder)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if r.Shares, err = q.shares(ctx, m.Job, account); err != nil {
		return nil, err
	}
	for _, model := range models {
		h, err := q.holder(ctx, model, account)
		if err != nil {
			return nil, err
		}
		due := h.Accrue(model, r.Shares).Due
		if model.Coin.Own() {
			r.Due = due
			continue
		}
		r.Coins = append(r.Coins, &rewardpb.CoinRevenue{Model: canon.MustMarshal(model), Due: due})
	}
	return r, nil
}

// Links returns the reports of participants about each other in this epoch: those about the members of a run, or all.
func (q Queries) Links(ctx context.Context, m *rewardpb.QueryLinksRequest) (*rewardpb.QueryLinksResponse, error) {
	r, most := &rewardpb.QueryLinksResponse{}, adapter.Most(m.Limit)
	among := func(string) bool { return true }
	if m.Job != "" {
		s, err := q.runs.State(ctx, m.Job)
		if err != nil {
			return nil, status.Error(codes.NotFound, err.Error())
		}
		among = func(id string) bool { _, member := s.Member(id); return member }
	}
	err := q.links.Walk(ctx, nil, func(key collections.Pair[string, string], l registry.Link) (bool, error) {
		if among(key.K1()) && among(key.K2()) {
			r.Links = append(r.Links, canon.MustMarshal(registry.Measured{Of: key.K1(), By: key.K2(), Link: l}))
		}
		return len(r.Links) == most, nil
	})
	return r, err
}

// Module wires the keeper into the application.
type Module struct {
	adapter.Module
	keeper *Keeper
}

// NewModule returns the module of a keeper.
func NewModule(k *Keeper) Module {
	return Module{Module: adapter.Module{
		ID: Name, Messages: &rewardpb.Msg_serviceDesc, State: k.Schema,
		Queries: adapter.NewRoutes(rewardpb.NewQueryClient, rewardpb.RegisterQueryHandlerClient),
	}, keeper: k}
}

// RegisterServices registers messages and queries.
func (m Module) RegisterServices(r grpc.ServiceRegistrar) error {
	rewardpb.RegisterMsgServer(r, m.keeper)
	rewardpb.RegisterQueryServer(r, Queries{m.keeper})
	return nil
}

// EndBlock settles epochs.
func (m Module) EndBlock(ctx context.Context) error { return m.keeper.EndBlock(ctx) }
