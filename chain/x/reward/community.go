package reward

import (
	"context"

	"cosmossdk.io/collections"
	sdk "github.com/cosmos/cosmos-sdk/types"
	distrtypes "github.com/cosmos/cosmos-sdk/x/distribution/types"

	"github.com/starling-network/starling/chain/adapter"
)

// Payer pays from the community pool.
type Payer interface {
	DistributeFromFeePool(ctx context.Context, amount sdk.Coins, to sdk.AccAddress) error
}

// Community is the community pool of the distribution module. It has the parts of that module's keeper that it uses:
// the package of the keeper imports the server of the SDK.
type Community struct {
	Payer
	FeePool collections.Item[distrtypes.FeePool]
}

// Available is the balance of the community pool, in uzen.
func (p Community) Available(ctx context.Context) (uint64, error) {
	f, err := p.FeePool.Get(ctx)
	if err != nil {
		return 0, err
	}
	return f.CommunityPool.AmountOf(adapter.Denom).TruncateInt().Uint64(), nil
}
