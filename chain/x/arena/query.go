package arena

import (
	"context"

	"cosmossdk.io/collections"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/arena/arenapb"
	"github.com/starling-network/starling/protocol/arena"
	"github.com/starling-network/starling/protocol/committee"
)

// Queries implements arenapb.QueryServer over a keeper.
type Queries struct{ *Keeper }

// Contests lists contests, the latest first.
func (q Queries) Contests(ctx context.Context,
	m *arenapb.QueryContestsRequest) (*arenapb.QueryContestsResponse, error) {
	r, most := &arenapb.QueryContestsResponse{}, adapter.Most(m.Limit)
	within := adapter.Below(m.Before)
	add := func(_ uint64, c arena.Contest) (bool, error) {
		r.Contests = append(r.Contests, canon.MustMarshal(c))
		return len(r.Contests) == most, nil
	}
	if m.All {
		return r, q.contests.Walk(ctx, within, add)
	}
	return r, q.open.Walk(ctx, within, func(id uint64) (bool, error) {
		c, err := q.contests.Get(ctx, id)
		if err != nil {
			return true, err
		}
		return add(id, c)
	})
}

// Contest returns a contest with its entries, and the reports of its panel.
func (q Queries) Contest(ctx context.Context,
	m *arenapb.QueryContestRequest) (*arenapb.QueryContestResponse, error) {
	c, err := q.contest(ctx, m.Contest)
	if err != nil {
		return nil, status.Error(codes.NotFound, err.Error())
	}
	entries, err := q.entered(ctx, c.ID)
	if err != nil {
		return nil, err
	}
	opinions, err := q.heard(ctx, c)
	if err != nil {
		return nil, err
	}
	r := &arenapb.QueryContestResponse{Contest: canon.MustMarshal(c)}
	for _, e := range entries {
		r.Entries = append(r.Entries, canon.MustMarshal(e))
	}
	for _, o := range opinions {
		r.Opinions = append(r.Opinions, canon.MustMarshal(o))
	}
	return r, nil
}

// Evaluators lists evaluators by their addresses.
func (q Queries) Evaluators(ctx context.Context,
	_ *arenapb.QueryEvaluatorsRequest) (*arenapb.QueryEvaluatorsResponse, error) {
	r := &arenapb.QueryEvaluatorsResponse{}
	return r, q.evaluators.Walk(ctx, nil, func(_ string, e arena.Evaluator) (bool, error) {
		r.Evaluators = append(r.Evaluators, canon.MustMarshal(e))
		return false, nil
	})
}

// Committees lists committees, the latest first.
func (q Queries) Committees(ctx context.Context,
	m *arenapb.QueryCommitteesRequest) (*arenapb.QueryCommitteesResponse, error) {
	r, most := &arenapb.QueryCommitteesResponse{}, adapter.Most(m.Limit)
	return r, q.groups.Walk(ctx, adapter.Below(m.Before), func(_ uint64, c committee.Committee) (bool, error) {
		r.Committees = append(r.Committees, canon.MustMarshal(c))
		return len(r.Committees) == most, nil
	})
}

// Committee returns a committee with its members, by their addresses.
func (q Queries) Committee(ctx context.Context,
	m *arenapb.QueryCommitteeRequest) (*arenapb.QueryCommitteeResponse, error) {
	c, err := q.group(ctx, m.Committee)
	if err != nil {
		return nil, status.Error(codes.NotFound, err.Error())
	}
	r, most := &arenapb.QueryCommitteeResponse{Committee: canon.MustMarshal(c)}, adapter.Most(m.Limit)
	within := collections.NewPrefixedPairRange[uint64, string](c.ID).StartExclusive(m.After)
	return r, q.members.Walk(ctx, within, func(_ opinionKey, m committee.Member) (bool, error) {
		r.Members = append(r.Members, canon.MustMarshal(m))
		return len(r.Members) == most, nil
	})
}

// Module wires the keeper into the application.
type Module struct {
	adapter.Module
	keeper *Keeper
}

// NewModule returns the module of a keeper.
func NewModule(k *Keeper) Module {
	return Module{Module: adapter.Module{
		ID: Name, Messages: &arenapb.Msg_serviceDesc, State: k.Schema,
		Queries: adapter.NewRoutes(arenapb.NewQueryClient, arenapb.RegisterQueryHandlerClient),
	}, keeper: k}
}

// RegisterServices registers messages and queries.
func (m Module) RegisterServices(r grpc.ServiceRegistrar) error {
	arenapb.RegisterMsgServer(r, messages{m.keeper})
	arenapb.RegisterQueryServer(r, Queries{m.keeper})
	return nil
}

// EndBlock ends the phases of contests whose last block is past.
func (m Module) EndBlock(ctx context.Context) error { return m.keeper.EndBlock(ctx) }
