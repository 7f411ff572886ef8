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

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/client/transaction"
)

// spare is how many times the gas that messages need now they may need in their block.
const spare = 2

// fee is the fee of messages that the chain and the validator ask for: their price of gas, times the gas that the
// validator finds when it executes the messages.
func (c *Client) fee(ctx context.Context, msgs []sdk.Msg) (transaction.Fee, error) {
	price, err := c.gasPrice(ctx)
	if err != nil {
		return transaction.Fee{}, err
	}
	var paid transaction.Fee
	if paid.Payer, err = payer(ctx, c); err != nil {
		return paid, err
	}
	if paid.Payer != "" { // the account of another is more gas
		paid.Amount = adapter.Coins(1)
	}
	tx, err := transaction.Sign(ctx, c.signer, transaction.Account{ChainID: c.follow.chainID, Number: c.account.number,
		Sequence: c.account.sequence, Fee: paid}, 0, msgs...)
	if err != nil {
		return transaction.Fee{}, fmt.Errorf("client: %w", err)
	}
	gas, err := c.simulate(ctx, tx)
	if transaction.Busy(err) {
		gas, err = c.gas.Limit(msgs)/spare, nil // others ask for as much as may be simulated at a time
	}
	if err != nil {
		return transaction.Fee{}, err
	}
	f, err := transaction.FeeFor(price, spare*gas)
	f.Payer = paid.Payer
	return f, err
}

// payer is the account that pays fees for a machine of a fleet: its owner, if that allows it some; "" for any other
// account.
func payer(ctx context.Context, c *Client) (string, error) {
	p, err := c.Registry.Participant(ctx, c.Address())
	if errors.Is(err, ErrNotFound) || err == nil && p.Machine.Fees == 0 {
		return "", nil
	}
	return p.Machine.Owner, err
}

// gasPrice is the price of a unit of gas, in uzen: the higher of the validator's and the chain's.
func (c *Client) gasPrice(ctx context.Context) (sdkmath.LegacyDec, error) {
	r, err := nodeservice.NewServiceClient(c.queries).Config(ctx, &nodeservice.ConfigRequest{})
	if err != nil {
		return sdkmath.LegacyDec{}, fmt.Errorf("client: what the validator asks for gas: %w", err)
	}
	p, err := c.Market.Params(ctx)
	if err != nil {
		return sdkmath.LegacyDec{}, err
	}
	return transaction.GasPrice(r.MinimumGasPrice, p.GasPrice)
}

// reserved is the gas of some fifty transactions.
const reserved = 10_000_000

// Reserve is the amount, in uzen, that an account should keep on top of its stake for transactions that are not free.
func (c *Client) Reserve(ctx context.Context) (uint64, error) {
	price, err := c.gasPrice(ctx)
	if err != nil {
		return 0, err
	}
	return price.MulInt64(reserved).Ceil().TruncateInt().Uint64(), nil
}

// Try executes messages without a block, and returns the gas that they need, or the refusal.
func (c *Client) Try(ctx context.Context, msgs ...sdk.Msg) (uint64, error) {
	number, sequence, err := c.Sequence(ctx)
	if err != nil {
		return 0, err
	}
	s, err := c.rpc.Status(ctx)
	if err != nil {
		return 0, fmt.Errorf("client: %w", err)
	}
	tx, err := transaction.Sign(ctx, c.signer, transaction.Account{ChainID: s.NodeInfo.Network, Number: number,
		Sequence: sequence}, 0, msgs...)
	if err != nil {
		return 0, err
	}
	return c.simulate(ctx, tx)
}

// simulate is the gas that a transaction needs.
func (c *Client) simulate(ctx context.Context, tx []byte) (uint64, error) {
	r, err := c.rpc.ABCIQuery(ctx, "/app/simulate", tx)
	if err != nil {
		return 0, fmt.Errorf("client: %w", err)
	}
	if err := transaction.Refusal(r.Response.Codespace, r.Response.Code, r.Response.Log); err != nil {
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
