package app

import (
	errorsmod "cosmossdk.io/errors"
	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"
	"github.com/cosmos/cosmos-sdk/x/auth/ante"
	ibcante "github.com/cosmos/ibc-go/v11/modules/core/ante"
)

// ante is what a transaction passes before its messages are executed: its form, its fee, its signatures and sequences,
// and, last, whether a relayer's messages were delivered by another already. It is the SDK's (ante.NewAnteHandler), in
// the same order, but that fees are those of this chain (charge), that what costs nothing is bounded, and that
// signatures are not verified twice.
func (a *App) ante() sdk.AnteHandler {
	k := &a.keepers
	handler := sdk.ChainAnteDecorators(
		ante.NewSetUpContextDecorator(),
		fewer{},
		limited{},
		ante.NewExtensionOptionsDecorator(nil),
		ante.NewValidateBasicDecorator(),
		ante.NewTxTimeoutHeightDecorator(),
		ante.NewValidateMemoDecorator(k.accounts),
		ante.NewConsumeGasForTxSizeDecorator(k.accounts),
		ante.NewDeductFeeDecorator(k.accounts, k.bank, k.feegrant, a.fees().charge),
		ante.NewSetPubKeyDecorator(k.accounts),
		ante.NewValidateSigCountDecorator(k.accounts),
		ante.NewSigGasConsumeDecorator(k.accounts, ante.DefaultSigVerificationGasConsumer),
		ante.NewSigVerificationDecorator(a.signatures.Accounts(k.accounts), a.Tx.SignModeHandler()),
		ante.NewIncrementSequenceDecorator(k.accounts),
		ibcante.NewRedundantRelayDecorator(k.ibc),
		enters{a},
	)
	return func(ctx sdk.Context, tx sdk.Tx, simulate bool) (sdk.Context, error) {
		// An application that was opened again checks transactions at height 0 until the next block (SDK v0.54), where
		// signatures are those of a genesis: over account number 0.
		if ctx.IsCheckTx() && ctx.BlockHeight() == 0 {
			ctx = ctx.WithBlockHeight(a.LastBlockHeight())
		}
		return handler(ctx, tx, simulate)
	}
}

// fewer refuses transactions of more messages than any client makes.
type fewer struct{}

// AnteHandle implements sdk.AnteDecorator.
func (fewer) AnteHandle(ctx sdk.Context, tx sdk.Tx, simulate bool, next sdk.AnteHandler) (sdk.Context, error) {
	if n := len(tx.GetMsgs()); n > MaxMessages {
		return ctx, errorsmod.Wrapf(sdkerrors.ErrInvalidRequest, "%d messages in one transaction, at most %d: send several",
			n, MaxMessages)
	}
	return next(ctx, tx, simulate)
}
