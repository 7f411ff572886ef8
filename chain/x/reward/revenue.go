package reward

import (
	"context"
	"errors"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/reward/rewardpb"
	"github.com/starling-network/starling/protocol/coin"
)

// Revenue lets other modules pay the holders of shares of models.
type Revenue struct{ *Keeper }

// Takes reports whether there are shares of the model of a job, whose holders are paid in a coin: the network's own.
func (r Revenue) Takes(ctx context.Context, job string, c coin.Coin) (bool, error) {
	if !c.Own() {
		return false, nil
	}
	return r.models.Has(ctx, job)
}

// Receive divides grains of a coin that the account of a module holds over the shares of the model of a job.
func (r Revenue) Receive(ctx context.Context, module, job string, c coin.Coin, grains uint64) error {
	m, err := r.model(ctx, job)
	if err != nil {
		return err
	}
	return errors.Join(r.bank.SendCoinsFromModuleToModule(ctx, module, Name, adapter.CoinsOf(c, grains)),
		r.models.Set(ctx, job, m.Pay(grains)),
		sdk.UnwrapSDKContext(ctx).EventManager().EmitTypedEvent(&rewardpb.EventRevenue{Job: job, Amount: grains}))
}
