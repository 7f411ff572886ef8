package market

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/run/crew"
)

var usdc = coin.Coin{Denom: "ibc/usdc", Symbol: "usdc", Exponent: 6}

// asking is a lot that takes the network's own coin at a price, and another coin at another.
func asking(id string, role crew.Role, own, other uint64) []Listing {
	l := good(id, role, own)
	l.Asks = []Ask{{usdc.Denom, other}}
	return []Listing{l, l.In(l.Asks[0], math.MaxUint64)}
}

func inUSDC(o Order) Order {
	o.Coin, o.Waiting, o.Conditions = usdc, 1000, Conditions{}
	return o
}

// An order is matched with the offers that take its coin, at their prices in this coin, whatever they ask in another
// one.
func TestAnOrderIsMatchedInItsCoin(t *testing.T) {
	var lots []Listing
	lots = append(lots, asking("a", crew.Worker, 900, 7)...)
	lots = append(lots, asking("v", crew.Verifier, 800, 11)...)
	cheap := good("z", crew.Worker, 1) // does not take it
	lots = append(lots, cheap)
	o := inUSDC(picky())
	e := NewBook(lots, canon.Sum("beacon")).Estimate(o)
	if e.Why != Matched || len(e.Lease.Members) != 2 || e.Lease.Members[0].Price != 7 || e.Lease.Members[1].Price != 11 {
		t.Fatalf("%q: %+v", e.Why, e.Lease)
	}
	if len(e.May) != 2 || len(e.Passed) != 1 || e.Passed[0].ID != "z" || e.Passed[0].Why != OtherCoin {
		t.Errorf("may: %+v, passed: %+v", e.May, e.Passed)
	}
	b := NewBook(lots, canon.Sum("beacon"))
	if why := b.Unfit(o, crew.Worker, "z"); why != OtherCoin {
		t.Errorf("z is unfit because %q", why)
	}
	none := NewBook([]Listing{cheap, good("v", crew.Verifier, 1)}, canon.Sum("beacon"))
	if _, why := none.Match(o); why != TooFewWorkers {
		t.Errorf("without offers in the coin: %q", why)
	}
	third := o
	third.Coin.Denom = "ibc/other"
	if _, why := b.Match(third); why != TooFewWorkers {
		t.Errorf("in a third coin: %q", why)
	}
}

// The slots of an offer are those of all coins together, and work in one coin takes nothing of the cover that the stake
// in another one gives.
func TestCoinsShareSlotsAndNoCover(t *testing.T) {
	lots := asking("a", crew.Worker, 900, 7)
	lots[0].Slots, lots[1].Slots, lots[0].Cover, lots[1].Cover = 2, 2, 1<<40, 1<<40
	lots = append(lots, asking("v", crew.Verifier, 800, 11)...)
	lots[2].Slots, lots[3].Slots = 3, 3
	b := NewBook(lots, canon.Sum("beacon"))
	own := picky()
	own.Conditions = Conditions{}
	for i, o := range []Order{own, inUSDC(picky()), own} {
		o.ID = string(rune('a' + i))
		lease, why := b.Match(o)
		if i == 2 {
			if why != TooFewWorkers {
				t.Errorf("a third run: %q", why)
			}
			break
		}
		if why != Matched {
			t.Fatalf("order %d: %q", i, why)
		}
		b.Take(o, lease.Members)
	}
	a, other := b.lots[key{kind{"", crew.Worker}, "a"}], b.lots[key{kind{usdc.Denom, crew.Worker}, "a"}]
	if *a.left != 0 || *other.left != 0 {
		t.Errorf("%d and %d slots are left", *a.left, *other.left)
	}
	if a.Cover != 1<<40-own.Value(crew.Worker, 900) || other.Cover != 1<<40-own.Value(crew.Worker, 7) {
		t.Errorf("covers %d and %d", a.Cover, other.Cover)
	}
}

// A stake in the network's own coin covers nothing in another one.
func TestAStakeCoversWorkInItsCoinAlone(t *testing.T) {
	lots := append(asking("a", crew.Worker, 900, 700), asking("v", crew.Verifier, 1, 1)...)
	lots[1].Cover = 1
	o := inUSDC(picky())
	e := NewBook(lots, canon.Sum("beacon")).Estimate(o)
	if e.Why == Matched || len(e.Passed) == 0 || e.Passed[0].Why != StakeTooSmall {
		t.Errorf("%q: %+v", e.Why, e.Passed)
	}
}

// Orders in all coins are served by their rank, which of the network's own coin is the budget.
func TestQueueRanksCoins(t *testing.T) {
	of := func(id string, budget, waiting uint64, c coin.Coin) Order {
		return Order{ID: id, Budget: budget, Waiting: waiting, Coin: c}
	}
	sorted := Queue([]Order{of("zen", 5_000, 0, coin.Coin{}), of("much", 10, 1, usdc),
		of("little", 4_000_000, 1_000_000, usdc)}, canon.Sum("beacon"))
	if sorted[0].ID != "much" || sorted[1].ID != "zen" || sorted[2].ID != "little" {
		t.Errorf("%v", sorted)
	}
}

// An order, an offer and a listing without another coin are encoded as before, and those with one lose nothing.
func TestCoinsInRecords(t *testing.T) {
	o, r := picky(), rand.New(rand.NewPCG(1, 2))
	plain := canon.MustMarshal(o)
	o.Coin, o.Waiting = usdc, r.Uint64()
	var back Order
	if err := canon.Unmarshal(canon.MustMarshal(o), &back); err != nil || back.Coin != usdc || back.Waiting != o.Waiting {
		t.Errorf("%+v: %v", back, err)
	}
	back = Order{}
	if err := canon.Unmarshal(plain, &back); err != nil || !back.Coin.Own() || back.Rank() != back.Budget {
		t.Errorf("an order in the own coin: %+v: %v", back.Coin, err)
	}
	l := asking("a", crew.Worker, 900, 7)[1]
	var listing Listing
	if err := canon.Unmarshal(canon.MustMarshal(l), &listing); err != nil || listing.Denom != usdc.Denom ||
		listing.Price != 7 || len(listing.Asks) != 1 {
		t.Errorf("%+v: %v", listing, err)
	}
	if price, takes := (Offer{Foreign: true, Price: 3}).Asked(""); takes {
		t.Errorf("an offer in other coins alone takes the own one at %d", price)
	}
}
