package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	sdkmath "cosmossdk.io/math"
	nodeservice "github.com/cosmos/cosmos-sdk/client/grpc/node"
	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/client/gas"
)

// Fee is what a transaction pays, and for how much gas. The zero value pays nothing, for what such messages need as a
// rule (gas.Limit).
type Fee struct {
	Gas    uint64
	Amount sdk.Coins
}

// The code of app.ErrBusy.
const (
	busySpace = "app"
	busyCode  = 2
)

// spare is how many times the gas that messages need now they may need in their block.
const spare = 2

// fee is what the chain and the validator ask for messages: their price, times the gas that they need as the validator
// finds when it executes them.
func (c *Client) fee(ctx context.Context, msgs []sdk.Msg) (Fee, error) {
	price, err := c.gasPrice(ctx)
	if err != nil {
		return Fee{}, err
	}
	tx, err := Sign(ctx, c.signer, Account{ChainID: c.follow.chainID, Number: c.account.number,
		Sequence: c.account.sequence}, 0, msgs...)
	if err != nil {
		return Fee{}, fmt.Errorf("client: %w", err)
	}
	gas, err := c.simulate(ctx, tx)
	if e, ok := errors.AsType[*Error](err); ok && e.Space == busySpace && e.Code == busyCode {
		return feeFor(price, c.gas.Limit(msgs)) // others ask for as much as may be simulated at a time
	}
	if err != nil {
		return Fee{}, err
	}
	return feeFor(price, spare*gas)
}

// gasPrice is what a unit of gas costs, in uzen: the higher of what the validator asks and what the chain does.
func (c *Client) gasPrice(ctx context.Context) (sdkmath.LegacyDec, error) {
	r, err := nodeservice.NewServiceClient(c.conn).Config(ctx, &nodeservice.ConfigRequest{})
	if err != nil {
		return sdkmath.LegacyDec{}, fmt.Errorf("client: what the validator asks for gas: %w", err)
	}
	p, err := c.MarketParams(ctx)
	if err != nil {
		return sdkmath.LegacyDec{}, err
	}
	return higher(r.MinimumGasPrice, p.GasPrice)
}

// higher is the higher one of a price in a validator's words, and one in uzen for a million units of gas.
func higher(words string, million uint64) (sdkmath.LegacyDec, error) {
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
func feeFor(price sdkmath.LegacyDec, units uint64) (Fee, error) {
	if !price.IsPositive() {
		return Fee{}, errors.New("client: the validator refused a transaction for its fee, and says that it asks for none")
	}
	f := Fee{Gas: min(units, gas.Most)}
	f.Amount = sdk.NewCoins(sdk.NewCoin(adapter.Denom, price.MulInt(sdkmath.NewIntFromUint64(f.Gas)).Ceil().TruncateInt()))
	return f, nil
}

// FeeAt is the fee of messages at a price in uzen for a million units of gas, for what such messages need as a rule.
func FeeAt(million uint64, msgs ...sdk.Msg) (Fee, error) {
	return feeFor(millionth(million), gas.Limit(msgs...))
}

// reserved is the gas of some fifty transactions.
const reserved = 10_000_000

// Reserve is what an account should have beside what it stakes, in uzen, for transactions that are not free.
func (c *Client) Reserve(ctx context.Context) (uint64, error) {
	price, err := c.gasPrice(ctx)
	if err != nil {
		return 0, err
	}
	return price.MulInt64(reserved).Ceil().TruncateInt().Uint64(), nil
}

// simulate is the gas that a transaction needs.
func (c *Client) simulate(ctx context.Context, tx []byte) (uint64, error) {
	r, err := c.rpc.ABCIQuery(ctx, "/app/simulate", tx)
	if err != nil {
		return 0, fmt.Errorf("client: %w", err)
	}
	if err := Refusal(r.Response.Codespace, r.Response.Code, r.Response.Log); err != nil {
		return 0, err
	}
	var answer struct {
		Gas struct {
			Used string `json:"gas_used"`
		} `json:"gas_info"`
	}
	if err := json.Unmarshal(r.Response.Value, &answer); err != nil {
		return 0, fmt.Errorf("client: %w", err)
	}
	return strconv.ParseUint(answer.Gas.Used, 10, 48)
}

// OutOfGas reports whether a transaction took more gas than its limit.
func OutOfGas(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Space == sdkerrors.RootCodespace && e.Code == sdkerrors.ErrOutOfGas.ABCICode()
}

// unpaid reports whether a transaction was refused for its fee.
func unpaid(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Space == sdkerrors.RootCodespace && e.Code == sdkerrors.ErrInsufficientFee.ABCICode()
}
