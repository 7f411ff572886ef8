package payout

import (
	"bytes"
	"context"

	"cosmossdk.io/collections"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/payout/payoutpb"
	"github.com/starling-network/starling/protocol/payout"
)

// Queries implements payoutpb.QueryServer over a keeper.
type Queries struct{ *Keeper }

// Params returns the parameters.
func (q Queries) Params(ctx context.Context, _ *payoutpb.QueryParamsRequest) (*payoutpb.QueryParamsResponse, error) {
	p, err := q.Keeper.Params(ctx)
	return &payoutpb.QueryParamsResponse{Params: FromParams(p)}, err
}

// found answers with a record, or that there is none.
func found[T any](v T, ok bool, err error) ([]byte, error) {
	if err == nil && !ok {
		err = status.Error(codes.NotFound, "payout: there is none")
	}
	if err != nil {
		return nil, err
	}
	return canon.Marshal(v)
}

// Payee returns how an account is paid out.
func (q Queries) Payee(ctx context.Context, m *payoutpb.QueryPayeeRequest) (*payoutpb.QueryPayeeResponse, error) {
	b, err := found(get(q.payees.Get(ctx, m.Account)))
	return &payoutpb.QueryPayeeResponse{Payee: b}, err
}

// Chain returns the state of a bridge.
func (q Queries) Chain(ctx context.Context, m *payoutpb.QueryChainRequest) (*payoutpb.QueryChainResponse, error) {
	b, err := found(get(q.states.Get(ctx, m.EvmChain)))
	return &payoutpb.QueryChainResponse{State: b}, err
}

// Set returns the set whose signatures count.
func (q Queries) Set(ctx context.Context, _ *payoutpb.QuerySetRequest) (*payoutpb.QuerySetResponse, error) {
	b, err := found(get(q.set.Get(ctx)))
	return &payoutpb.QuerySetResponse{Set: b}, err
}

// Turn returns the messages that the set is signing.
func (q Queries) Turn(ctx context.Context, _ *payoutpb.QueryTurnRequest) (*payoutpb.QueryTurnResponse, error) {
	b, err := found(get(q.turn.Get(ctx)))
	return &payoutpb.QueryTurnResponse{Turn: b}, err
}

// Handovers lists signed sets.
func (q Queries) Handovers(ctx context.Context,
	m *payoutpb.QueryHandoversRequest) (*payoutpb.QueryHandoversResponse, error) {
	r, most := &payoutpb.QueryHandoversResponse{}, min(adapter.Most(m.Limit), 100)
	err := q.handovers.Walk(ctx, new(collections.Range[uint64]).StartExclusive(m.After),
		func(_ uint64, h payout.Handover) (bool, error) {
			r.Handovers = append(r.Handovers, canon.MustMarshal(h))
			return len(r.Handovers) == most, nil
		})
	return r, err
}

// Entries lists the totals of all addresses on a chain.
func (q Queries) Entries(ctx context.Context,
	m *payoutpb.QueryEntriesRequest) (*payoutpb.QueryEntriesResponse, error) {
	r, most := &payoutpb.QueryEntriesResponse{}, adapter.Most(m.Limit)
	within := collections.NewPrefixedPairRange[uint64, []byte](m.EvmChain)
	if len(m.After) > 0 {
		within = within.StartExclusive(m.After)
	}
	err := q.entries.Walk(ctx, within, func(_ entryKey, e payout.Entry) (bool, error) {
		r.Entries = append(r.Entries, canon.MustMarshal(e))
		return len(r.Entries) == most, nil
	})
	return r, err
}

// Claims returns what an address may claim, with paths.
func (q Queries) Claims(ctx context.Context, m *payoutpb.QueryClaimsRequest) (*payoutpb.QueryClaimsResponse, error) {
	a, err := payout.ParseAddress(m.Address)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	s, ok, err := get(q.states.Get(ctx, m.EvmChain))
	if err != nil || !ok || s.Signed == 0 {
		return &payoutpb.QueryClaimsResponse{}, err
	}
	tree, err := q.signed(ctx, m.EvmChain, s)
	if err != nil {
		return nil, err
	}
	r := &payoutpb.QueryClaimsResponse{Epoch: s.Signed, Root: s.Root[:]}
	for i, c := range tree.claims {
		if bytes.Equal(c.Account[:], a[:]) {
			r.Claims = append(r.Claims, canon.MustMarshal(tree.claims.Proof(tree.tree, i)))
		}
	}
	return r, nil
}

// Module wires the keeper into the application.
type Module struct {
	adapter.Module
	keeper *Keeper
}

// NewModule returns the module of a keeper.
func NewModule(k *Keeper) Module {
	return Module{Module: adapter.Module{
		ID: Name, Messages: &payoutpb.Msg_serviceDesc, State: k.Schema,
		Queries: adapter.NewRoutes(payoutpb.NewQueryClient, payoutpb.RegisterQueryHandlerClient),
	}, keeper: k}
}

// RegisterServices registers messages and queries.
func (m Module) RegisterServices(r grpc.ServiceRegistrar) error {
	payoutpb.RegisterMsgServer(r, messages{m.keeper})
	payoutpb.RegisterQueryServer(r, Queries{m.keeper})
	return nil
}
