package registry

import (
	"context"
	"errors"
	"fmt"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run/crew"
)

// Bond ensures that an account without a seat in a run has a stake behind its messages: at least the smallest stake of
// a verifier. It takes the missing amount from the account, which becomes a participant without a role and can withdraw
// the bond like any stake (MsgUnstake). It refuses accounts that were slashed.
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
