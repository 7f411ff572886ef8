package reward

import (
	"context"

	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"

	"github.com/starling-network/starling/protocol/coin"
)

// Revenue pays the revenue of models for other modules.
type Revenue struct{ *Keeper }

// Takes reports whether there are shares of the model of a job. Their holders are paid in any registered coin.
func (r Revenue) Takes(ctx context.Context, job string) (bool, error) {
	return r.models.Has(ctx, job)
}

// Receive divides grains of a coin that the account of a module holds over the shares of the model of a job, and of the
// works that it was made from.
func (r Revenue) Receive(ctx context.Context, module, job string, c coin.Coin, grains uint64) error {
	_, err := r.Divide(ctx, authtypes.NewModuleAddress(module), job, c, grains, 0)
	return err
}
