package app

import (
	"strings"

	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/x/auth/ante"
	authsigning "github.com/cosmos/cosmos-sdk/x/auth/signing"
)

// FirstFree is how many transactions of an account need no fee where validators ask for one: who offers a machine has to
// register it, have it measured and work for a round before it earns anything. For somebody who only wants to fill blocks they
// are not free: an account exists once somebody has paid for a transaction that sends it coins.
const FirstFree = 64

// newcomers takes the first transactions of an account into the pool of a validator that asks for fees (chain.Config.GasPrice).
// They have messages of this chain's own modules alone, and one signer.
type newcomers struct{ accounts ante.AccountKeeper }

// AnteHandle implements sdk.AnteDecorator.
func (n newcomers) AnteHandle(ctx sdk.Context, tx sdk.Tx, simulate bool, next sdk.AnteHandler) (sdk.Context, error) {
	if ctx.IsCheckTx() && !ctx.MinGasPrices().IsZero() && n.free(ctx, tx) {
		ctx = ctx.WithMinGasPrices(nil)
	}
	return next(ctx, tx, simulate)
}

func (n newcomers) free(ctx sdk.Context, tx sdk.Tx) bool {
	for _, m := range tx.GetMsgs() {
		if !strings.HasPrefix(sdk.MsgTypeURL(m), "/starling.") {
			return false
		}
	}
	signed, ok := tx.(authsigning.SigVerifiableTx)
	if !ok {
		return false
	}
	signers, err := signed.GetSigners()
	if err != nil || len(signers) != 1 {
		return false
	}
	a := n.accounts.GetAccount(ctx, signers[0])
	return a != nil && a.GetSequence() < FirstFree
}
