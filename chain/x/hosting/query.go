package hosting

import (
	"context"

	"cosmossdk.io/collections"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/hosting/hostingpb"
	"github.com/starling-network/starling/protocol/answer"
	"github.com/starling-network/starling/protocol/hosting"
)

// Queries implements hostingpb.QueryServer over a keeper.
type Queries struct{ *Keeper }

// Params returns the parameters.
func (q Queries) Params(ctx context.Context, _ *hostingpb.QueryParamsRequest) (*hostingpb.QueryParamsResponse, error) {
	p, err := q.Keeper.Params(ctx)
	return &hostingpb.QueryParamsResponse{Params: FromParams(p)}, err
}

// Models lists models, the latest first.
func (q Queries) Models(ctx context.Context, m *hostingpb.QueryModelsRequest) (*hostingpb.QueryModelsResponse, error) {
	r, most := &hostingpb.QueryModelsResponse{}, adapter.Most(m.Limit)
	within := adapter.Below(m.Before)
	return r, q.models.Walk(ctx, within, func(_ uint64, to hosting.Model) (bool, error) {
		r.Models = append(r.Models, canon.MustMarshal(to))
		return len(r.Models) == most, nil
	})
}

// Model returns a model.
func (q Queries) Model(ctx context.Context, m *hostingpb.QueryModelRequest) (*hostingpb.QueryModelResponse, error) {
	to, err := q.models.Get(ctx, m.Model)
	if err != nil {
		return nil, status.Error(codes.NotFound, ErrNone.Error())
	}
	return &hostingpb.QueryModelResponse{Model: canon.MustMarshal(to)}, nil
}

// Places lists places of providers.
func (q Queries) Places(ctx context.Context, m *hostingpb.QueryPlacesRequest) (*hostingpb.QueryPlacesResponse, error) {
	r, most := &hostingpb.QueryPlacesResponse{}, adapter.Most(m.Limit)
	within := new(collections.Range[placeKey])
	if m.Model > 0 {
		within = within.Prefix(collections.PairPrefix[uint64, string](m.Model))
	}
	if m.After != "" {
		within = new(collections.Range[placeKey]).StartExclusive(collections.Join(m.AfterModel, m.After))
	}
	return r, q.places.Walk(ctx, within, func(_ placeKey, p hosting.Place) (bool, error) {
		if m.Model > 0 && p.Model != m.Model {
			return true, nil
		}
		r.Places = append(r.Places, canon.MustMarshal(p))
		return len(r.Places) == most, nil
	})
}

// Channels lists open channels.
func (q Queries) Channels(ctx context.Context,
	m *hostingpb.QueryChannelsRequest) (*hostingpb.QueryChannelsResponse, error) {
	r, most := &hostingpb.QueryChannelsResponse{}, adapter.Most(m.Limit)
	if m.Account == "" {
		return r, q.channels.Walk(ctx, new(collections.Range[uint64]).StartExclusive(m.After),
			func(_ uint64, c hosting.Channel) (bool, error) {
				r.Channels = append(r.Channels, canon.MustMarshal(c))
				return len(r.Channels) == most, nil
			})
	}
	of := q.payers
	if m.Provider {
		of = q.providers
	}
	within := collections.NewPrefixedPairRange[string, uint64](m.Account).StartExclusive(m.After)
	return r, of.Walk(ctx, within, func(key accountKey) (bool, error) {
		c, err := q.channels.Get(ctx, key.K2())
		r.Channels = append(r.Channels, canon.MustMarshal(c))
		return len(r.Channels) == most, err
	})
}

// Channel returns an open channel.
func (q Queries) Channel(ctx context.Context,
	m *hostingpb.QueryChannelRequest) (*hostingpb.QueryChannelResponse, error) {
	c, err := q.channels.Get(ctx, m.Channel)
	if err != nil {
		return nil, status.Error(codes.NotFound, ErrNone.Error())
	}
	return &hostingpb.QueryChannelResponse{Channel: canon.MustMarshal(c)}, nil
}

// Accusations lists accusations, all or open ones.
func (q Queries) Accusations(ctx context.Context,
	m *hostingpb.QueryAccusationsRequest) (*hostingpb.QueryAccusationsResponse, error) {
	r, most := &hostingpb.QueryAccusationsResponse{}, adapter.Most(m.Limit)
	within := new(collections.Range[uint64]).StartExclusive(m.After)
	add := func(id uint64) (bool, error) {
		x, err := q.accusations.all.Get(ctx, id)
		r.Accusations = append(r.Accusations, canon.MustMarshal(x))
		return len(r.Accusations) == most, err
	}
	if m.Open {
		return r, q.accusations.open(ctx, within, add)
	}
	return r, q.accusations.all.Walk(ctx, within, func(id uint64, _ answer.Accusation) (bool, error) { return add(id) })
}

// Accusation returns an accusation, and what its accuser has shown while it is open.
func (q Queries) Accusation(ctx context.Context,
	m *hostingpb.QueryAccusationRequest) (*hostingpb.QueryAccusationResponse, error) {
	x, err := q.accusations.all.Get(ctx, m.Accusation)
	if err != nil {
		return nil, status.Error(codes.NotFound, ErrNone.Error())
	}
	r := &hostingpb.QueryAccusationResponse{Accusation: canon.MustMarshal(x)}
	if x.Open() {
		what, err := q.accusations.shown.Get(ctx, x.ID)
		r.Receipt, r.Program = what.Receipt, what.Program
		return r, err
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
		ID: Name, Messages: &hostingpb.Msg_serviceDesc, State: k.Schema,
		Queries: adapter.NewRoutes(hostingpb.NewQueryClient, hostingpb.RegisterQueryHandlerClient),
	}, keeper: k}
}

// RegisterServices registers messages and queries.
func (m Module) RegisterServices(r grpc.ServiceRegistrar) error {
	hostingpb.RegisterMsgServer(r, messages{m.keeper})
	hostingpb.RegisterQueryServer(r, Queries{m.keeper})
	return nil
}

// EndBlock settles channels and returns bonds whose blocks are over.
func (m Module) EndBlock(ctx context.Context) error { return m.keeper.EndBlock(ctx) }
