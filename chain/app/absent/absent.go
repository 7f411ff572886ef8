// Package absent answers the queries of explorers to modules of the SDK that this chain does not have: mint and authz.
// It has no state, and changes none.
package absent

import (
	"context"

	"cosmossdk.io/math"
	"github.com/cosmos/cosmos-sdk/client"
	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/types/query"
	"github.com/cosmos/cosmos-sdk/x/authz"
	minttypes "github.com/cosmos/cosmos-sdk/x/mint/types"
	"github.com/cosmos/gogoproto/grpc"
	"github.com/grpc-ecosystem/grpc-gateway/runtime"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/registry"
	"github.com/starling-network/starling/chain/x/reward"
)

// blocksPerYear is the number of blocks in a year at one block per second.
const blocksPerYear = 365 * 24 * 3600

// Bank reads the supply of a coin.
type Bank interface {
	GetSupply(ctx context.Context, denom string) sdk.Coin
}

// mint answers the queries to the SDK's mint module: the reward schedule makes the coins of this chain
// (chain/x/reward). The answers are the most that the schedule makes in a year.
type mint struct {
	bank     Bank
	reward   *reward.Keeper
	registry *registry.Keeper
}

var _ minttypes.QueryServer = mint{}

// Params returns the denomination and the current inflation: no rule changes it to meet a goal.
func (m mint) Params(ctx context.Context, _ *minttypes.QueryParamsRequest) (*minttypes.QueryParamsResponse, error) {
	inflation, err := m.Inflation(ctx, nil)
	if err != nil {
		return nil, err
	}
	i := inflation.Inflation
	return &minttypes.QueryParamsResponse{Params: minttypes.Params{
		MintDenom: adapter.Denom, InflationRateChange: math.LegacyZeroDec(), InflationMax: i, InflationMin: i,
		GoalBonded: math.LegacyZeroDec(), BlocksPerYear: blocksPerYear, MaxSupply: math.ZeroInt(),
	}}, nil
}

// Inflation returns the coins made in a year, as a fraction of the supply.
func (m mint) Inflation(ctx context.Context,
	_ *minttypes.QueryInflationRequest) (*minttypes.QueryInflationResponse, error) {
	made, err := m.AnnualProvisions(ctx, nil)
	if err != nil {
		return nil, err
	}
	supply := m.bank.GetSupply(ctx, adapter.Denom).Amount
	r := &minttypes.QueryInflationResponse{Inflation: math.LegacyZeroDec()}
	if supply.IsPositive() {
		r.Inflation = made.AnnualProvisions.QuoInt(supply)
	}
	return r, nil
}

// AnnualProvisions returns the uzen made in a year of epochs like the current one.
func (m mint) AnnualProvisions(ctx context.Context,
	_ *minttypes.QueryAnnualProvisionsRequest) (*minttypes.QueryAnnualProvisionsResponse, error) {
	schedule, err := m.reward.Params(ctx)
	if err != nil {
		return nil, err
	}
	params, err := m.registry.Params(ctx)
	if err != nil {
		return nil, err
	}
	epoch, _ := params.Epoch(sdk.UnwrapSDKContext(ctx).BlockHeight())
	year := math.LegacyNewDecFromInt(math.NewIntFromUint64(schedule.Emission(epoch))).MulInt64(blocksPerYear)
	return &minttypes.QueryAnnualProvisionsResponse{AnnualProvisions: year.QuoInt64(params.EpochBlocks)}, nil
}

// grants answers the queries to the SDK's authz module: there are no grants.
type grants struct{}

var _ authz.QueryServer = grants{}

// Grants returns none.
func (grants) Grants(context.Context, *authz.QueryGrantsRequest) (*authz.QueryGrantsResponse, error) {
	return &authz.QueryGrantsResponse{Pagination: &query.PageResponse{}}, nil
}

// GranterGrants returns none.
func (grants) GranterGrants(context.Context,
	*authz.QueryGranterGrantsRequest) (*authz.QueryGranterGrantsResponse, error) {
	return &authz.QueryGranterGrantsResponse{Pagination: &query.PageResponse{}}, nil
}

// GranteeGrants returns none.
func (grants) GranteeGrants(context.Context,
	*authz.QueryGranteeGrantsRequest) (*authz.QueryGranteeGrantsResponse, error) {
	return &authz.QueryGranteeGrantsResponse{Pagination: &query.PageResponse{}}, nil
}

// Register registers the queries.
func Register(s grpc.Server, b Bank, r *reward.Keeper, e *registry.Keeper) {
	minttypes.RegisterQueryServer(s, mint{b, r, e})
	authz.RegisterQueryServer(s, grants{})
}

// Route serves these queries over HTTP.
func Route(c client.Context, mux *runtime.ServeMux) error {
	if err := minttypes.RegisterQueryHandlerClient(context.Background(), mux, minttypes.NewQueryClient(c)); err != nil {
		return err
	}
	return authz.RegisterQueryHandlerClient(context.Background(), mux, authz.NewQueryClient(c))
}
