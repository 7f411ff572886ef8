package reward

import (
	"fmt"
	"testing"

	"github.com/starling-network/starling/protocol/market/cost"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
)

// Accounts of one owner lie one after the other, each in a later round and each found late, so that the rounds after
// it are rolled back. Whether or not the lie has an effect, and whether or not rounds carry a state: the budget pays
// each unit of the job and its audit once, honest members are paid for all that they committed, and the owner loses.
func TestRollbackIsNoPump(t *testing.T) {
	const liars, rounds, units = 6, 14, 4
	for name, lie := range map[string]func(from uint32) party{
		"with effect":    func(from uint32) party { return party{lies: true, from: from} },
		"without effect": func(from uint32) party { return party{middle: true, from: from} },
	} {
		for _, carry := range []uint32{0, 7} {
			t.Run(fmt.Sprint(name, carry), func(t *testing.T) {
				order := job("pump", units, rounds, 2, 1_000_000)
				order.Terms.Carry, order.Terms.Window = carry, 8
				parties := []party{worker("ann", party{}), worker("bob", party{}), verifier("vic", party{pace: 14}),
					verifier("wim", party{pace: 11})}
				for i := range uint32(liars) {
					parties = append(parties, worker(fmt.Sprint("liz", i), lie(2*i)))
				}
				w := enact(t, order, parties)
				if w.s.Phase != progress.Done {
					t.Fatalf("the run ends as %s: %s", w.s.Phase, w.s.Why)
				}
				var budget, audits, convictions, rolled uint64
				friends := map[string]bool{"vic": true, "wim": true}
				for i := range liars {
					friends[fmt.Sprint("liz", i)] = true
				}
				var gained int64
				for _, r := range w.receipts {
					switch {
					case r.Kind == Work && r.Payer == "":
						budget += r.Amount + r.Fee
					case r.Kind == Audit && r.Payer == "":
						audits += r.Amount + r.Fee
					case r.Kind == Slash && r.Jails():
						convictions++
					}
					switch {
					case r.Kind == Slash:
						gained -= int64(r.Amount)
					case r.Kind == Bounty || friends[r.Who] && r.Kind == Work:
						gained += int64(r.Amount)
					}
				}
				for _, e := range w.events {
					if e.Kind == event.RolledBack {
						rolled++
					}
				}
				unit, _ := cost.Of(order.Terms.UnitFlops, 1001)
				if convictions < 2 || rolled < 2 {
					t.Fatalf("%d convictions and %d rollbacks: nothing is pumped", convictions, rolled)
				}
				if budget > unit*units*rounds {
					t.Errorf("the budget pays %d for work that costs %d", budget, unit*units*rounds)
				}
				if look, _ := cost.Of(order.Terms.UnitFlops, 999); audits > look*units*rounds {
					t.Errorf("the budget pays %d for audits that cost %d", audits, look*units*rounds)
				}
				if gained >= 0 {
					t.Errorf("the owner of the liars gains %d by %d convictions", gained, convictions)
				}
			})
		}
	}
}

// When a unit is taken from its worker, the unit that its carried state is from is audited again, for the same price.
// A worker that is late on purpose can cause that repeatedly: the budget pays for it only as far as it covers all
// debts.
func TestAuditsAgainTakeNothingOfWhatIsOwed(t *testing.T) {
	for _, spare := range []uint64{0, 5_000, 1_000_000} {
		order := job("again", 4, 12, 2, 1_000_000)
		order.Terms.Carry, order.Terms.Window = 4, 8
		_, order.Budget = cost.Quote(order.Terms, 1001, 2)
		order.Budget += spare
		late := party{lazy: func(round uint32) bool { return round%2 == 1 }}
		w := enact(t, order, []party{worker("ann", party{}), worker("bob", party{}), worker("leo", late),
			worker("lou", late), verifier("vic", party{}), verifier("wim", party{})})
		audits := map[[2]uint32]int{}
		again := 0
		for _, r := range w.receipts {
			if (r.Kind == Work || r.Kind == Audit) && r.Reason == BudgetExhausted {
				t.Errorf("%d to spare: %s is not paid: %+v", spare, r.Who, r)
			}
			if at := [2]uint32{r.Round, r.Unit}; r.Kind == Audit && r.Amount > 0 {
				if audits[at]++; audits[at] > 1 {
					again++
				}
			}
		}
		if w.s.Phase != progress.Done {
			t.Errorf("%d to spare: the run ends as %s: %s", spare, w.s.Phase, w.s.Why)
		}
		if spare > 100_000 && again == 0 {
			t.Error("nothing is audited again")
		}
	}
}
