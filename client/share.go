package client

import (
	"cmp"
	"context"
	"slices"

	sdkmath "cosmossdk.io/math"
	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/types/query"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	chainreward "github.com/starling-network/starling/chain/x/reward"
	"github.com/starling-network/starling/protocol/reward"
)

// Holders are who holds shares of the model of a job, the most first, then in order of account.
func (c *Client) Holders(ctx context.Context, job string) (all []reward.ShareBalance, err error) {
	var next []byte
	for {
		r, err := banktypes.NewQueryClient(c.conn).DenomOwners(ctx,
			&banktypes.QueryDenomOwnersRequest{Denom: chainreward.Denom(job),
				Pagination: &query.PageRequest{Key: next, Limit: 1000}})
		if err != nil {
			return nil, known(err)
		}
		for _, o := range r.DenomOwners {
			all = append(all, reward.ShareBalance{Who: o.Address, Shares: o.Balance.Amount.Uint64()})
		}
		if next = r.Pagination.GetNextKey(); len(next) == 0 {
			break
		}
	}
	slices.SortFunc(all, func(a, b reward.ShareBalance) int {
		return cmp.Or(cmp.Compare(b.Shares, a.Shares), cmp.Compare(a.Who, b.Who))
	})
	return all, nil
}

// SendShares moves shares of the model of a job to another account.
func (c *Client) SendShares(ctx context.Context, job, to string, shares uint64) (Result, error) {
	coins := sdk.NewCoins(sdk.NewCoin(chainreward.Denom(job), sdkmath.NewIntFromUint64(shares)))
	return c.Submit(ctx, &banktypes.MsgSend{FromAddress: c.Address(), ToAddress: to, Amount: coins})
}
