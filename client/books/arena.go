package books

import (
	"context"

	sdkmath "cosmossdk.io/math"

	"github.com/starling-network/starling/protocol/coin"
)

// contests is what the network holds of hosts, entrants and evaluators of contests, and of hosts and members of
// committees, in base units of each denomination.
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
	groups, err := c.Arena.Committees(ctx)
	if err != nil {
		return nil, err
	}
	for _, g := range groups {
		add(sums, coins[g.Terms.Round.Denom].Coin, g.Left)
		add(sums, own, g.Staked)
	}
	evaluators, err := c.Arena.Evaluators(ctx)
	for _, e := range evaluators {
		add(sums, own, e.Bond)
	}
	return sums, err
}
