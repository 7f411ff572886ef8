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

// blocksPerYear is of a block a second.
const blocksPerYear = 365 * 24 * 3600

// mint answers what explorers ask the SDK's module of inflation, which this chain does not have: its coins are made by
// the schedule of rewards (chain/x/reward). The answers are the most that the schedule makes in a year.
type mint struct{ keepers *keepers }

var _ minttypes.QueryServer = mint{}

// Params answers with the denomination and with inflation as it is: no rule changes it to meet a goal.
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

// Inflation answers with what a year makes, as a part of what there is.
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

// AnnualProvisions answers with what a year of epochs like this one makes, in uzen.
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

// grants answers what explorers ask the SDK's module of authorizations: the chain does not have it, so nobody grants
// any.
type grants struct{}

var _ authz.QueryServer = grants{}

// Grants answers with none.
func (grants) Grants(context.Context, *authz.QueryGrantsRequest) (*authz.QueryGrantsResponse, error) {
	return &authz.QueryGrantsResponse{Pagination: &query.PageResponse{}}, nil
}

// GranterGrants answers with none.
func (grants) GranterGrants(context.Context,
	*authz.QueryGranterGrantsRequest) (*authz.QueryGranterGrantsResponse, error) {
	return &authz.QueryGranterGrantsResponse{Pagination: &query.PageResponse{}}, nil
}

// GranteeGrants answers with none.
func (grants) GranteeGrants(context.Context,
	*authz.QueryGranteeGrantsRequest) (*authz.QueryGranteeGrantsResponse, error) {
	return &authz.QueryGranteeGrantsResponse{Pagination: &query.PageResponse{}}, nil
}

// answerForAbsent registers the queries of the modules of the SDK that the chain does not have and that explorers ask
// for.
func answerForAbsent(s grpc.Server, k *keepers) {
	minttypes.RegisterQueryServer(s, mint{k})
	authz.RegisterQueryServer(s, grants{})
}

// routeAbsent gives these queries their addresses over HTTP.
func routeAbsent(c client.Context, mux *runtime.ServeMux) error {
	if err := minttypes.RegisterQueryHandlerClient(context.Background(), mux, minttypes.NewQueryClient(c)); err != nil {
		return err
	}
	return authz.RegisterQueryHandlerClient(context.Background(), mux, authz.NewQueryClient(c))
}
