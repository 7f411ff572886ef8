package app

import (
	"slices"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/x/beacon/censorship"
)

// maxLooked is how many moves that wait a vote looks at.
const maxLooked = 4 * censorship.MaxSightings

// sights are the moves that the vote on a block speaks of: those that the state waits for.
func (a *App) sights(ctx sdk.Context, height int64) []censorship.Sighting {
	looked := censorship.Drawn(height, a.lane.Seen(height), maxLooked)
	return slices.DeleteFunc(looked, func(s censorship.Sighting) bool {
		account, err := a.keepers.training.Awaited(ctx, s)
		return err != nil || account == ""
	})
}

// read is what a transaction says of its only signer, and its limit of gas.
func (a *App) read(transaction []byte) (signer string, sequence, gas uint64, ok bool) {
	d := a.declared(transaction)
	return d.Account, d.Sequence, d.Gas, d.Account != ""
}
