package market

import (
	"fmt"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/work"
)

// earner is the offer of a worker that earns its stake.
func earner(id string, price uint64) Listing {
	return Listing{Offer: Offer{ID: id, Role: crew.Worker, Price: price, Slots: 1}, Profile: Profile{Earning: true}}
}

// Workers that earn their stake get no seat of an order, however few others offer.
func TestEarnersAreNotMatched(t *testing.T) {
	var lots []Listing
	for i := range 8 {
		lots = append(lots, earner(fmt.Sprint("e", i), 1))
	}
	lots = append(lots, Listing{Offer: Offer{ID: "v", Role: crew.Verifier, Slots: 1}, Profile: Profile{Stake: 1,
		Cover: 1 << 60}})
	if l, why := NewBook(lots, canon.Sum("beacon")).Match(order()); why == Matched {
		t.Errorf("%+v", l)
	}
	if why := NewBook(lots, canon.Digest{}).Unfit(order(), crew.Worker, "e0"); why != EarnsStake {
		t.Errorf("the reason is %q", why)
	}
}

// They join runs in progress, in addition to the workers with a stake and at their price or below: one at a time, never
// one where nothing is audited or exact, and none after one was convicted, or while one that left may be.
func TestEarnersJoin(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*Order, *run.State, []Listing)
		want  int
	}{
		"one among few":   {want: 1},
		"one among eight": {func(o *Order, _ *run.State, _ []Listing) { o.Workers.Max = 8 }, 1},
		"none while one that left may be convicted": {func(o *Order, s *run.State, _ []Listing) {
			o.Workers.Max = 8
			s.Members[2].Earning, s.Members[2].Active, s.Members[2].Why = true, false, reason.Left
			s.Units = []*work.Unit{{Worker: s.Members[2].ID, Status: work.Auditing}}
		}, 0},
		"one after the work of the last is final": {func(_ *Order, s *run.State, _ []Listing) {
			s.Members[2].Earning, s.Members[2].Active, s.Members[2].Why = true, false, reason.Left
		}, 1},
		"none without audits":   {func(_ *Order, s *run.State, _ []Listing) { s.Terms.AuditPPM = 0 }, 0},
		"none in tolerant work": {func(_ *Order, s *run.State, _ []Listing) { s.Terms.Tolerance.DistancePPM = 1 }, 0},
		"none at the end":       {func(_ *Order, s *run.State, _ []Listing) { s.Phase = progress.Settle }, 0},
		"none that asks more": {func(_ *Order, _ *run.State, lots []Listing) {
			for i := range lots {
				lots[i].Price = 101
			}
		}, 0},
		"no second one": {func(_ *Order, s *run.State, _ []Listing) { s.Members[2].Earning = true }, 0},
		"none after a conviction": {func(_ *Order, s *run.State, _ []Listing) {
			s.Members[2].Earning, s.Members[2].Active, s.Members[2].Why = true, false, reason.Verdict
		}, 0},
		"none without the history that is asked for": {func(o *Order, _ *run.State, _ []Listing) {
			o.Conditions.Passed = 1
		}, 0},
	} {
		o := order()
		o.Workers.Max = 2
		o.Terms.AuditPPM = 100_000
		s, err := run.New(o.Terms, []crew.Member{{ID: "v9", Role: crew.Verifier, Price: 600},
			{ID: "w8", Role: crew.Worker, Price: 100}, {ID: "w9", Role: crew.Worker, Price: 100}}, 1)
		if err != nil {
			t.Fatal(err)
		}
		lots := []Listing{earner("e0", 50), earner("e1", 50), earner("e2", 100)}
		if c.spoil != nil {
			c.spoil(&o, &s, lots)
		}
		got := NewBook(lots, canon.Sum("beacon")).Join(o, s, nil, 1<<40)
		if len(got) != c.want {
			t.Errorf("%s: %+v, want %d", name, got, c.want)
		}
		for _, m := range got {
			if !m.Earning || m.Active || m.Price > 100 {
				t.Errorf("%s: %+v", name, m)
			}
		}
	}
}

// A place of a worker with a stake is not taken by one without: when a staked worker leaves, another follows it.
func TestEarnersTakeNoPlaceOfOthers(t *testing.T) {
	o := order()
	o.Workers.Max, o.Terms.AuditPPM = 2, 100_000
	s, err := run.New(o.Terms, []crew.Member{{ID: "v9", Role: crew.Verifier, Price: 600},
		{ID: "w8", Role: crew.Worker, Price: 100}, {ID: "w9", Role: crew.Worker, Price: 100}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	s.Members[1].Earning = true
	lots := []Listing{{Offer: Offer{ID: "w1", Role: crew.Worker, Price: 90, Slots: 1}, Profile: Profile{Stake: 1,
		Cover: 1 << 60}}, earner("e0", 50)}
	got := NewBook(lots, canon.Sum("beacon")).Join(o, s, nil, 1<<40)
	if len(got) != 1 || got[0].ID != "w1" || got[0].Earning {
		t.Errorf("%+v", got)
	}
}
