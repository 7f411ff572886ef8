package reward

import (
	"context"

	distrkeeper "github.com/cosmos/cosmos-sdk/x/distribution/keeper"

	"github.com/starling-network/starling/chain/adapter"
)

// Community is the community pool of the distribution module.
type Community struct{ distrkeeper.Keeper }

// Available is the balance of the community pool, in uzen.
func (p Community) Available(ctx context.Context) (uint64, error) {
	f, err := p.FeePool.Get(ctx)
	if err != nil {
		return 0, err
	}
	return f.CommunityPool.AmountOf(adapter.Denom).TruncateInt().Uint64(), nil
}
