package module

import (
	"context"

	"github.com/starling-network/starling/chain/x/registry/registrypb"
	"github.com/starling-network/starling/client/query"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/registry/coinstake"
)

// Stakes sends the messages and the queries of stakes in coins other than the network's own.
type Stakes struct{ account Account }

// Add adds to the stake of a participant in a coin other than the network's own, in its grains; "" is the account.
func (g Stakes) Add(ctx context.Context, participant string, c coin.Coin, amount uint64) error {
	return send(ctx, g.account, &registrypb.MsgStakeCoin{Sender: g.account.Address(), Participant: participant,
		Denom: c.Denom, Amount: amount})
}

// Leave sets how much of that stake is to leave it, in place of an earlier amount.
// The owner of a machine does so for the machine.
func (g Stakes) Leave(ctx context.Context, participant string, c coin.Coin, amount uint64) error {
	return send(ctx, g.account, &registrypb.MsgUnstakeCoin{Sender: g.account.Address(), Participant: participant,
		Denom: c.Denom, Amount: amount})
}

// Of are the stakes of a participant in coins other than the network's own, or those of all; in order of
// participant and denomination.
func (g Stakes) Of(ctx context.Context, participant string) ([]coinstake.Stake, error) {
	var all []coinstake.Stake
	for next := (&registrypb.QueryCoinStakesRequest{Id: participant}); ; {
		r, err := registrypb.NewQueryClient(g.account).CoinStakes(ctx, next)
		page, err := query.List[coinstake.Stake](r.GetStakes(), err)
		if err != nil || len(page) == 0 {
			return all, err
		}
		all = append(all, page...)
		next.After, next.AfterDenom = page[len(page)-1].ID, page[len(page)-1].Coin.Denom
	}
}
