package training

import (
	"context"
	"errors"

	"cosmossdk.io/collections"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/training/trainingpb"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/protocol/run/progress"
)

// Queries implements trainingpb.QueryServer over a keeper.
type Queries struct{ *Keeper }

// Run returns the state of a run and the latest block.
func (q Queries) Run(ctx context.Context, m *trainingpb.QueryRunRequest) (*trainingpb.QueryRunResponse, error) {
	s, err := q.State(ctx, m.Job)
	if errors.Is(err, ErrNoRun) {
		return nil, status.Error(codes.NotFound, err.Error())
	}
	if err != nil {
		return nil, err
	}
	env, _, err := q.env(ctx, m.Job)
	return &trainingpb.QueryRunResponse{State: canon.MustMarshal(s), Height: env.Height, Beacon: env.Beacon[:]}, err
}

// Runs lists the jobs that have a run.
func (q Queries) Runs(ctx context.Context, m *trainingpb.QueryRunsRequest) (*trainingpb.QueryRunsResponse, error) {
	r := &trainingpb.QueryRunsResponse{}
	most := adapter.Most(m.Limit)
	list := func(job string) (bool, error) {
		r.Jobs = append(r.Jobs, job)
		return len(r.Jobs) == most, nil
	}
	after := new(collections.Range[string]).StartExclusive(m.After)
	if m.Active {
		return r, q.active.Walk(ctx, after, list)
	}
	return r, q.ledger.Jobs(ctx, after, list)
}

// Lineage lists attested checkpoints.
func (q Queries) Lineage(ctx context.Context,
	m *trainingpb.QueryLineageRequest) (*trainingpb.QueryLineageResponse, error) {
	r := &trainingpb.QueryLineageResponse{}
	within := collections.NewPrefixedPairRange[string, uint32](m.Job).StartInclusive(m.From)
	err := q.lineage.Walk(ctx, within, func(_ collections.Pair[string, uint32], e progress.Entry) (bool, error) {
		r.Entries = append(r.Entries, canon.MustMarshal(e))
		return len(r.Entries) == adapter.Most(m.Limit), nil
	})
	return r, err
}

// Receipts lists receipts.
func (q Queries) Receipts(ctx context.Context,
	m *trainingpb.QueryReceiptsRequest) (*trainingpb.QueryReceiptsResponse, error) {
	r := &trainingpb.QueryReceiptsResponse{}
	err := q.ledger.Receipts(ctx, m.Job, m.From, func(e reward.Receipt) bool {
		r.Receipts = append(r.Receipts, canon.MustMarshal(e))
		return len(r.Receipts) == adapter.Most(m.Limit)
	})
	return r, err
}

// Seals lists the seals of a round.
func (q Queries) Seals(ctx context.Context, m *trainingpb.QuerySealsRequest) (*trainingpb.QuerySealsResponse, error) {
	r := &trainingpb.QuerySealsResponse{}
	within := collections.NewSuperPrefixedQuadRange[string, uint32, uint64, string](m.Job, m.Round)
	err := q.seals.Walk(ctx, within, func(key sealKey, seal []byte) (bool, error) {
		r.Seals = append(r.Seals, trainingpb.Seal{
			Unit: uint32(key.K3() >> 32), Attempt: uint32(key.K3()), Verifier: key.K4(), Seal: seal,
		})
		return false, nil
	})
	return r, err
}

// Params returns the parameters in force.
func (q Queries) Params(ctx context.Context,
	_ *trainingpb.QueryParamsRequest) (*trainingpb.QueryParamsResponse, error) {
	p, err := q.Keeper.Params(ctx)
	return &trainingpb.QueryParamsResponse{Params: canon.MustMarshal(p)}, err
}

// Module wires the keeper into the application.
type Module struct {
	adapter.Module
	keeper *Keeper
}

// NewModule returns the module of a keeper.
func NewModule(k *Keeper) Module {
	return Module{Module: adapter.Module{
		ID: Name, Messages: &trainingpb.Msg_serviceDesc, State: k.Schema,
		Queries: adapter.NewRoutes(trainingpb.NewQueryClient, trainingpb.RegisterQueryHandlerClient),
	}, keeper: k}
}

// RegisterServices registers messages and queries.
func (m Module) RegisterServices(r grpc.ServiceRegistrar) error {
	trainingpb.RegisterMsgServer(r, messages{m.keeper})
	trainingpb.RegisterQueryServer(r, Queries{m.keeper})
	return nil
}

// EndBlock ticks the active runs.
func (m Module) EndBlock(ctx context.Context) error { return m.keeper.EndBlock(ctx) }
