// Package account gives accounts numbers that every wallet can read. The SDK implements the rest of accounts.
package account

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"cosmossdk.io/collections"
	sdk "github.com/cosmos/cosmos-sdk/types"
	authkeeper "github.com/cosmos/cosmos-sdk/x/auth/keeper"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"

	"github.com/starling-network/starling/canon"
)

// safeNumber is the first account number that wallets in JavaScript cannot read: a double represents integers of 53
// bits exactly.
const safeNumber = 1 << 53

// derivedFrom is the first of the numbers that follow from an address: those of accounts that begin with a transaction
// of their own, whose signature names the number before the account exists. Other numbers are below it.
const derivedFrom = 1 << 52

// Derived is the number of an account that begins with its own transaction.
func Derived(address sdk.AccAddress) uint64 {
	d := canon.Sum("starling/account/1", address)
	return derivedFrom + binary.BigEndian.Uint64(d[:8])%(safeNumber-derivedFrom)
}

// Begin stores the account of an address which has none, under its derived number. It fails if another account has that
// number.
func (k Keeper) Begin(ctx context.Context, address sdk.AccAddress) error {
	number := Derived(address)
	taken, err := k.taken(ctx, number)
	if err == nil && taken {
		err = fmt.Errorf("account: another account has the number %d of %s: send it coins first", number, address)
	}
	if err != nil {
		return err
	}
	a := authtypes.NewBaseAccountWithAddress(address)
	if err := a.SetAccountNumber(number); err != nil {
		return err
	}
	return k.Accounts.Set(ctx, address, a)
}

// Keeper stores the accounts of the SDK and numbers them consecutively. The SDK draws numbers with the highest of 64
// bits set, so that it can execute transactions in parallel. This chain executes them in order, and consecutive numbers
// are unique and small enough for wallets.
type Keeper struct{ authkeeper.AccountKeeper }

// NextAccountNumber is the lowest unused number above the last one given.
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

// taken reports whether an account has a number.
func (k Keeper) taken(ctx context.Context, number uint64) (bool, error) {
	_, err := k.Accounts.Indexes.Number.MatchExact(ctx, number)
	if errors.Is(err, collections.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// NewAccount gives an account its number. It does not store the account.
func (k Keeper) NewAccount(ctx context.Context, a sdk.AccountI) sdk.AccountI {
	if err := a.SetAccountNumber(k.NextAccountNumber(ctx, a)); err != nil {
		panic(err)
	}
	return a
}

// NewAccountWithAddress returns a new account of an address. It does not store the account.
func (k Keeper) NewAccountWithAddress(ctx context.Context, address sdk.AccAddress) sdk.AccountI {
	a := authtypes.ProtoBaseAccount()
	if err := a.SetAddress(address); err != nil {
		panic(err)
	}
	return k.NewAccount(ctx, a)
}

// GetModuleAccountAndPermissions returns the account of a module and makes it if necessary; nil if there is no such
// module.
func (k Keeper) GetModuleAccountAndPermissions(ctx context.Context, module string) (sdk.ModuleAccountI, []string) {
	address, permissions := k.GetModuleAddressAndPermissions(module)
	if address != nil && !k.HasAccount(ctx, address) {
		k.SetAccount(ctx, k.NewAccount(ctx, authtypes.NewEmptyModuleAccount(module, permissions...)))
	}
	return k.AccountKeeper.GetModuleAccountAndPermissions(ctx, module)
}

// GetModuleAccount returns the account of a module and makes it if necessary; nil if there is no such module.
func (k Keeper) GetModuleAccount(ctx context.Context, module string) sdk.ModuleAccountI {
	a, _ := k.GetModuleAccountAndPermissions(ctx, module)
	return a
}

// Renumber gives new numbers to accounts of the genesis whose numbers are too large for wallets. New accounts continue
// above all of them.
func (k Keeper) Renumber(ctx context.Context) error {
	var large []sdk.AccountI
	next := uint64(0)
	err := k.Accounts.Walk(ctx, nil, func(_ sdk.AccAddress, a sdk.AccountI) (bool, error) {
		if n := a.GetAccountNumber(); n >= safeNumber {
			large = append(large, a)
		} else if n < derivedFrom {
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
