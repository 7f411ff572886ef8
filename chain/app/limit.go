package app

import (
	"fmt"

	errorsmod "cosmossdk.io/errors"
	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"

	"github.com/starling-network/starling/chain/app/room"
)

// Limits of a transaction that pays no fee, with any proposer of the block, and of a simulated one.
const (
	FreeMessages = 32
	FreeBytes    = 4 << 20
)

// limited bounds the gas of every transaction, and the messages and bytes of a transaction without a fee. It runs after
// the decorator that sets the gas meter.
type limited struct{}

// AnteHandle implements sdk.AnteDecorator.
func (limited) AnteHandle(ctx sdk.Context, tx sdk.Tx, simulate bool, next sdk.AnteHandler) (sdk.Context, error) {
	paid, ok := tx.(sdk.FeeTx)
	if ctx.BlockHeight() == 0 {
		return next(ctx, tx, simulate)
	}
	if ok && paid.GetGas() > room.MaxGas && !simulate {
		return ctx, errorsmod.Wrapf(sdkerrors.ErrInvalidGasLimit, "%d units of gas, at most %d are taken in a transaction",
			paid.GetGas(), room.MaxGas)
	}
	if ok && !paid.GetFee().IsZero() && !simulate {
		return next(ctx, tx, simulate)
	}
	if n := len(tx.GetMsgs()); n > FreeMessages {
		return ctx, errorsmod.Wrap(sdkerrors.ErrInvalidRequest,
			fmt.Sprintf("%d messages, at most %d are taken in a transaction without a fee", n, FreeMessages))
	}
	if n := len(ctx.TxBytes()); n > FreeBytes {
		return ctx, errorsmod.Wrap(sdkerrors.ErrTxTooLarge,
			fmt.Sprintf("%d bytes, at most %d are taken in a transaction without a fee", n, FreeBytes))
	}
	if simulate {
		ctx = ctx.WithGasMeter(storetypes.NewGasMeter(SimulatedGas))
	}
	return next(ctx, tx, simulate)
}
