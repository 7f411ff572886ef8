package app

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
)

// blocksPerYear is the number of blocks in a year at one block per second.
const blocksPerYear = 365 * 24 * 3600

// mint answers the queries of explorers to the SDK's mint module, which this chain does not have: the reward schedule
// makes its coins (chain/x/reward). The answers are the most that the schedule makes in a year.
type mint struct{ keepers *keepers }

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
	supply := m.keepers.bank.GetSupply(ctx, adapter.Denom).Amount
	r := &minttypes.QueryInflationResponse{Inflation: math.LegacyZeroDec()}
	if supply.IsPositive() {
		r.Inflation = made.AnnualProvisions.QuoInt(supply)
	}
	return r, nil
}

// AnnualProvisions returns the uzen made in a year of epochs like the current one.
func (m mint) AnnualProvisions(ctx context.Context,
	_ *minttypes.QueryAnnualProvisionsRequest) (*minttypes.QueryAnnualProvisionsResponse, error) {
	schedule, err := m.keepers.reward.Params(ctx)
	if err != nil {
		return nil, err
	}
	params, err := m.keepers.registry.Params(ctx)
	if err != nil {
		return nil, err
	}
	epoch, _ := params.Epoch(sdk.UnwrapSDKContext(ctx).BlockHeight())
	year := math.LegacyNewDecFromInt(math.NewIntFromUint64(schedule.Emission(epoch))).MulInt64(blocksPerYear)
	return &minttypes.QueryAnnualProvisionsResponse{AnnualProvisions: year.QuoInt64(params.EpochBlocks)}, nil
}

// grants answers the queries of explorers to the SDK's authz module, which this chain does not have: there are no
// grants.
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

// answerForAbsent registers the queries of SDK modules that explorers need and that the chain does not have.
func answerForAbsent(s grpc.Server, k *keepers) {
	minttypes.RegisterQueryServer(s, mint{k})
	authz.RegisterQueryServer(s, grants{})
}

// routeAbsent serves these queries over HTTP.
func routeAbsent(c client.Context, mux *runtime.ServeMux) error {
	if err := minttypes.RegisterQueryHandlerClient(context.Background(), mux, minttypes.NewQueryClient(c)); err != nil {
		return err
	}
	return authz.RegisterQueryHandlerClient(context.Background(), mux, authz.NewQueryClient(c))
}
