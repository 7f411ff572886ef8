// Package turn is the price of a message that ends or undoes a round. What any other message changes costs what the
// store asks for it.
package turn

import (
	"context"
	"slices"

	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/protocol/run/event"
)

// What a message pays for what it changes is what the store asks for writing it. What ends or undoes a round changes as
// much as the round has units, and would be paid by whose message happens to do it: that message pays Gas, and each
// commitment before paid UnitGas, once, for what its unit costs then.
const (
	Gas     = 150_000
	UnitGas = 20_000 // a line of the lineage, what the next round begins with, and to be moved to those rolled back
)

// many is how many events are of no single unit.
const many = 16

// turns reports whether events change more than a unit and its members.
func turns(events []event.Event) bool {
	return len(events) > many || slices.ContainsFunc(events, func(e event.Event) bool {
		switch e.Kind {
		case event.RoundAttested, event.RoundFinal, event.RoundDropped, event.RoundRestored, event.RolledBack,
			event.CheckpointRefuted, event.MemberLeft, event.RunDone, event.RunHalted:
			return true
		}
		return false
	})
}

// Charged is the context in which the consequences of events are stored, after their price was paid if they turn a run.
func Charged(ctx context.Context, events []event.Event) context.Context {
	if !turns(events) {
		return ctx
	}
	c := sdk.UnwrapSDKContext(ctx)
	c.GasMeter().ConsumeGas(Gas, "a round that ends or is undone")
	return c.WithGasMeter(storetypes.NewInfiniteGasMeter())
}
