package registry

import (
	"context"
	"errors"
	"fmt"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run/crew"
)

// Bond makes sure that a stake stands behind what an account says without a part in a run: the smallest of a verifier.
// What is missing is taken from the account, which is then a participant without a role, and gets it back as any stake
// (MsgUnstake). Who was slashed has nothing to say.
func (k *Keeper) Bond(ctx context.Context, id string) error {
	p, err := k.Get(ctx, id)
	if err != nil && !errors.Is(err, ErrUnknown) {
		return err
	}
	if err != nil {
		p = registry.Participant{ID: id, Since: sdk.UnwrapSDKContext(ctx).BlockHeight()}
	}
	params, err := k.Params(ctx)
	if err != nil {
		return err
	}
	least, has := params.MinStake(crew.Verifier), p.Firm()
	switch {
	case p.Jailed:
		return ErrorTable.Wrap(fmt.Errorf("%w: %s was slashed", ErrJailed, id))
	case has >= least:
		return nil
	}
	if p, err = p.TopUp(least - has); err != nil {
		return ErrorTable.Wrap(err)
	}
	if err := k.lock(ctx, id, least-has); err != nil {
		return err
	}
	return k.set(ctx, p)
}
