package registry

import (
	"context"
	"errors"

	"cosmossdk.io/collections"
	sdk "github.com/cosmos/cosmos-sdk/types"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/registry/coinstakes"
	"github.com/starling-network/starling/chain/x/registry/fleets"
	"github.com/starling-network/starling/chain/x/registry/quotes"
	"github.com/starling-network/starling/chain/x/registry/registrypb"
	"github.com/starling-network/starling/protocol/registry"
)

// Queries implements registrypb.QueryServer over a keeper.
type Queries struct{ *Keeper }

// Participant returns one participant.
func (q Queries) Participant(ctx context.Context,
	m *registrypb.QueryParticipantRequest) (*registrypb.QueryParticipantResponse, error) {
	p, err := q.Get(ctx, m.Id)
	if errors.Is(err, ErrUnknown) {
		return nil, status.Error(codes.NotFound, err.Error())
	}
	return &registrypb.QueryParticipantResponse{Participant: canon.MustMarshal(p)}, err
}

// Participants lists participants.
func (q Queries) Participants(ctx context.Context,
	m *registrypb.QueryParticipantsRequest) (*registrypb.QueryParticipantsResponse, error) {
	r := &registrypb.QueryParticipantsResponse{}
	most := adapter.Most(m.Limit)
	err := q.participants.Walk(ctx, new(collections.Range[string]).StartExclusive(m.After),
		func(_ string, p registry.Participant) (bool, error) {
			r.Participants = append(r.Participants, canon.MustMarshal(p))
			return len(r.Participants) == most, nil
		})
	return r, err
}

// Uptime returns the uptime of a participant that committed to a tier.
func (q Queries) Uptime(ctx context.Context,
	m *registrypb.QueryUptimeRequest) (*registrypb.QueryUptimeResponse, error) {
	u, err := q.uptimes.Get(ctx, m.Id)
	if errors.Is(err, collections.ErrNotFound) {
		return nil, status.Error(codes.NotFound, ErrNoTier.Error())
	}
	if err != nil {
		return nil, err
	}
	params, err := q.Keeper.Params(ctx)
	ppm := u.PPM(params, sdk.UnwrapSDKContext(ctx).BlockHeight())
	return &registrypb.QueryUptimeResponse{Uptime: canon.MustMarshal(u), Ppm: ppm}, err
}

// Measurements lists the measurements under way.
func (q Queries) Measurements(ctx context.Context,
	_ *registrypb.QueryMeasurementsRequest) (*registrypb.QueryMeasurementsResponse, error) {
	r := &registrypb.QueryMeasurementsResponse{}
	err := q.measurements.Walk(ctx, nil, func(_ string, m registry.Measurement) (bool, error) {
		r.Measurements = append(r.Measurements, canon.MustMarshal(m))
		return false, nil
	})
	return r, err
}

// Params returns the parameters in force.
func (q Queries) Params(ctx context.Context,
	_ *registrypb.QueryParamsRequest) (*registrypb.QueryParamsResponse, error) {
	p, err := q.Keeper.Params(ctx)
	if err != nil {
		return nil, err
	}
	n, err := q.Earners.Number(ctx)
	return &registrypb.QueryParamsResponse{Params: canon.MustMarshal(p), Earning: uint32(n)}, err
}

// Module wires the keeper into the application.
type Module struct {
	adapter.Module
	keeper *Keeper
}

// NewModule returns the module of a keeper.
func NewModule(k *Keeper) Module {
	return Module{Module: adapter.Module{
		ID: Name, Messages: &registrypb.Msg_serviceDesc, State: k.Schema,
		Queries: adapter.NewRoutes(registrypb.NewQueryClient, registrypb.RegisterQueryHandlerClient),
	}, keeper: k}
}

// RegisterServices registers messages and queries.
func (m Module) RegisterServices(r grpc.ServiceRegistrar) error {
	registrypb.RegisterMsgServer(r, served(m.keeper))
	registrypb.RegisterQueryServer(r, struct {
		Queries
		fleets.List
		coinstakes.Book
		quotes.Answers
	}{Queries{m.keeper}, m.keeper.Fleets, m.keeper.CoinStakes, quotes.Answers{List: m.keeper.Quotes}})
	return nil
}

// EndBlock pays out stakes that leave, ends attestations that expire, and advances measurements.
func (m Module) EndBlock(ctx context.Context) error {
	err := errors.Join(m.keeper.release(ctx), m.keeper.CoinStakes.Release(ctx), m.keeper.Quotes.Expire(ctx))
	if err != nil {
		return err
	}
	return measuring{m.keeper}.measure(ctx)
}
