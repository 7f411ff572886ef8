package app

import (
	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/x/auth/ante"
	ibcante "github.com/cosmos/ibc-go/v11/modules/core/ante"
)

// ante is what a transaction passes before its messages are executed: its form, its fee, its signatures and sequences, and,
// last, whether a relayer's messages were delivered by another already.
func (a *App) ante() (sdk.AnteHandler, error) {
	k := &a.keepers
	standard, err := ante.NewAnteHandler(ante.HandlerOptions{
		AccountKeeper: k.accounts, BankKeeper: k.bank, FeegrantKeeper: k.feegrant,
		SignModeHandler: a.Tx.SignModeHandler(), SigGasConsumer: ante.DefaultSigVerificationGasConsumer,
	})
	if err != nil {
		return nil, err
	}
	relayed := sdk.ChainAnteDecorators(ibcante.NewRedundantRelayDecorator(k.ibc))
	return func(ctx sdk.Context, tx sdk.Tx, simulate bool) (sdk.Context, error) {
		// An application that was opened again checks transactions at height 0 until the next block (SDK v0.54), where signatures
		// are those of a genesis: over account number 0.
		if ctx.IsCheckTx() && ctx.BlockHeight() == 0 {
			ctx = ctx.WithBlockHeight(a.LastBlockHeight())
		}
		if ctx, err = standard(ctx, tx, simulate); err != nil {
			return ctx, err
		}
		return relayed(ctx, tx, simulate)
	}, nil
}
