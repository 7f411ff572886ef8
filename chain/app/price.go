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

// fees computes the fees of transactions, and which transactions are free.
type fees struct {
	keepers  *keepers
	governed bool // this node follows the price of the chain (Config.Governed)
}

func feesOf(a *App) fees { return fees{keepersOf(a), a.governed} }

// price is the gas price of the chain, in uzen per million units.
func (f fees) price(ctx sdk.Context) (uint64, error) {
	p, err := f.keepers.market.Params(ctx.WithGasMeter(storetypes.NewInfiniteGasMeter()))
	return p.GasPrice, err
}

// FreeTransactions is how many transactions of an account are free where validators ask for a fee, if a role's stake
// backs the account or the transaction stakes it: a provider must register its machine and have it measured before it
// earns anything. Stakes are locked for long, so that the same coins cannot back many accounts in turn.
const FreeTransactions = 16

// charge returns the fee of a transaction (ante.TxFeeChecker). To enter the pool of this node, a transaction pays the
// price set by the node's owner or, if the node follows it (Config.Governed), the price of the chain, whichever is
// higher. Duties, and the first transactions of an account with a stake, are free. In a block the fee is the declared
// fee: validators refuse a block with too many unpaid transactions (package room).
func (f fees) charge(ctx sdk.Context, tx sdk.Tx) (sdk.Coins, int64, error) {
	paid, ok := tx.(sdk.FeeTx)
	if !ok {
		return nil, 0, errorsmod.Wrap(sdkerrors.ErrTxDecode, "it says nothing of a fee")
	}
	fee := paid.GetFee()
	if !ctx.IsCheckTx() || ctx.IsReCheckTx() && fee.IsZero() { // its free use was bounded when it entered the pool
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

// asks is the fee in uzen that this node asks for an amount of gas.
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

// rank is the rank of the least urgent message; 0 if any message is no duty.
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

// leastUrgent is the rank of duties outside runs.
const leastUrgent = 5
