package app

import (
	"fmt"
	"math/bits"

	errorsmod "cosmossdk.io/errors"
	sdkmath "cosmossdk.io/math"
	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"
	authsigning "github.com/cosmos/cosmos-sdk/x/auth/signing"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/registry"
	"github.com/starling-network/starling/chain/x/training"
)

// declared is what a transaction says of itself.
type declared struct {
	account  string // its only signer; "": it has several, or is none
	sequence uint64
	bytes    int64
	gas      uint64 // its limit
	fee      uint64 // uzen
	owed     bool   // all of its messages are such as members of runs and parties of disputes owe
	moves    bool   // all are moves of disputes
}

func declare(tx sdk.Tx, size int) (d declared) {
	d.bytes = int64(size)
	if f, ok := tx.(sdk.FeeTx); ok {
		d.gas = f.GetGas()
		if amount := f.GetFee().AmountOf(adapter.Denom); amount.IsUint64() {
			d.fee = amount.Uint64()
		}
	}
	d.owed, d.moves = true, true
	for _, m := range tx.GetMsgs() {
		rank, _ := training.Owed(m)
		d.owed, d.moves = d.owed && (rank > 0 || registry.Owed(m)), d.moves && rank == 1
	}
	signed, ok := tx.(authsigning.SigVerifiableTx)
	if !ok {
		return d
	}
	signers, err := signed.GetSigners()
	signatures, wrong := signed.GetSignaturesV2()
	if err == nil && wrong == nil && len(signers) == 1 && len(signatures) == 1 {
		d.account, d.sequence = sdk.AccAddress(signers[0]).String(), signatures[0].Sequence
	}
	return d
}

// pays reports whether a transaction pays a price for its gas, in uzen for a million units.
func (d declared) pays(price uint64) bool {
	if d.gas == 0 || price == 0 {
		return d.gas > 0
	}
	high, low := bits.Mul64(d.gas, price)
	if high > 0 || low > 1<<63 {
		return false
	}
	return d.fee >= (low+999_999)/1_000_000
}

// price is what the chain asks for a million units of gas, in uzen.
func (a *App) price(ctx sdk.Context) (uint64, error) {
	p, err := a.keepers.market.Params(ctx.WithGasMeter(storetypes.NewInfiniteGasMeter()))
	return p.GasPrice, err
}

// FirstFree is how many transactions of an account need no fee where validators ask for one, if the stake of a role
// stands behind the account, or the transaction puts it there: who offers a machine has to register it and have it
// measured before it earns anything. Stakes are locked for long, so that nobody has many of them one after the other
// with the same coins.
const FirstFree = 16

// charge is the fee of a transaction (ante.TxFeeChecker). What comes into the pool of this node pays the higher of the
// price of its owner and, where the node follows it (Config.Governed), of the chain. Duties and the first transactions
// of an account with a stake are free. In a block the fee is the one that the transaction declares: validators refuse a
// block with too many unpaid transactions (room).
func (a *App) charge(ctx sdk.Context, tx sdk.Tx) (sdk.Coins, int64, error) {
	paid, ok := tx.(sdk.FeeTx)
	if !ok {
		return nil, 0, errorsmod.Wrap(sdkerrors.ErrTxDecode, "it says nothing of a fee")
	}
	fee := paid.GetFee()
	if !ctx.IsCheckTx() || ctx.IsReCheckTx() && fee.IsZero() { // what was free when it came was bounded then
		return fee, 0, nil
	}
	price, err := a.price(ctx)
	if err != nil {
		return nil, 0, err
	}
	d := declare(tx, len(ctx.TxBytes()))
	if asked := a.asks(ctx, price, d.gas); d.fee < asked && (d.fee > 0 || !a.free(ctx, d, tx.GetMsgs())) {
		return nil, 0, errorsmod.Wrapf(sdkerrors.ErrInsufficientFee, "%d uzen for %d units of gas, %d are asked", d.fee,
			d.gas, asked)
	}
	if !d.pays(price) {
		if err := newRoom(ctx).take(d, false); err != nil {
			return nil, 0, errorsmod.Wrapf(sdkerrors.ErrInsufficientFee, "%v", err)
		}
	}
	return fee, 0, nil
}

// asks is what this node asks for gas, in uzen.
func (a *App) asks(ctx sdk.Context, price, gas uint64) uint64 {
	own := ctx.MinGasPrices().AmountOf(adapter.Denom)
	if a.governed {
		own = sdkmath.LegacyMaxDec(own, sdkmath.LegacyNewDec(int64(price)).QuoInt64(1_000_000))
	}
	asked := own.MulInt(sdkmath.NewIntFromUint64(gas)).Ceil().TruncateInt()
	if !asked.IsUint64() {
		return ^uint64(0)
	}
	return asked.Uint64()
}

// free reports whether a transaction needs no fee: it is a duty, or one of the first transactions of an account with a
// stake.
func (a *App) free(ctx sdk.Context, d declared, msgs []sdk.Msg) bool {
	return d.account != "" && (a.rank(ctx, d.account, msgs) > 0 || a.newcomer(ctx, d, msgs))
}

// rank is that of the least urgent message; 0 if one is no duty.
func (a *App) rank(ctx sdk.Context, account string, msgs []sdk.Msg) (rank int) {
	for _, m := range msgs {
		r := a.keepers.training.Duty(ctx, account, m)
		if r == 0 && a.keepers.registry.Duty(ctx, account, m) {
			r = leastUrgent
		}
		if r == 0 {
			return 0
		}
		rank = max(rank, r)
	}
	return rank
}

// leastUrgent is the rank of duties outside of runs.
const leastUrgent = 5

// tooMany is the refusal of what is free, and more than there is room for.
func tooMany(format string, args ...any) error {
	return errorsmod.Wrapf(sdkerrors.ErrInsufficientFee, "%s: it needs a fee", fmt.Sprintf(format, args...))
}
