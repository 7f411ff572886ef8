package books

import (
	"context"

	sdkmath "cosmossdk.io/math"

	"github.com/starling-network/starling/protocol/coin"
)

// delegated is what the network holds of delegators: their stake, and their pay, in base units of each denomination.
func (c counter) delegated(ctx context.Context) (sums map[string]sdkmath.Int, err error) {
	own := coin.Coin{}
	sums = map[string]sdkmath.Int{own.Denom: sdkmath.ZeroInt()}
	pools, err := c.Delegation.Pools(ctx)
	for _, p := range pools {
		add(sums, own, p.Tokens)
		add(sums, own, p.Joining)
		for _, u := range p.Purses {
			add(sums, u.Coin, u.Held)
		}
	}
	return sums, err
}
