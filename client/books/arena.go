package books

import (
	"context"

	sdkmath "cosmossdk.io/math"

	"github.com/starling-network/starling/protocol/coin"
)

// contests is what the network holds of hosts, entrants and evaluators of contests, in base units of each denomination.
func (c counter) contests(ctx context.Context) (sums map[string]sdkmath.Int, err error) {
	own := coin.Coin{}
	sums = map[string]sdkmath.Int{own.Denom: sdkmath.ZeroInt()}
	coins, err := c.Market.ByDenom(ctx)
	if err != nil {
		return nil, err
	}
	open, err := c.Arena.Contests(ctx, false)
	if err != nil {
		return nil, err
	}
	for _, o := range open {
		add(sums, coins[o.Terms.Denom].Coin, o.Held())
	}
	evaluators, err := c.Arena.Evaluators(ctx)
	for _, e := range evaluators {
		add(sums, own, e.Bond)
	}
	return sums, err
}
