package market

import (
	"errors"
	"fmt"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/market/cost"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/terms"
)

// drawingOrder is an order of which two seats may be those of generators.
func drawingOrder() Order {
	o := order()
	o.Terms.Window, o.Terms.Rollout = 8, terms.Rollout{Units: 4, Staleness: 1, Flops: cost.Flops / 2}
	o.Workers, o.Generators = Workers{3, 5, 5}, 2
	return o
}

func generatorOffers() []Offer {
	return append(offers(),
		Offer{ID: "g1", Role: crew.Generator, Price: 40, Slots: 1},
		Offer{ID: "g2", Role: crew.Generator, Price: 60, Slots: 1},
		Offer{ID: "g3", Role: crew.Generator, Price: 50, Slots: 1},
		Offer{ID: "w1", Role: crew.Generator, Price: 20, Slots: 1})
}

// Seats of generators are drawn from offers of that class alone, at its own price; an account has one seat. An order
// that takes none, or finds none, is matched with workers that learn.
func TestGeneratorsAreMatched(t *testing.T) {
	for i := range 40 {
		b := book(generatorOffers(), canon.Sum("beacon", []byte(fmt.Sprint(i))))
		lease, why := b.Match(drawingOrder())
		if why != Matched || len(lease.Members) != 6 {
			t.Fatalf("%s: %+v", why, lease)
		}
		seen := map[string]bool{}
		var drawn, learn int
		var asked, paid uint64
		for _, m := range lease.Members {
			if seen[m.ID] {
				t.Errorf("%s has two seats", m.ID)
			}
			seen[m.ID] = true
			switch m.Class() {
			case crew.Generator:
				drawn++
				paid = m.Price
				asked = max(asked, map[string]uint64{"g1": 40, "g2": 60, "g3": 50, "w1": 20}[m.ID])
			case crew.Worker:
				if learn++; m.Price != 900 && m.Price != 300 && m.Price != 100 {
					t.Errorf("a worker is paid %d", m.Price)
				}
			}
		}
		if drawn != 2 || learn != 3 || paid != asked {
			t.Errorf("%d generators at %d, which ask %d, and %d workers", drawn, paid, asked, learn)
		}
		b.Take(drawingOrder(), lease.Members)
		for _, m := range lease.Members {
			if l := b.lots[key{kind{"", m.Class()}, m.ID}]; *l.left != 0 {
				t.Errorf("%s has a slot left", m.ID)
			}
		}
		o := drawingOrder()
		o.Generators = 0
		if lease, _ := b.Match(o); len(lease.Members) > 0 {
			t.Errorf("generators fill the seats of workers: %+v", lease)
		}
		o = drawingOrder()
		o.Workers, o.Conditions.Domains = Workers{3, 3, 3}, 2
		for i, l := range b.table(&o, crew.Worker).lots {
			l.Domain, *l.left = fmt.Sprint(i), 1
		}
		if lease, why := b.Match(o); why != Matched || len(lease.Members) != 4 {
			t.Errorf("with two domains: %s, %+v", why, lease)
		}
		if lease, why := book(offers(), b.beacon).Match(drawingOrder()); why != Matched || len(lease.Members) != 5 {
			t.Errorf("without offers of generators: %s, %+v", why, lease)
		}
	}
	b := book(generatorOffers(), canon.Sum("beacon"))
	if got := b.Unfit(order(), crew.Generator, "g1"); got != NoGeneratorWanted {
		t.Errorf("an offer of a generator and an order without units that draw: %q", got)
	}
}

// Generators are sought before workers that learn, and take no more seats than the order gives them.
func TestGeneratorsJoin(t *testing.T) {
	o := drawingOrder()
	s, err := run.New(o.Terms, []crew.Member{{ID: "v9", Role: crew.Verifier, Price: 600},
		{ID: "w8", Role: crew.Worker, Price: 100}, {ID: "g9", Role: crew.Worker, Price: 70, Generates: true}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	members := book(generatorOffers(), canon.Sum("beacon")).Join(o, s, nil, 1<<40)
	var drawn, learn int
	for _, m := range members {
		if m.Generates {
			drawn++
			if m.Price != 70 {
				t.Errorf("a generator is paid %d, and another 70", m.Price)
			}
		} else {
			learn++
		}
	}
	if drawn != 1 || learn != 2 {
		t.Errorf("%d generators and %d workers join: %+v", drawn, learn, members)
	}
	s.Phase = progress.Settle
	if members := book(generatorOffers(), canon.Sum("beacon")).Join(o, s, nil, 1<<40); len(members) > 0 {
		t.Errorf("%+v", members)
	}
}

// The budget covers units that draw at the highest price that any of its members may be paid for one, and the stake of
// a generator deters a lie in a unit that draws.
func TestGeneratorsCost(t *testing.T) {
	o := drawingOrder()
	price := func(work, draw uint64) uint64 {
		return cost.Round(run.State{Progress: progress.Progress{Crew: crew.Crew{Terms: o.Terms, Members: []crew.Member{
			{ID: "g", Role: crew.Worker, Generates: true, Price: draw, Active: true},
			{ID: "w", Role: crew.Worker, Price: work, Active: true}}}}})
	}
	if a, b := price(100, 40), price(100, 300); a != 4*100+4*50 || b != 4*100+4*150 {
		t.Errorf("a round costs %d, and %d", a, b)
	}
	if learn, draw := o.Value(crew.Worker, 100), o.Value(crew.Generator, 100); draw != (learn+1)/2 {
		t.Errorf("a lie gains %d in a unit that learns, and %d in one that draws", learn, draw)
	}
	e := book(generatorOffers(), canon.Sum("beacon")).Estimate(o)
	dear := o
	dear.Generators = 0
	if all := book(generatorOffers(), canon.Sum("beacon")).Estimate(dear); e.Likely >= all.Likely {
		t.Errorf("with generators the job costs %d, without %d", e.Likely, all.Likely)
	}
}

// An order takes generators where units draw, and fewer than the least number of workers.
func TestOrdersOfGenerators(t *testing.T) {
	for name, spoil := range map[string]func(*Order){
		"no units draw": func(o *Order) { o.Terms.Rollout = terms.Rollout{} },
		"none learns":   func(o *Order) { o.Generators = 3 },
	} {
		o := drawingOrder()
		if err := o.Validate(); err != nil {
			t.Fatal(err)
		}
		if spoil(&o); !errors.Is(o.Validate(), ErrOrder) {
			t.Errorf("%s: %v", name, o.Validate())
		}
	}
}
