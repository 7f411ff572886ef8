// Package turn sets the gas of a message that ends or undoes a round. Every other message pays the store's gas for what
// it changes.
package turn

import (
	"context"
	"slices"

	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/protocol/run/event"
)

// A message that ends or undoes a round changes all units of the round. Its sender did not cause most of these writes,
// so the message pays the fixed amount Gas for them, and each commitment has paid UnitGas for the later writes about
// its unit.
const (
	Gas     = 150_000
	UnitGas = 20_000 // a lineage entry, the start of the next round, and a move to the rounds that were rolled back
)

// many is more events than a message about a single unit has.
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

// Charged returns the context in which the consequences of events are stored. If the events end or undo a round, it
// consumes Gas, and the returned context has no gas limit.
func Charged(ctx context.Context, events []event.Event) context.Context {
	if !turns(events) {
		return ctx
	}
	c := sdk.UnwrapSDKContext(ctx)
	c.GasMeter().ConsumeGas(Gas, "a round that ends or is undone")
	return c.WithGasMeter(storetypes.NewInfiniteGasMeter())
}
