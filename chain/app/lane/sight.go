package lane

import (
	"context"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/x/beacon/censorship"
)

// Sighter knows which messages are moves that disputes wait for.
type Sighter interface {
	Sighted(ctx context.Context, account string, sequence uint64, m sdk.Msg) (censorship.Sighting, bool)
}

// Look records which move of a dispute a transaction makes, as a vote reports it. It records nothing for a transaction
// with a timeout timestamp or without a sequence: a block may leave such a transaction out for a valid reason.
func (w *Waiting) Look(ctx sdk.Context, k Sighter, tx sdk.Tx) {
	if timed, ok := tx.(sdk.TxWithTimeoutTimeStamp); ok && !timed.GetTimeoutTimeStamp().IsZero() &&
		timed.GetTimeoutTimeStamp().Unix() != 0 {
		return
	}
	if loose, ok := tx.(sdk.TxWithUnordered); ok && loose.GetUnordered() || w.Rank != 1 {
		return
	}
	if timed, ok := tx.(sdk.TxWithTimeoutHeight); ok {
		w.until = timed.GetTimeoutHeight()
	}
	if s, ok := k.Sighted(ctx, w.Account, w.Sequence, tx.GetMsgs()[0]); ok {
		w.sight = &s
	}
}

// Seen returns the moves of disputes that the block after the given height may contain. Each is the next transaction of
// its account, as far as the lane knows.
func (l *Lane) Seen(height int64) (all []censorship.Sighting) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for account := range l.duties {
		for _, w := range l.accounts[account] {
			if w.sight != nil && w.Rank == 1 && w.Sequence == l.accounts[account][0].Sequence &&
				(w.until == 0 || w.until > uint64(height)) {
				all = append(all, *w.sight)
				break
			}
		}
	}
	return all
}
