// Package account numbers accounts so that every wallet can read their numbers. All else about accounts is the SDK's.
package account

import (
	"context"
	"errors"

	"cosmossdk.io/collections"
	sdk "github.com/cosmos/cosmos-sdk/types"
	authkeeper "github.com/cosmos/cosmos-sdk/x/auth/keeper"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"
)

// safeNumber is the first account number that wallets in JavaScript cannot read: a double has 53 bits for whole
// numbers.
const safeNumber = 1 << 53

// Keeper keeps the accounts of the SDK, numbered one after the other. The SDK itself draws numbers with the highest of
// 64 bits set, so that blocks may be executed in parallel; here they are executed in order, wallets read the small
// ones, and no two accounts can draw the same number.
type Keeper struct{ authkeeper.AccountKeeper }

// NextAccountNumber is the lowest number above those given before that no account of the genesis has.
func (k Keeper) NextAccountNumber(ctx context.Context, _ sdk.AccountI) uint64 {
	for {
		number, err := k.AccountNumber.Next(ctx) //nolint:staticcheck // what the SDK uses instead is too large for wallets
		if err != nil {
			panic(err)
		}
		taken, err := k.taken(ctx, number)
		if err != nil {
			panic(err)
		}
		if !taken {
			return number
		}
	}
}

// taken says whether an account has a number.
func (k Keeper) taken(ctx context.Context, number uint64) (bool, error) {
	_, err := k.Accounts.Indexes.Number.MatchExact(ctx, number)
	if errors.Is(err, collections.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// NewAccount gives an account its number. It is not stored.
func (k Keeper) NewAccount(ctx context.Context, a sdk.AccountI) sdk.AccountI {
	if err := a.SetAccountNumber(k.NextAccountNumber(ctx, a)); err != nil {
		panic(err)
	}
	return a
}

// NewAccountWithAddress is a new account of an address. It is not stored.
func (k Keeper) NewAccountWithAddress(ctx context.Context, address sdk.AccAddress) sdk.AccountI {
	a := authtypes.ProtoBaseAccount()
	if err := a.SetAddress(address); err != nil {
		panic(err)
	}
	return k.NewAccount(ctx, a)
}

// GetModuleAccountAndPermissions is the account of a module, which is made when it is first asked for, or nil.
func (k Keeper) GetModuleAccountAndPermissions(ctx context.Context, module string) (sdk.ModuleAccountI, []string) {
	address, permissions := k.GetModuleAddressAndPermissions(module)
	if address != nil && !k.HasAccount(ctx, address) {
		k.SetAccount(ctx, k.NewAccount(ctx, authtypes.NewEmptyModuleAccount(module, permissions...)))
	}
	return k.AccountKeeper.GetModuleAccountAndPermissions(ctx, module)
}

// GetModuleAccount is the account of a module, which is made when it is first asked for, or nil.
func (k Keeper) GetModuleAccount(ctx context.Context, module string) sdk.ModuleAccountI {
	a, _ := k.GetModuleAccountAndPermissions(ctx, module)
	return a
}

// Renumber gives accounts of the genesis that have numbers of the SDK others, and lets new ones go on above all of
// them.
func (k Keeper) Renumber(ctx context.Context) error {
	var large []sdk.AccountI
	next := uint64(0)
	err := k.Accounts.Walk(ctx, nil, func(_ sdk.AccAddress, a sdk.AccountI) (bool, error) {
		if n := a.GetAccountNumber(); n >= safeNumber {
			large = append(large, a)
		} else {
			next = max(next, n+1)
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	if err := k.AccountNumber.Set(ctx, next); err != nil { //nolint:staticcheck // as above
		return err
	}
	for _, a := range large { // in the order of their addresses
		if err := k.Accounts.Set(ctx, a.GetAddress(), k.NewAccount(ctx, a)); err != nil {
			return err
		}
	}
	return nil
}
