package reward

import (
	"fmt"
	"slices"
	"testing"

	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/reward/penalty"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/terms"
)

// tolerantJob is an order of tolerant work.
func tolerantJob(id string, units, rounds, verifiers, auditPPM uint32) market.Order {
	o := job(id, units, rounds, verifiers, auditPPM)
	o.Budget = 1_000_000_000
	o.Terms.Tolerance = terms.Tolerance{DistancePPM: 100_000, CosinePPM: 990_000}
	return o
}

// A forfeited deposit is taken from the stake, bounded by it, and all of it goes to the community pool. It bars no
// account, and a deposit that is returned moves no coins; a verifier that reported falsely is slashed like a convicted
// one.
func TestDepositOfTolerantWork(t *testing.T) {
	o := tolerantJob("deposit", 2, 2, 2, 500_000)
	s, err := run.New(o.Terms, []crew.Member{{ID: "w", Role: crew.Worker, Price: 1001},
		{ID: "v", Role: crew.Verifier, Price: 1}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	want := audit.Deposit(3003, 500_000)
	for _, stake := range []uint64{1_000_000, 100} {
		book := SettlementInput{Consumer: "c", Penalty: penalty.Default(), Stake: func(string) uint64 { return stake }}
		got := Settle(s, []event.Event{{Kind: event.DepositForfeited, Who: "w", Why: reason.Outside}}, book)
		amount := min(stake, want)
		if !slices.Equal(got.Transfers, []Transfer{{From: Stake("w"), To: CommunityPool, Amount: amount}}) {
			t.Errorf("%+v, want %d", got.Transfers, amount)
		}
		if r := got.Receipts[0]; r.Kind != Slash || r.Reason != DepositForfeited || r.Jails() || r.Amount != amount ||
			r.Fix == "" {
			t.Errorf("%+v", r)
		}
		got = Settle(s, []event.Event{{Kind: event.DepositReturned, Who: "w", Why: reason.FalseReport}}, book)
		if r := got.Receipts[0]; len(got.Transfers) > 0 || r.Kind != Deposit || r.Reason != DepositReturned ||
			Explain(r) == "" {
			t.Errorf("%+v", got)
		}
		got = Settle(s, []event.Event{{Kind: event.AuditBroken, Who: "v", Other: "w", Why: reason.FalseReport}}, book)
		if r := got.Receipts[0]; !r.Jails() || r.Reason != FalseReport || r.Amount == 0 {
			t.Errorf("%+v", r)
		}
	}
	if v := o.Value(crew.Worker, 1001); v != want {
		t.Errorf("a seat needs a stake for %d, a unit has a deposit of %d", v, want)
	}
}

// The gain of a tolerant faker when the rules are played, over the pay of its faked units without audits, is below
// zero on average: whether it fakes all or some units, at once or after honest rounds, hides the audited ones, and
// owns a quarter of the verifiers.
func TestNoStrategyOfATolerantFakerGainsWhenPlayed(t *testing.T) {
	strategies := map[string]party{
		"all at once":           {fakes: func(uint32) bool { return true }},
		"after honest rounds":   {fakes: func(uint32) bool { return true }, from: 2},
		"every other unit":      {fakes: func(u uint32) bool { return u%2 == 0 }, from: 1},
		"one of all, and hides": {fakes: func(u uint32) bool { return u == 0 }, withhold: true},
	}
	plays := 200
	if !*long {
		plays = 30
	}
	for name, p := range strategies {
		gain, faked := int64(0), 0
		for i := range plays {
			parties := []party{worker("w0", p), worker("w1", party{}), worker("w2", party{})}
			for k := range 8 {
				v := party{}
				if k < 2 {
					v.shields = "w0"
				}
				parties = append(parties, verifier(fmt.Sprint("v", k), v))
			}
			w := enact(t, tolerantJob(fmt.Sprint(name, i), 6, 4, 8, 500_000), parties)
			for _, r := range w.receipts {
				fake := r.Kind == Work && r.Round >= p.from && p.fakes(r.Unit) && r.Who == "w0"
				switch {
				case fake && r.Amount > 0:
					gain += int64(r.Amount + r.Fee)
					faked++
				case r.Who == "w0" && r.Kind == Slash:
					gain -= int64(r.Amount)
				}
			}
		}
		t.Logf("%s: %d faked units are paid in %d runs, a faker gains %d uzen in each, a unit is paid 3003", name, faked,
			plays, gain/int64(plays))
		if gain >= 0 {
			t.Errorf("%s: a faker gains %d uzen in %d runs", name, gain, plays)
		}
	}
}
