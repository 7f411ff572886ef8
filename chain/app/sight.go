package app

import (
	"slices"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/x/beacon/censorship"
)

// maxLooked is how many waiting moves are considered for one vote.
const maxLooked = 4 * censorship.MaxSightings

// sights returns the moves that the vote on a block reports: those that disputes in the state wait for.
func (a *App) sights(ctx sdk.Context, height int64) []censorship.Sighting {
	looked := censorship.Drawn(height, a.lane.Seen(height), maxLooked)
	return slices.DeleteFunc(looked, func(s censorship.Sighting) bool {
		account, err := keepersOf(a).training.Awaited(ctx, s)
		return err != nil || account == ""
	})
}

// read returns what a transaction declares: its only signer and sequence, and its gas limit.
func (a *App) read(transaction []byte) (signer string, sequence, gas uint64, ok bool) {
	d := a.declared(transaction)
	return d.Account, d.Sequence, d.Gas, d.Account != ""
}
