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

// Look notes what a vote says of a transaction: the move of a dispute that it makes. One that is void at a time, or
// outside of its account's sequence, is not spoken of: a block may leave it out with reason.
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

// Seen are the moves of disputes that the next block after one of a height may have, each the next transaction of its
// account as far as the lane knows.
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
