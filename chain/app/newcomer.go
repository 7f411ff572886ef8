package app

import (
	"strings"

	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/app/room"
	"github.com/starling-network/starling/chain/x/registry/earners"
	"github.com/starling-network/starling/chain/x/registry/fleets"
	"github.com/starling-network/starling/chain/x/registry/registrypb"
)

// newcomer reports whether a transaction is one of the first FreeTransactions of an account with a role's stake and has
// only messages of this chain. It may also be the registration of the account, if the account has the coins of the
// stake, or a proof for a place among the workers that earn theirs; such a worker has one free transaction in a while
// after that. It may be the enrolment of a machine, too. An account with a few coins and no stake has no free
// transactions, however many such accounts one person holds.
func (f fees) newcomer(ctx sdk.Context, d room.Declared, msgs []sdk.Msg) bool {
	for _, m := range msgs {
		if !strings.HasPrefix(sdk.MsgTypeURL(m), "/starling.") {
			return false
		}
	}
	early := d.Sequence < FreeTransactions
	if d.Gas <= earners.SparedGas && f.keepers.registry.Earners.Spares(ctx, d.Account, early) {
		return true
	}
	if !early {
		return false
	}
	if _, enough := f.keepers.registry.Firm(ctx, d.Account); enough {
		return true
	}
	if m, ok := msgs[0].(*registrypb.MsgEnrol); ok {
		_, err := f.keepers.registry.Fleets.Early(ctx, m)
		return err == nil && d.Gas <= fleets.SparedGas && len(msgs) <= fleets.FreeMessages
	}
	first, ok := msgs[0].(*registrypb.MsgRegister)
	if ok && first.Earns {
		return d.Gas <= earners.SparedGas && len(msgs) <= earners.FreeMessages &&
			f.keepers.registry.Earners.Early(ctx, first) == nil // package arrival checks the rest once the signature is right
	}
	return ok && first.Stake >= f.keepers.registry.Least(ctx) && f.has(ctx, d.Account, first.Stake)
}

// has reports whether an account can spend an amount in uzen.
func (f fees) has(ctx sdk.Context, account string, amount uint64) bool {
	address, err := sdk.AccAddressFromBech32(account)
	if err != nil {
		return false
	}
	free := ctx.WithGasMeter(storetypes.NewInfiniteGasMeter())
	held := f.keepers.bank.SpendableCoins(free, address).AmountOf(adapter.Denom)
	return !held.IsUint64() || held.Uint64() >= amount
}

// outsider reports whether a transaction accuses a member of a run in which its account does not work, with coins or a
// stake for the bond, and whether the bond is already locked.
func (f fees) outsider(ctx sdk.Context, account string, msgs []sdk.Msg) (accuses, bonded bool) {
	if account == "" || len(msgs) != 1 || !f.keepers.training.Accuses(ctx, account, msgs[0]) {
		return false, false
	}
	stake, bonded := f.keepers.registry.Firm(ctx, account)
	return bonded || f.has(ctx, account, f.keepers.registry.Least(ctx)-stake), bonded
}
