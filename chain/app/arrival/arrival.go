// Package arrival lets workers join that never had coins: it begins their accounts, and counts the transactions for
// which they pay nothing. Which registration is admitted is a rule of x/registry.
package arrival

import (
	"context"

	errorsmod "cosmossdk.io/errors"
	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"

	"github.com/starling-network/starling/chain/app/account"
	"github.com/starling-network/starling/chain/app/room"
	"github.com/starling-network/starling/chain/x/registry"
	"github.com/starling-network/starling/chain/x/registry/registrypb"
)

// Earners lists the workers that earn their stake.
type Earners interface {
	Check(ctx context.Context, m *registrypb.MsgRegister) error
	Speak(ctx context.Context, account string) error
}

// Begins begins the account of a worker that registers without a stake and has no account. The signature names the
// number that follows from its address (account.Derived). A transaction that fails a later check leaves no account.
type Begins struct {
	Accounts account.Keeper
	Earners  Earners
}

// AnteHandle implements sdk.AnteDecorator.
func (b Begins) AnteHandle(ctx sdk.Context, tx sdk.Tx, simulate bool, next sdk.AnteHandler) (sdk.Context, error) {
	msgs := tx.GetMsgs()
	if len(msgs) == 0 {
		return next(ctx, tx, simulate)
	}
	m, ok := msgs[0].(*registrypb.MsgRegister)
	if !ok || !m.Earns {
		return next(ctx, tx, simulate)
	}
	sender, err := sdk.AccAddressFromBech32(m.Sender)
	free := ctx.WithGasMeter(storetypes.NewInfiniteGasMeter())
	if err != nil || b.Accounts.HasAccount(free, sender) {
		return next(ctx, tx, simulate)
	}
	if err := b.Earners.Check(free, m); err != nil {
		return ctx, registry.ErrorTable.Wrap(err)
	}
	if err := b.Accounts.Begin(free, sender); err != nil {
		return ctx, errorsmod.Wrap(sdkerrors.ErrInvalidRequest, err.Error())
	}
	return next(ctx, tx, simulate)
}

// Speaks records the transactions of workers that earn their stake, without a fee and without a duty, so that the next
// one has to wait.
type Speaks struct{ Earners }

// AnteHandle implements sdk.AnteDecorator.
func (s Speaks) AnteHandle(ctx sdk.Context, tx sdk.Tx, simulate bool, next sdk.AnteHandler) (sdk.Context, error) {
	if d := room.Declare(tx, len(ctx.TxBytes())); d.Fee == 0 && !d.Owed && d.Account != "" && !simulate {
		if err := s.Speak(ctx, d.Account); err != nil {
			return ctx, err
		}
	}
	return next(ctx, tx, simulate)
}
