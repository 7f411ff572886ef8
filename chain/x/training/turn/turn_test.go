package turn

import (
	"context"
	"testing"

	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/protocol/run/event"
)

// A message that ends or undoes a round has one price, whatever it stores. A message about a unit pays for what it
// stores. A message whose gas limit is too low stores nothing.
func TestATurnHasAPrice(t *testing.T) {
	ctx := sdk.Context{}
	stores := func(limit uint64, events ...event.Event) (used uint64, short bool) {
		meter := storetypes.NewGasMeter(limit)
		defer func() {
			_, short = recover().(storetypes.ErrorOutOfGas)
			used = meter.GasConsumedToLimit()
		}()
		var c context.Context = Charged(ctx.WithGasMeter(meter), events)
		sdk.UnwrapSDKContext(c).GasMeter().ConsumeGas(5_000_000, "what is stored")
		return
	}
	for what, events := range map[string][]event.Event{
		"an attestation": {{Kind: event.RoundAttested}},
		"a verdict":      {{Kind: event.DisputeEnded}, {Kind: event.RolledBack}},
		"many units":     make([]event.Event, many+1),
	} {
		if used, short := stores(200_000, events...); used != Gas || short {
			t.Errorf("%s takes %d, short: %t", what, used, short)
		}
		if _, short := stores(Gas-1, events...); !short {
			t.Errorf("%s is stored with too low a limit", what)
		}
	}
	if used, short := stores(10_000_000, event.Event{Kind: event.UnitCommitted}); used != 5_000_000 || short {
		t.Errorf("a commitment takes %d, short: %t", used, short)
	}
}
