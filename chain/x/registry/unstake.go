package registry

import (
	"context"
	"errors"

	"cosmossdk.io/collections"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/registry/coinstakes"
	"github.com/starling-network/starling/chain/x/registry/registrypb"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/registry/fleet"
)

// Unstake implements registrypb.MsgServer.
func (k messages) Unstake(ctx context.Context, m *registrypb.MsgUnstake) (*registrypb.MsgUnstakeResponse, error) {
	old, err := k.Get(ctx, m.Sender)
	if err == nil && old.Machine.Owner != "" {
		err = fleet.ErrMachine
	}
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	params, err := k.Params(ctx)
	if err != nil {
		return nil, err
	}
	p, err := old.Unstake(m.Amount, params, sdk.UnwrapSDKContext(ctx).BlockHeight())
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	if err := k.plan(ctx, old, p); err != nil {
		return nil, err
	}
	return &registrypb.MsgUnstakeResponse{Height: p.LeavesAt}, k.set(ctx, p)
}

// plan records the height at which a leaving stake is next checked, instead of the previous height.
func (k *Keeper) plan(ctx context.Context, old, p registry.Participant) error {
	if old.LeavesAt > 0 {
		if err := k.leaving.Remove(ctx, collections.Join(old.LeavesAt, p.ID)); err != nil {
			return err
		}
	}
	if p.LeavesAt > 0 {
		return k.leaving.Set(ctx, collections.Join(p.LeavesAt, p.ID))
	}
	return nil
}

// release pays out the stakes that are due, except those of accounts that have a part in a run: they are checked again
// later.
func (k *Keeper) release(ctx context.Context) error {
	height := sdk.UnwrapSDKContext(ctx).BlockHeight()
	it, err := k.leaving.Iterate(ctx, collections.NewPrefixUntilPairRange[int64, string](height))
	if err != nil {
		return err
	}
	due, err := it.Keys()
	if err != nil {
		return err
	}
	for _, key := range due[:min(len(due), coinstakes.MaxReleased)] {
		if err := k.payOut(ctx, key.K2(), height); err != nil {
			return err
		}
	}
	return nil
}

func (k *Keeper) payOut(ctx context.Context, id string, height int64) error {
	old, err := k.Get(ctx, id)
	if err != nil {
		return err
	}
	part, err := k.runs.Part(ctx, id)
	if err != nil {
		return err
	}
	if part {
		later := old
		later.LeavesAt = height + coinstakes.Postponed
		return errors.Join(k.plan(ctx, old, later), k.put(ctx, later))
	}
	p, amount := old.Release()
	if err := errors.Join(k.plan(ctx, old, p), k.set(ctx, p)); err != nil || amount == 0 {
		return err
	}
	to, err := Paying{k}.Payee(ctx, id)
	if err != nil {
		return err
	}
	return k.bank.SendCoinsFromModuleToAccount(ctx, Name, to, adapter.Coins(amount))
}
