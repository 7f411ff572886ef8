package market

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/starling-network/starling/protocol/run/crew"
)

// split gives the stake of an owner to k machines.
func split(owner string, role crew.Role, zen uint64, k int) (lots []Listing) {
	for i := range k {
		l := staked(fmt.Sprint(owner, "-", role, i), role, 1, zen/uint64(k))
		l.Owner = owner
		lots = append(lots, l)
	}
	return lots
}

// An owner that splits its stake among k machines sits in a run of one worker as often as with one machine, and never
// with a verifier in a run in which another of its machines has a seat.
func TestMachinesOfAnOwnerHaveNoMoreSeats(t *testing.T) {
	const draws = 1500
	for _, k := range []int{1, 3, 8} {
		lots := append(split("o", crew.Worker, 24, k), split("o", crew.Verifier, 24, k)...)
		for i := range 4 {
			lots = append(lots, staked(fmt.Sprint("w", i), crew.Worker, 1, 24), staked(fmt.Sprint("v", i), crew.Verifier, 1, 24))
		}
		o := order()
		o.Workers, o.Verifiers, o.Budget = Workers{1, 1, 1}, 1, 1<<40
		seats := 0
		for i := range draws {
			lease, why := NewBook(lots, beacons(i)).Match(o)
			if why != Matched {
				t.Fatal(why)
			}
			own := 0
			for _, m := range lease.Members {
				if m.Owner == "o" {
					own++
				}
			}
			if own > 1 {
				t.Fatalf("%d machines: a worker and a verifier of one owner: %s", k, ids(lease))
			}
			seats += own
		}
		// as a worker in one of five; otherwise as a verifier in one of five
		if part := float64(seats) / draws; math.Abs(part-0.36) > 0.04 {
			t.Errorf("%d machines: in %.3f of the runs, expected 0.36", k, part)
		}
	}
}

// However an owner divides its stake among machines of a run, their votes weigh no more than those of one machine with
// all of it, and a quorum that the others miss without it they miss with it.
func TestMachinesOfAnOwnerHaveNoMoreVotes(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for range 500 {
		var others crew.Crew
		votes := map[string]bool{}
		for i := range 1 + r.IntN(6) {
			id := fmt.Sprint("m", i)
			others.Members = append(others.Members, crew.Member{ID: id, Active: true, Stake: r.Uint64N(100)})
			votes[id] = r.IntN(2) == 0
		}
		stake := 1 + r.Uint64N(100)
		whole, parts := others, others
		whole.Members = append(whole.Members[:len(whole.Members):len(whole.Members)],
			crew.Member{ID: "o", Active: true, Stake: stake})
		left := stake
		for i := range 1 + r.IntN(8) {
			part := r.Uint64N(left + 1)
			left -= part
			id := fmt.Sprint("o", i)
			parts.Members = append(parts.Members[:len(parts.Members):len(parts.Members)],
				crew.Member{ID: id, Owner: "o", Active: true, Stake: part})
			votes[id] = true
		}
		votes["o"] = true
		if !whole.Quorate(votes) && parts.Quorate(votes) {
			t.Fatalf("split it decides: %+v, whole: %+v, votes %v", parts.Members, whole.Members, votes)
		}
		some, _ := parts.Weighs(votes)
		if most, _ := whole.Weighs(votes); some > most {
			t.Fatalf("split it weighs %d, whole %d", some, most)
		}
	}
}
