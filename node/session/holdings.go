package session

import (
	"context"

	"github.com/starling-network/starling/client/module"
	"github.com/starling-network/starling/node/coins"
)

// Holdings are the balances and stakes of an account in the registered coins, those that are zero left out.
func Holdings(ctx context.Context, m module.Modules, account string) ([]coins.Holding, error) {
	all, err := m.Market.Coins(ctx)
	if err != nil {
		return nil, err
	}
	stakes, err := m.Stakes.Of(ctx, account)
	if err != nil {
		return nil, err
	}
	var held []coins.Holding
	for _, c := range all {
		h := coins.Holding{Coin: c.Coin}
		if h.Balance, err = m.Coins.Holds(ctx, account, c.Coin); err != nil {
			return nil, err
		}
		for _, s := range stakes {
			if s.Coin.Denom == c.Denom {
				h.Stake, h.Leaving, h.LeavesAt, h.Slashed = s.Amount, s.Leaving, s.LeavesAt, s.Slashed
			}
		}
		if h.Balance > 0 || h.Stake > 0 || h.Slashed > 0 {
			held = append(held, h)
		}
	}
	return held, nil
}
