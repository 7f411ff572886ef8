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

	"github.com/starling-network/starling/sim/random/draw"
)

// governed makes what governance is to say to a module.
func governed[M sdk.Msg](rule func(d draw.Source, authority string) M) simsx.SimMsgFactoryX {
	return simsx.SimMsgFactoryFn[M](func(_ context.Context, data *simsx.ChainDataSource,
		report simsx.SimulationReporter) ([]simsx.SimAccount, M) {
		return nil, rule(draw.Source{Rand: data.Rand().Rand}, data.ModuleAccountAddress(report, "gov"))
	})
}

// operator lets the operator of a validator speak, and reports whether there is one.
func (x *msgFactory) operator() (bool, error) {
	all, err := x.operators()
	return len(all) > 0 && x.as(draw.Pick(x.Source, all)), err
}

// operators of the validators that have a vote, who has staked most first.
func (x *msgFactory) operators() (all []string, err error) {
	r, err := stakingtypes.NewQueryClient(x.conn.GRPC()).Validators(x.ctx,
		&stakingtypes.QueryValidatorsRequest{Status: stakingtypes.BondStatusBonded})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(r.Validators,
		func(a, b stakingtypes.Validator) int { return b.Tokens.BigInt().Cmp(a.Tokens.BigInt()) })
	for _, v := range r.Validators {
		operator, err := sdk.ValAddressFromBech32(v.OperatorAddress)
		if err != nil {
			return nil, err
		}
		all = append(all, sdk.AccAddress(operator).String())
	}
	return all, nil
}

// agree lets the operator of a validator, the largest that has not voted, vote for the oldest proposal about a module
// of ours. By the votes of the SDK's own operations, any as likely as any other, hardly a proposal passes.
func (x *msgFactory) agree() error {
	q := govv1.NewQueryClient(x.conn.GRPC())
	r, err := q.Proposals(x.ctx, &govv1.QueryProposalsRequest{ProposalStatus: govv1.StatusVotingPeriod})
	if err != nil {
		return err
	}
	operators, err := x.operators()
	if err != nil {
		return err
	}
	foreign := func(m *codectypes.Any) bool { return !strings.HasPrefix(m.TypeUrl, "/starling.") }
	for _, p := range r.Proposals {
		if len(p.Messages) == 0 || slices.ContainsFunc(p.Messages, foreign) {
			continue
		}
		for _, o := range operators {
			if _, err := q.Vote(x.ctx, &govv1.QueryVoteRequest{ProposalId: p.Id, Voter: o}); err != nil && x.as(o) {
				_, err := x.Submit(x.ctx, &govv1.MsgVote{ProposalId: p.Id, Voter: o, Option: govv1.OptionYes})
				return err
			}
		}
	}
	return nil
}
