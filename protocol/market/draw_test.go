package market

import (
	"fmt"
	"math"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/market/cost"
	"github.com/starling-network/starling/protocol/run/crew"
)

// staked is an offer with a stake in ZEN.
func staked(id string, role crew.Role, price, zen uint64) Listing {
	return Listing{Offer: Offer{ID: id, Role: role, Price: price, Slots: 1},
		Profile: Profile{Domain: id, Owner: id, Stake: zen * 1_000_000, Cover: math.MaxUint64}}
}

func beacons(n int) canon.Digest { return canon.Sum("beacon", []byte(fmt.Sprint(n))) }

// Four workers and a verifier of 1 ZEN each ask 1 uzen where all others ask the cap. They have a twenty-fifth of all
// stake, and get that part of the seats, not all of them.
func TestThePairAtTheLowestPriceGetsSeatsByItsStakeOnly(t *testing.T) {
	o := order()
	o.Workers, o.Verifiers, o.Budget = Workers{4, 4, 4}, 2, 1<<40
	var lots []Listing
	for i := range 16 {
		lots = append(lots, staked(fmt.Sprint("w", i), crew.Worker, o.PriceCap, 6),
			staked(fmt.Sprint("v", i), crew.Verifier, o.PriceCap, 6))
	}
	for i := range 4 {
		lots = append(lots, staked(fmt.Sprint("bad-w", i), crew.Worker, 1, 1))
	}
	lots = append(lots, staked("bad-v", crew.Verifier, 1, 4))
	const draws = 4000
	seats, all := map[crew.Role]int{}, 0
	for i := range draws {
		lease, why := NewBook(lots, beacons(i)).Match(o)
		if why != Matched {
			t.Fatal(why)
		}
		bad := 0
		for _, m := range lease.Members {
			if m.ID[0] == 'b' {
				seats[m.Role]++
				bad++
			}
		}
		if bad >= 4 {
			all++
		}
	}
	for role, of := range map[crew.Role]float64{crew.Worker: 4, crew.Verifier: 2} {
		part := float64(seats[role]) / draws / of
		if math.Abs(part-0.04) > 0.012 {
			t.Errorf("%s: %.3f of the seats with 0.04 of the stake", role, part)
		}
	}
	if all > 1 {
		t.Errorf("in %d of %d draws most seats", all, draws)
	}
}

// The chances are the stakes, drawn among all lots and drawn among those that fit: few do, so that the first way gives
// up.
func TestDrawFollowsStake(t *testing.T) {
	for name, others := range map[string]int{"most fit": 0, "few fit": 3000} {
		o := order()
		o.Workers, o.Verifiers, o.Terms.AuditPPM, o.Conditions.Machines = Workers{1, 1, 1}, 0, 0, []Machine{{Memory: 16}}
		var lots []Listing
		for i := range 4 {
			l := staked(fmt.Sprint("w", i), crew.Worker, uint64(100*i), uint64(i+1))
			l.Memory = 16
			lots = append(lots, l)
		}
		for i := range others {
			lots = append(lots, staked(fmt.Sprint("x", i), crew.Worker, 1, 9))
		}
		counts, n := map[string]float64{}, 3000
		b := NewBook(lots, canon.Digest{})
		for i := range n {
			b.beacon = beacons(i)
			lease, _ := b.Match(o)
			counts[lease.Members[0].ID]++
		}
		for i := range 4 {
			if got, want := counts[fmt.Sprint("w", i)]/float64(n), float64(i+1)/10; math.Abs(got-want) > 0.035 {
				t.Errorf("%s: %.3f of the seats with %.1f of the stake", name, got, want)
			}
		}
	}
}

// Two seats of one owner count as one: no verifier sits with another seat of its owner, and workers of one owner sit
// together only where others do not suffice.
func TestSeatsOfOneOwner(t *testing.T) {
	lots := []Listing{staked("a", crew.Worker, 1, 900), staked("b", crew.Worker, 1, 900), staked("c", crew.Worker, 1, 1),
		staked("d", crew.Worker, 1, 1),
		staked("va", crew.Verifier, 1, 900), staked("vb", crew.Verifier, 1, 900), staked("vc", crew.Verifier, 1, 1),
		staked("vd", crew.Verifier, 1, 1)}
	for _, i := range []int{0, 1, 4, 5} {
		lots[i].Owner = "pool"
	}
	o := order()
	o.Workers, o.Verifiers = Workers{2, 2, 2}, 2
	for i := range 200 {
		lease, why := NewBook(lots, beacons(i)).Match(o)
		if why != Matched {
			t.Fatalf("%d: %s", i, why)
		}
		seats := 0
		for _, m := range lease.Members {
			if m.Owner == "pool" {
				seats++
			}
		}
		if seats > 1 {
			t.Fatalf("%d: the owner of the pool has %d seats: %s", i, seats, ids(lease))
		}
	}
	o.Verifiers, o.Workers = 1, Workers{3, 3, 3}
	lease, why := NewBook(append(lots[:3:3], lots[6]), beacons(1)).Match(o)
	if why != Matched || len(lease.Members) != 4 {
		t.Errorf("workers of one owner where there are no others: %s %s", why, ids(lease))
	}
	if _, why := NewBook(lots[:6], beacons(1)).Match(o); why != TooFewVerifiers {
		t.Errorf("verifiers of who works: %q", why)
	}
}

// All members of a role are paid the highest price that one of them asks, but none more than its stake covers or an
// hour may cost.
func TestMarginalPrice(t *testing.T) {
	o := order()
	o.Workers, o.Verifiers, o.Conditions.Hourly = Workers{4, 4, 4}, 1, cost.Hourly(1000, 1e12)
	lots := []Listing{staked("a", crew.Worker, 1, 1), staked("b", crew.Worker, 700, 1), staked("c", crew.Worker, 1, 1),
		staked("d", crew.Worker, 1, 1), staked("v", crew.Verifier, 900, 1)}
	for i := range lots {
		lots[i].Rate = 1e12
	}
	lots[2].Rate = 4e12
	lots[3].Cover = o.Value(crew.Worker, 50)
	lease, why := NewBook(lots, beacons(1)).Match(o)
	if got := ids(lease); why != Matched || got != "a:1:700 b:1:700 c:1:250 d:1:50 v:2:900 " {
		t.Errorf("%s %s", why, got)
	}
}
