package transaction

import (
	"errors"
	"fmt"

	sdkmath "cosmossdk.io/math"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/client/gas"
)

// Fee is what a transaction pays, and for how much gas. The zero value pays nothing, for what such messages need as a
// rule (gas.Limit).
type Fee struct {
	Gas    uint64
	Amount sdk.Coins
	Payer  string // account that allowed the signer to spend its coins for fees; "": the signer
}

// higher is the higher one of a price in a validator's words, and one in uzen for a million units of gas.
func GasPrice(words string, million uint64) (sdkmath.LegacyDec, error) {
	own, err := sdk.ParseDecCoins(words)
	if err != nil {
		return sdkmath.LegacyDec{}, fmt.Errorf("client: what the validator asks for gas: %w", err)
	}
	return sdkmath.LegacyMaxDec(own.AmountOf(adapter.Denom), millionth(million)), nil
}

// millionth is a price in uzen for a million units of gas, for one.
func millionth(million uint64) sdkmath.LegacyDec {
	return sdkmath.LegacyNewDecFromInt(sdkmath.NewIntFromUint64(million)).QuoInt64(1_000_000)
}

// feeFor is the fee for a limit of gas.
func FeeFor(price sdkmath.LegacyDec, units uint64) (Fee, error) {
	if !price.IsPositive() {
		return Fee{}, errors.New("client: the validator refused a transaction for its fee, and says that it asks for none")
	}
	f := Fee{Gas: min(units, gas.Most)}
	f.Amount = sdk.NewCoins(sdk.NewCoin(adapter.Denom, price.MulInt(sdkmath.NewIntFromUint64(f.Gas)).Ceil().TruncateInt()))
	return f, nil
}

// FeeAt is the fee of messages at a price in uzen for a million units of gas, for what such messages need as a rule.
func FeeAt(million uint64, msgs ...sdk.Msg) (Fee, error) {
	return FeeFor(millionth(million), gas.Limit(msgs...))
}
