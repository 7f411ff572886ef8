package app

import (
	errorsmod "cosmossdk.io/errors"
	sdkmath "cosmossdk.io/math"
	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/app/room"
)

// fees says what transactions pay, and which pay nothing.
type fees struct {
	keepers  *keepers
	governed bool // this node follows the price of the chain (Config.Governed)
}

func (a *App) fees() fees { return fees{&a.keepers, a.governed} }

// price is what the chain asks for a million units of gas, in uzen.
func (f fees) price(ctx sdk.Context) (uint64, error) {
	p, err := f.keepers.market.Params(ctx.WithGasMeter(storetypes.NewInfiniteGasMeter()))
	return p.GasPrice, err
}

// FreeTransactions is how many transactions of an account need no fee where validators ask for one, if the stake of a
// role stands behind the account, or the transaction puts it there: who offers a machine has to register it and have it
// measured before it earns anything. Stakes are locked for long, so that nobody has many of them one after the other
// with the same coins.
const FreeTransactions = 16

// charge is the fee of a transaction (ante.TxFeeChecker). What comes into the pool of this node pays the higher of the
// price of its owner and, where the node follows it (Config.Governed), of the chain. Duties and the first transactions
// of an account with a stake are free. In a block the fee is the one that the transaction declares: validators refuse a
// block with too many unpaid transactions (room).
func (f fees) charge(ctx sdk.Context, tx sdk.Tx) (sdk.Coins, int64, error) {
	paid, ok := tx.(sdk.FeeTx)
	if !ok {
		return nil, 0, errorsmod.Wrap(sdkerrors.ErrTxDecode, "it says nothing of a fee")
	}
	fee := paid.GetFee()
	if !ctx.IsCheckTx() || ctx.IsReCheckTx() && fee.IsZero() { // what was free when it came was bounded then
		return fee, 0, nil
	}
	price, err := f.price(ctx)
	if err != nil {
		return nil, 0, err
	}
	d := room.Declare(tx, len(ctx.TxBytes()))
	if asked := f.asks(ctx, price, d.Gas); d.Fee < asked && (d.Fee > 0 || !f.free(ctx, d, tx.GetMsgs())) {
		return nil, 0, errorsmod.Wrapf(sdkerrors.ErrInsufficientFee, "%d uzen for %d units of gas, %d are asked", d.Fee,
			d.Gas, asked)
	}
	if !d.Pays(price) {
		if err := room.New(ctx).Take(d, false); err != nil {
			return nil, 0, errorsmod.Wrapf(sdkerrors.ErrInsufficientFee, "%v", err)
		}
	}
	return fee, 0, nil
}

// asks is what this node asks for gas, in uzen.
func (f fees) asks(ctx sdk.Context, price, gas uint64) uint64 {
	own := ctx.MinGasPrices().AmountOf(adapter.Denom)
	if f.governed {
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
func (f fees) free(ctx sdk.Context, d room.Declared, msgs []sdk.Msg) bool {
	return d.Account != "" && (f.rank(ctx, d.Account, msgs) > 0 || f.newcomer(ctx, d, msgs))
}

// rank is that of the least urgent message; 0 if one is no duty.
func (f fees) rank(ctx sdk.Context, account string, msgs []sdk.Msg) (rank int) {
	for _, m := range msgs {
		r := f.keepers.training.Duty(ctx, account, m)
		if r == 0 && f.keepers.registry.Duty(ctx, account, m) {
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
