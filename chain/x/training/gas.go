package training

import (
	"context"
	"slices"

	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/protocol/run"
)

// What a message pays for what it changes is what the store asks for writing it. What ends or undoes a round changes as
// much as the round has units, and would be paid by whose message happens to do it: that message pays gasTurn, and each
// commitment before paid gasUnit, once, for what its unit costs then.
const (
	gasTurn = 150_000
	gasUnit = 20_000 // a line of the lineage, what the next round begins with, and to be moved to those rolled back
)

// many is how many events are of no single unit.
const many = 16

// turns reports whether events change more than a unit and its members.
func turns(events []run.Event) bool {
	return len(events) > many || slices.ContainsFunc(events, func(e run.Event) bool {
		switch e.Kind {
		case run.RoundAttested, run.RoundFinal, run.RoundDropped, run.RoundRestored, run.RolledBack, run.CheckpointRefuted,
			run.MemberLeft, run.RunDone, run.RunHalted:
			return true
		}
		return false
	})
}

// charged is the context in which the consequences of events are stored, after their price was paid if they turn a run.
func charged(ctx context.Context, events []run.Event) context.Context {
	if !turns(events) {
		return ctx
	}
	c := sdk.UnwrapSDKContext(ctx)
	c.GasMeter().ConsumeGas(gasTurn, "a round that ends or is undone")
	return c.WithGasMeter(storetypes.NewInfiniteGasMeter())
}
