package random

import (
	"context"
	"slices"
	"strings"

	codectypes "github.com/cosmos/cosmos-sdk/codec/types"
	"github.com/cosmos/cosmos-sdk/testutil/simsx"
	sdk "github.com/cosmos/cosmos-sdk/types"
	govv1 "github.com/cosmos/cosmos-sdk/x/gov/types/v1"
	stakingtypes "github.com/cosmos/cosmos-sdk/x/staking/types"
)

// governed makes what governance is to say to a module.
func governed[M sdk.Msg](rule func(d draws, authority string) M) simsx.SimMsgFactoryX {
	return simsx.SimMsgFactoryFn[M](func(_ context.Context, data *simsx.ChainDataSource, report simsx.SimulationReporter) ([]simsx.SimAccount, M) {
		return nil, rule(draws{data.Rand().Rand}, data.ModuleAccountAddress(report, "gov"))
	})
}

// operator lets the operator of a validator speak, and reports whether there is one.
func (x *speaker) operator() (bool, error) {
	r, err := stakingtypes.NewQueryClient(x.conn.grpc()).Validators(x.ctx, &stakingtypes.QueryValidatorsRequest{Status: stakingtypes.BondStatusBonded})
	if err != nil || len(r.Validators) == 0 {
		return false, err
	}
	operator, err := sdk.ValAddressFromBech32(pick(x.draws, r.Validators).OperatorAddress)
	return err == nil && x.as(sdk.AccAddress(operator).String()), err
}

// agree lets the operator of a validator vote for a proposal about a module of ours. By the votes of the SDK's own operations, any as
// likely as any other, hardly a proposal passes.
func (x *speaker) agree() error {
	r, err := govv1.NewQueryClient(x.conn.grpc()).Proposals(x.ctx, &govv1.QueryProposalsRequest{ProposalStatus: govv1.StatusVotingPeriod})
	if err != nil {
		return err
	}
	foreign := func(m *codectypes.Any) bool { return !strings.HasPrefix(m.TypeUrl, "/starling.") }
	for _, p := range mixed(x.draws, r.Proposals) {
		if len(p.Messages) > 0 && !slices.ContainsFunc(p.Messages, foreign) {
			if ok, err := x.operator(); err != nil || !ok {
				return err
			}
			_, err := x.Submit(x.ctx, &govv1.MsgVote{ProposalId: p.Id, Voter: x.Address(), Option: govv1.OptionYes})
			return err
		}
	}
	return nil
}
