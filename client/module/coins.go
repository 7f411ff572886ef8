package module

import (
	"context"
	"fmt"

	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/client/query"
	"github.com/starling-network/starling/client/transaction"
	"github.com/starling-network/starling/protocol/coin"
)

// Coins sends the messages and the queries of the bank of the chain.
type Coins struct{ account Account }

// Balance of an account, in uzen.
func (c Coins) Balance(ctx context.Context, address string) (uint64, error) {
	r, err := banktypes.NewQueryClient(c.account).Balance(ctx,
		&banktypes.QueryBalanceRequest{Address: address, Denom: adapter.Denom})
	if err != nil {
		return 0, query.Known(err)
	}
	if !r.Balance.Amount.IsUint64() {
		return 0, fmt.Errorf("client: a balance of %s", r.Balance.Amount)
	}
	return r.Balance.Amount.Uint64(), nil
}

// Holds is the balance of an account in a coin of orders, in whole grains.
func (c Coins) Holds(ctx context.Context, address string, in coin.Coin) (uint64, error) {
	if in.Own() {
		return c.Balance(ctx, address)
	}
	r, err := banktypes.NewQueryClient(c.account).Balance(ctx,
		&banktypes.QueryBalanceRequest{Address: address, Denom: in.Denom})
	if err != nil {
		return 0, query.Known(err)
	}
	grains, _ := in.Grains(r.Balance.Amount.BigInt())
	return grains, nil
}

// Send moves grains of a coin of the account to another one, which exists from then on. The memo is a public note, such
// as the number that an exchange asks for; it may be empty.
func (c Coins) Send(ctx context.Context, to string, in coin.Coin, grains uint64,
	memo string) (transaction.Result, error) {
	m := &banktypes.MsgSend{FromAddress: c.account.Address(), ToAddress: to, Amount: adapter.CoinsOf(in, grains)}
	return c.account.SubmitNoted(ctx, memo, m)
}

// Transactions is how many transactions an account has made, or ErrNotFound: an account exists once it has coins.
func (c Coins) Transactions(ctx context.Context, address string) (uint64, error) {
	_, sequence, err := c.Sequence(ctx, address)
	return sequence, err
}

// Sequence is the number that the chain gave an account, and how many transactions the account has made; or
// ErrNotFound.
func (c Coins) Sequence(ctx context.Context, address string) (number, sequence uint64, err error) {
	r, err := authtypes.NewQueryClient(c.account).AccountInfo(ctx, &authtypes.QueryAccountInfoRequest{Address: address})
	if err != nil {
		return 0, 0, query.Known(err)
	}
	return r.Info.AccountNumber, r.Info.Sequence, nil
}
