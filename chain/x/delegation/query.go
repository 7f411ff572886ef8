package delegation

import (
	"context"
	"errors"

	"cosmossdk.io/collections"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/delegation/delegationpb"
	"github.com/starling-network/starling/protocol/delegation"
)

// Queries implements delegationpb.QueryServer over a keeper.
type Queries struct{ *Keeper }

// view is a pool as the chain shows it.
func (q Queries) view(ctx context.Context, p delegation.Pool) ([]byte, error) {
	member, takes, err := q.member(ctx, p.ID)
	if err != nil {
		return nil, err
	}
	purses, err := q.pursesOf(ctx, p.ID)
	return canon.MustMarshal(delegation.ViewOf(p, member.Firm(), takes, purses, height(ctx))), err
}

// show is a delegation as the chain shows it.
func (q Queries) show(ctx context.Context, p delegation.Pool, d delegation.Delegation) ([]byte, error) {
	part := delegation.Part{Delegation: d}
	part.Stays, part.Leaves = p.Worth(d)
	purses, err := q.pursesOf(ctx, d.Pool)
	if err != nil {
		return nil, err
	}
	for _, u := range purses {
		e, err := q.earning(ctx, d, u)
		if err != nil {
			return nil, err
		}
		if _, _, due := u.Claim(e, d.Shares-d.Leaving); due > 0 {
			part.Due = append(part.Due, delegation.Due{Coin: u.Coin, Grains: due})
		}
	}
	return canon.MustMarshal(part), nil
}

// Pools lists pools.
func (q Queries) Pools(ctx context.Context,
	m *delegationpb.QueryPoolsRequest) (*delegationpb.QueryPoolsResponse, error) {
	r, most := &delegationpb.QueryPoolsResponse{}, adapter.Most(m.Limit)
	return r, q.pools.Walk(ctx, new(collections.Range[string]).StartExclusive(m.After),
		func(_ string, p delegation.Pool) (bool, error) {
			v, err := q.view(ctx, p)
			r.Pools = append(r.Pools, v)
			return len(r.Pools) == most, err
		})
}

// Pool returns the pool of a participant.
func (q Queries) Pool(ctx context.Context, m *delegationpb.QueryPoolRequest) (*delegationpb.QueryPoolResponse, error) {
	p, err := q.pool(ctx, m.Participant)
	if errors.Is(err, delegation.ErrNoPool) {
		return nil, status.Error(codes.NotFound, err.Error())
	}
	if err != nil {
		return nil, err
	}
	v, err := q.view(ctx, p)
	return &delegationpb.QueryPoolResponse{Pool: v}, err
}

// Delegators lists the delegations in the pool of a participant.
func (q Queries) Delegators(ctx context.Context,
	m *delegationpb.QueryDelegatorsRequest) (*delegationpb.QueryDelegatorsResponse, error) {
	r, most := &delegationpb.QueryDelegatorsResponse{}, adapter.Most(m.Limit)
	p, err := q.pool(ctx, m.Participant)
	if errors.Is(err, delegation.ErrNoPool) {
		return nil, status.Error(codes.NotFound, err.Error())
	}
	if err != nil {
		return nil, err
	}
	within := collections.NewPrefixedPairRange[string, string](m.Participant).StartExclusive(m.After)
	return r, q.parts.Walk(ctx, within, func(_ partKey, d delegation.Delegation) (bool, error) {
		part, err := q.show(ctx, p, d)
		r.Delegations = append(r.Delegations, part)
		return len(r.Delegations) == most, err
	})
}

// Delegations lists the delegations of an account.
func (q Queries) Delegations(ctx context.Context,
	m *delegationpb.QueryDelegationsRequest) (*delegationpb.QueryDelegationsResponse, error) {
	r, most := &delegationpb.QueryDelegationsResponse{}, adapter.Most(m.Limit)
	within := collections.NewPrefixedPairRange[string, string](m.Delegator).StartExclusive(m.After)
	return r, q.of.Walk(ctx, within, func(key partKey) (bool, error) {
		p, d, err := q.found(ctx, key.K2(), key.K1())
		if err != nil {
			return true, err
		}
		part, err := q.show(ctx, p, d)
		r.Delegations = append(r.Delegations, part)
		return len(r.Delegations) == most, err
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
		ID: Name, Messages: &delegationpb.Msg_serviceDesc, State: k.Schema,
		Queries: adapter.NewRoutes(delegationpb.NewQueryClient, delegationpb.RegisterQueryHandlerClient),
	}, keeper: k}
}

// RegisterServices registers messages and queries.
func (m Module) RegisterServices(r grpc.ServiceRegistrar) error {
	delegationpb.RegisterMsgServer(r, messages{m.keeper})
	delegationpb.RegisterQueryServer(r, Queries{m.keeper})
	return nil
}

// EndBlock makes shares of the stake that joins, and pays out the stake that leaves.
func (m Module) EndBlock(ctx context.Context) error { return m.keeper.EndBlock(ctx) }
