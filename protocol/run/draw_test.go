package run

import (
	"fmt"
	"iter"
	"testing"

	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/work"
)

// network draws n0, n1, ... in turn, beginning with the number of the unit; n0 works for w0.
func network(n int) func(id work.UnitID) iter.Seq[crew.Member] {
	return func(id work.UnitID) iter.Seq[crew.Member] {
		return func(yield func(crew.Member) bool) {
			for i := range n {
				k := (i + int(id.Round+id.Unit+id.Attempt)) % n
				m := crew.Member{ID: fmt.Sprint("n", k), Role: crew.Verifier, Price: 7, Stake: 100}
				if k == 0 {
					m.Owner = "w0"
				}
				if !yield(m) {
					return
				}
			}
		}
	}
}

// The only verifier with a seat does not get the audits: they are drawn from the whole network, without the accounts
// of the worker's owner. A drawn verifier has no seat, and is paid its own price.
func TestAuditsGoToTheWholeNetwork(t *testing.T) {
	g := begin(t, long(), newMembers(3, 1))
	g.draw = network(3)
	g.toAudits()
	drawn := map[string]bool{}
	for i := range g.s.Terms.Units {
		u := g.unit(0, i)
		drawn[u.Verifier] = true
		if m, _ := g.s.Member(u.Verifier); !m.IsGuest() || m.Price != 7 || u.Worker == "w0" && u.Verifier == "n0" {
			t.Errorf("unit %d of %s is audited by %+v", i, u.Worker, m)
		}
		if !g.s.Liable(u.Verifier) {
			t.Errorf("%s owes nothing", u.Verifier)
		}
	}
	if len(drawn) < 2 || g.s.CountActive() != 4 {
		t.Errorf("drawn are %v, and %d members count", drawn, g.s.CountActive())
	}
	u := g.unit(0, 1)
	g.tick(int(u.Deadline-g.height) + 2)
	if after := g.unit(0, 1); after.Verifier == u.Verifier || after.Status != work.Auditing {
		t.Errorf("%s missed its audit, which is now with %s", u.Verifier, after.Verifier)
	}
	if m, _ := g.s.Member(u.Verifier); !m.IsGuest() {
		t.Errorf("a guest that missed an audit: %+v", m)
	}
}

// Some units that one verifier passed are audited by a second, of another owner, before they are accepted.
func TestSomeAuditsAreMadeTwice(t *testing.T) {
	terms := long()
	terms.Units, terms.Rounds, terms.Window = 64, 1, 1
	g := begin(t, terms, newMembers(3, 1))
	g.draw = network(8)
	g.toAudits()
	second, first := 0, []string(nil)
	for i := range terms.Units {
		u := g.unit(0, i)
		g.pass(u.Verifier, 0, u.Index)
		now := g.unit(0, u.Index)
		if now.FirstAttempt == "" {
			continue
		}
		second++
		first = append(first, now.FirstAttempt)
		if now.FirstAttempt != u.Verifier || now.Verifier == u.Verifier || now.Status != work.Auditing || now.Passed {
			t.Errorf("a second look at what %s passed: %+v", u.Verifier, now)
		}
		g.pass(now.Verifier, 0, u.Index)
		if now = g.unit(0, u.Index); now.Status != work.Accepted {
			t.Errorf("after a second look: %+v", now)
		}
	}
	if second < 2 || second > 24 {
		t.Errorf("%d of 64 units are looked at twice, by %v first", second, first)
	}
}

// A run that loses its only verifier with a seat continues with the verifiers of the network.
func TestNetworkReplacesTheLastVerifier(t *testing.T) {
	g := begin(t, long(), newMembers(3, 1))
	g.draw = network(3)
	g.toAudits()
	d := g.s.edit(g.env())
	d.Leave("v0", reason.MissedAudits)
	g.s, _ = d.finish()
	g.tick(1)
	if g.s.Phase == progress.Halted {
		t.Fatalf("the run is halted: %s", g.s.Why)
	}
	u := g.unit(0, 0)
	g.pass(u.Verifier, 0, 0)
	if u := g.unit(0, 0); u.Status != work.Accepted && u.FirstAttempt == "" {
		t.Errorf("after its audit: %+v", u)
	}
}

