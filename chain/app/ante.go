package app

import (
	errorsmod "cosmossdk.io/errors"
	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"
	"github.com/cosmos/cosmos-sdk/x/auth/ante"
	ibcante "github.com/cosmos/ibc-go/v11/modules/core/ante"

	"github.com/starling-network/starling/chain/app/arrival"
	"github.com/starling-network/starling/chain/app/delegate"
)

// ante returns the checks of a transaction before its messages are executed: form, fee, signatures, sequences, and last
// whether another relayer has delivered the same messages. It is the SDK's handler (ante.NewAnteHandler) in the same
// order, with five differences: the fees are those of this chain (charge), free transactions are bounded, valid
// signatures are not verified twice, a worker without coins begins its account by registering (package arrival), and
// machines of fleets sign work alone (package delegate).
func (a *App) ante() sdk.AnteHandler {
	k := keepersOf(a)
	handler := sdk.ChainAnteDecorators(
		ante.NewSetUpContextDecorator(),
		fewer{},
		limited{},
		ante.NewExtensionOptionsDecorator(nil),
		ante.NewValidateBasicDecorator(),
		ante.NewTxTimeoutHeightDecorator(),
		ante.NewValidateMemoDecorator(k.accounts),
		arrival.Begins{Accounts: k.accounts, Earners: k.registry.Earners, Fleets: k.registry.Fleets},
		delegate.Restricts{Participants: k.registry},
		ante.NewConsumeGasForTxSizeDecorator(k.accounts),
		ante.NewDeductFeeDecorator(k.accounts, k.bank, k.feegrant, feesOf(a).charge),
		ante.NewSetPubKeyDecorator(k.accounts),
		ante.NewValidateSigCountDecorator(k.accounts),
		ante.NewSigGasConsumeDecorator(k.accounts, ante.DefaultSigVerificationGasConsumer),
		ante.NewSigVerificationDecorator(a.signatures.Accounts(k.accounts), a.Tx.SignModeHandler()),
		ante.NewIncrementSequenceDecorator(k.accounts),
		arrival.Speaks{Earners: k.registry.Earners, Fleets: k.registry.Fleets},
		ibcante.NewRedundantRelayDecorator(k.ibc),
		enters{a},
	)
	return func(ctx sdk.Context, tx sdk.Tx, simulate bool) (sdk.Context, error) {
		// After a restart, an application checks transactions at height 0 until the next block (SDK v0.54). At height 0 the
		// SDK verifies signatures with account number 0, as in a genesis.
		if ctx.IsCheckTx() && ctx.BlockHeight() == 0 {
			ctx = ctx.WithBlockHeight(a.LastBlockHeight())
		}
		return handler(ctx, tx, simulate)
	}
}

// fewer refuses transactions of more than MaxMessages messages.
type fewer struct{}

// AnteHandle implements sdk.AnteDecorator.
func (fewer) AnteHandle(ctx sdk.Context, tx sdk.Tx, simulate bool, next sdk.AnteHandler) (sdk.Context, error) {
	if n := len(tx.GetMsgs()); n > MaxMessages {
		return ctx, errorsmod.Wrapf(sdkerrors.ErrInvalidRequest, "%d messages in one transaction, at most %d: send several",
			n, MaxMessages)
	}
	return next(ctx, tx, simulate)
}
