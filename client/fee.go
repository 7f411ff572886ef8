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
)

// Fee is what a transaction pays, and for how much gas. The zero value pays nothing, for all the gas there is.
type Fee struct {
	Gas    uint64
	Amount sdk.Coins
}

// spare is how many times the gas that messages need now they may need in their block.
const spare = 2

// fee is what the validator asks for messages: its price, times the gas that they need as it finds when it executes them.
func (c *Client) fee(ctx context.Context, msgs []sdk.Msg) (Fee, error) {
	r, err := nodeservice.NewServiceClient(c.conn).Config(ctx, &nodeservice.ConfigRequest{})
	if err != nil {
		return Fee{}, fmt.Errorf("client: what the validator asks for gas: %w", err)
	}
	tx, err := Sign(ctx, c.signer, Account{ChainID: c.follow.chainID, Number: c.account.number, Sequence: c.account.sequence}, 0, msgs...)
	if err != nil {
		return Fee{}, fmt.Errorf("client: %w", err)
	}
	gas, err := c.simulate(ctx, tx)
	if err != nil {
		return Fee{}, err
	}
	return feeOf(r.MinimumGasPrice, gas)
}

// feeOf is the fee for gas, and for some to spare, at a price in a validator's words.
func feeOf(words string, gas uint64) (Fee, error) {
	price, err := sdk.ParseDecCoins(words)
	if err != nil {
		return Fee{}, fmt.Errorf("client: what the validator asks for gas: %w", err)
	}
	if len(price) == 0 {
		return Fee{}, errors.New("client: the validator refused a transaction for its fee, and says that it asks for none")
	}
	f := Fee{Gas: spare * gas}
	f.Amount, _ = price.MulDec(sdkmath.LegacyNewDecFromInt(sdkmath.NewIntFromUint64(f.Gas))).TruncateDecimal()
	return Fee{f.Gas, f.Amount.Add(sdk.NewCoin(price[0].Denom, sdkmath.OneInt()))}, nil // of a part, the whole
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

// unpaid reports whether a transaction was refused for its fee.
func unpaid(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Space == sdkerrors.RootCodespace && e.Code == sdkerrors.ErrInsufficientFee.ABCICode()
}
