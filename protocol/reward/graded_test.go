package reward

import (
	"testing"

	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/reward/penalty"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/terms"
)

// The ledger knows whether a conviction is the first, for as long as the penalty remembers, and the receipt says how
// much of which stake was taken.
func TestConvictionsAreRemembered(t *testing.T) {
	s := run.State{
		Progress: progress.Progress{
			Crew: crew.Crew{
				Terms: terms.Terms{Job: "job", Units: 1, UnitFlops: 1_000_000, AuditPPM: 100_000, Segments: 1},
				Members: []crew.Member{
					{ID: "liar", Role: crew.Worker, Price: 1_000_000_000, Why: reason.Verdict}, {ID: "vera", Role: crew.Verifier},
				},
			},
		},
	}
	verdict := []event.Event{{Kind: event.DisputeEnded, Who: "vera", Other: "liar", Why: reason.WrongWork}}
	for _, c := range []struct{ last, height, want int64 }{
		{0, 100, 10_000_000}, {1, 100, 50_000_000}, {1, penalty.DefaultMemoryBlocks + 1, 50_000_000},
		{1, penalty.DefaultMemoryBlocks + 2, 10_000_000},
	} {
		settled := Settle(s, verdict, SettlementInput{
			Escrow: market.Escrow{Budget: 1000}, Penalty: penalty.Default(), Height: c.height,
			Stake:     func(string) uint64 { return 100_000_000 },
			Convicted: func(string) int64 { return c.last }, Least: registry.DefaultParams().MinStake,
		})
		var out uint64
		for _, tr := range settled.Transfers {
			if tr.From == Stake("liar") {
				out += tr.Amount
			}
		}
		i := 0
		for settled.Receipts[i].Kind != Slash {
			i++
		}
		if r := settled.Receipts[i]; out != uint64(c.want) || r.Amount != out || r.Part != out || r.Whole != 100_000_000 ||
			!r.Jails() {
			t.Errorf("convicted at %d and at %d: takes %d: %+v", c.last, c.height, out, r)
		}
	}
}