// A block without a beacon draws no verifier, since every account could foresee the draw: an audit that is due there
// waits for the next beacon.
func TestNothingIsDrawnWithoutABeacon(t *testing.T) {
	all := long()
	all.Units, all.Rounds, all.Window = 8, 1, 1
	g := begin(t, all, newMembers(3, 1))
	g.draw = network(8)
	g.toAudits()
	waits := func(unit uint32) {
		t.Helper()
		if u := g.unit(0, unit); u.Status != work.Committed || u.Verifier != "" || !u.Audited || u.Passed {
			t.Errorf("an audit is drawn without a beacon: %+v", u)
		}
	}
	accuser := g.unit(0, 0).Verifier
	for i := uint32(1); i < all.Units; i++ {
		g.seal(g.unit(0, i).Verifier, 0, i)
	}
	g.challenge(accuser, 0, 0)
	g.tick(2)
	g.dark = true
	g.openAll()
	g.verdict(0, 0, false)
	for i := range all.Units {
		waits(i)
	}
	g.tick(1)
	for i := range all.Units {
		waits(i)
	}
	g.dark = false
	g.tick(1)
	if u := g.unit(0, 0); u.Status != work.Auditing || u.Verifier == accuser || u.Verifier == "" {
		t.Errorf("with the next beacon the audit is not drawn: %+v", u)
	}
	for i := uint32(1); i < all.Units; i++ {
		if u := g.unit(0, i); u.Status != work.Auditing || u.Verifier == u.FirstAttempt || u.FirstAttempt == "" {
			t.Errorf("with the next beacon no second verifier is drawn: %+v", u)
		}
	}
}

// If the budget covers no audit beyond the debts, no verifier is drawn from the network at a higher price than that of
// the verifiers with a seat, and no unit is audited twice.
func TestNoAuditIsDrawnThatTheBudgetDoesNotCover(t *testing.T) {
	all := long()
	all.Units, all.Rounds, all.Window = 64, 1, 1
	members := newMembers(3, 2)
	for i := range members {
		members[i].Price = 6
	}
	g := begin(t, all, members)
	g.draw = network(8) // for 7
	asked := 0
	g.covers = func(_ uint32, price uint64) bool { asked++; return price < 1 }
	g.toAudits()
	for i := range all.Units {
		if u := g.unit(0, i); u.Verifier != "v0" && u.Verifier != "v1" {
			t.Errorf("unit %d is audited by %s", i, u.Verifier)
		}
	}
	var counted []uint64
	g.covers = func(_ uint32, price uint64) bool {
		counted = append(counted, price)
		return price == 6
	}
	for i := range all.Units {
		g.pass(g.unit(0, i).Verifier, 0, i)
		if u := g.unit(0, i); u.Status != work.Accepted || u.FirstAttempt != "" {
			t.Errorf("unit %d is looked at twice", i)
		}
	}
	// what is passed in the transition is to be paid, too
	if asked < 64 || len(counted) < 4 || counted[0] != 6 || counted[1] != 1 {
		t.Errorf("the budget is asked %d times, and then for %v", asked, counted)
	}
}

// fleets draws machines of owners in turn, most of them of the owner "o".
func fleets(id work.UnitID) iter.Seq[crew.Member] {
	return func(yield func(crew.Member) bool) {
		for i := range 24 {
			k := (i + int(id.Unit+id.Attempt)) % 24
			m := crew.Member{ID: fmt.Sprint("f", k), Role: crew.Verifier, Price: 7, Stake: 100, Owner: "o"}
			if k%8 == 7 {
				m.Owner = fmt.Sprint("p", k)
			}
			if !yield(m) {
				return
			}
		}
	}
}

// No machine of an owner audits a unit that another of its machines computed, nor looks a second time at one that
// another of them passed, however many it has.
func TestAFleetAuditsNoneOfItsUnits(t *testing.T) {
	terms := long()
	terms.Units, terms.Rounds, terms.Window = 64, 1, 1
	members := newMembers(4, 1)
	members[0].Owner, members[1].Owner = "o", "o"
	g := begin(t, terms, members)
	g.draw = fleets
	g.toAudits()
	owner := func(id string) string { m, _ := g.s.Member(id); return m.OwnerID() }
	own, again := 0, 0
	for i := range terms.Units {
		u := g.unit(0, i)
		if owner(u.Worker) == "o" {
			own++
		}
		if owner(u.Worker) == owner(u.Verifier) {
			t.Errorf("unit %d of %s is audited by %s, both of %s", i, u.Worker, u.Verifier, owner(u.Worker))
		}
		g.pass(u.Verifier, 0, u.Index)
		if now := g.unit(0, u.Index); now.FirstAttempt != "" {
			again++
			if owner(now.Verifier) == owner(now.FirstAttempt) || owner(now.Verifier) == owner(now.Worker) {
				t.Errorf("unit %d of %s, which %s passed, goes to %s", i, now.Worker, now.FirstAttempt, now.Verifier)
			}
		}
	}
	if own == 0 || again == 0 {
		t.Errorf("%d units of the fleet, %d second looks", own, again)
	}
}
