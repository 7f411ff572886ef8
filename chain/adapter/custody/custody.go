// Package custody keeps coins of accounts in the account of a module, until the rules of the module say whose they are:
// prices, bonds, prizes. It keeps no books: each module accounts for its coins by its own state.
package custody

import (
	"context"
	"errors"
	"fmt"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/protocol/coin"
)

// ErrFunds is returned where an account does not have the coins that it is to lock.
var ErrFunds = errors.New("custody: the account cannot pay")

// Bank moves coins.
type Bank interface {
	SendCoinsFromAccountToModule(ctx context.Context, from sdk.AccAddress, module string, amount sdk.Coins) error
	SendCoinsFromModuleToAccount(ctx context.Context, module string, to sdk.AccAddress, amount sdk.Coins) error
}

// Pool is the community pool.
type Pool interface {
	FundCommunityPool(ctx context.Context, amount sdk.Coins, from sdk.AccAddress) error
}

// Coins are the coins of the network, by their denominations.
type Coins interface {
	Find(ctx context.Context, denom string) (coin.Registered, error)
	Open(ctx context.Context, denom string) (coin.Registered, error) // one in which new work may be paid
}

// Custody is the account of a module.
type Custody struct {
	Module  string
	Account sdk.AccAddress
	Bank    Bank
	Pool    Pool
	Coins   Coins
}

// Lock takes grains of a coin from an account. The error wraps ErrFunds if it does not have them.
func (c Custody) Lock(ctx context.Context, from, denom string, grains uint64) error {
	if grains == 0 {
		return nil
	}
	amount, err := c.amount(ctx, denom, grains)
	if err != nil {
		return err
	}
	account, err := sdk.AccAddressFromBech32(from)
	if err != nil {
		return err
	}
	if err := c.Bank.SendCoinsFromAccountToModule(ctx, account, c.Module, amount); err != nil {
		return fmt.Errorf("%w: %w", ErrFunds, err)
	}
	return nil
}

// Pay pays grains of a coin to an account; "": to the community pool.
func (c Custody) Pay(ctx context.Context, denom, to string, grains uint64) error {
	if grains == 0 {
		return nil
	}
	amount, err := c.amount(ctx, denom, grains)
	if err != nil {
		return err
	}
	if to == "" {
		return c.Pool.FundCommunityPool(ctx, amount, c.Account)
	}
	account, err := sdk.AccAddressFromBech32(to)
	if err != nil {
		return err
	}
	return c.Bank.SendCoinsFromModuleToAccount(ctx, c.Module, account, amount)
}

func (c Custody) amount(ctx context.Context, denom string, grains uint64) (sdk.Coins, error) {
	of, err := c.Coins.Find(ctx, denom)
	return adapter.CoinsOf(of.Coin, grains), err
}
