package app

import (
	"slices"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/x/beacon/censorship"
	"github.com/starling-network/starling/chain/x/training"
)

// maxLooked is how many moves that wait a vote looks at.
const maxLooked = 4 * censorship.MaxSightings

// look notes what a vote says of a transaction: the move of a dispute that it makes. One that is void at a time, or
// outside of its account's sequence, is not spoken of: a block may leave it out with reason.
func (w *waiting) look(ctx sdk.Context, k *training.Keeper, tx sdk.Tx) {
	if timed, ok := tx.(sdk.TxWithTimeoutTimeStamp); ok && !timed.GetTimeoutTimeStamp().IsZero() &&
		timed.GetTimeoutTimeStamp().Unix() != 0 {
		return
	}
	if loose, ok := tx.(sdk.TxWithUnordered); ok && loose.GetUnordered() || w.rank != 1 {
		return
	}
	if timed, ok := tx.(sdk.TxWithTimeoutHeight); ok {
		w.until = timed.GetTimeoutHeight()
	}
	if s, ok := k.Sighted(ctx, w.account, w.sequence, tx.GetMsgs()[0]); ok {
		w.sight = &s
	}
}

// seen are the moves of disputes that the next block after one of a height may have, each the next transaction of its
// account as far as the lane knows.
func (l *lane) seen(height int64) (all []censorship.Sighting) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for account := range l.duties {
		for _, w := range l.accounts[account] {
			if w.sight != nil && w.rank == 1 && w.sequence == l.accounts[account][0].sequence &&
				(w.until == 0 || w.until > uint64(height)) {
				all = append(all, *w.sight)
				break
			}
		}
	}
	return all
}

// sights are the moves that the vote on a block speaks of: those that the state waits for.
func (a *App) sights(ctx sdk.Context, height int64) []censorship.Sighting {
	looked := censorship.Drawn(height, a.lane.seen(height), maxLooked)
	return slices.DeleteFunc(looked, func(s censorship.Sighting) bool {
		account, err := a.keepers.training.Awaited(ctx, s)
		return err != nil || account == ""
	})
}

// read is what a transaction says of its only signer, and its limit of gas.
func (a *App) read(transaction []byte) (signer string, sequence, gas uint64, ok bool) {
	d := a.declared(transaction)
	return d.account, d.sequence, d.gas, d.account != ""
}
