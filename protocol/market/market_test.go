package market

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/market/cost"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/terms"
)

func order() Order {
	return Order{
		ID: "job", Consumer: "carol",
		Terms: terms.Terms{
			Job: "job", Spec: canon.Sum("spec"), SpecCID: "bafyspec",
			Genesis: terms.Checkpoint{Root: canon.Sum("genesis"), CID: "bafygenesis"},
			Rounds:  3, Units: 4, Segments: 2, UnitFlops: cost.Flops, AuditPPM: 50_000,
			Deadlines: terms.Deadlines{Train: 20, Audit: 20, Attest: 20}, Window: 4,
		},
		Budget: 1_000_000, PriceCap: 1000,
		Workers: Workers{Min: 2, Target: 3, Max: 4}, Verifiers: 1, At: 5,
	}
}

func offers() []Offer {
	return []Offer{
		{ID: "w1", Role: crew.Worker, Price: 300, Slots: 1, At: 1},
		{ID: "w2", Role: crew.Worker, Price: 100, Slots: 1, At: 3},
		{ID: "w3", Role: crew.Worker, Price: 100, Slots: 1, At: 2},
		{ID: "w4", Role: crew.Worker, Price: 50, Slots: 0, At: 1},
		{ID: "w5", Role: crew.Worker, Price: 900, Slots: 1, At: 1},
		{ID: "v1", Role: crew.Verifier, Price: 700, Slots: 1, At: 1},
		{ID: "v2", Role: crew.Verifier, Price: 600, Slots: 1, At: 1},
	}
}

// book is offers of participants without a profile.
func book(offers []Offer, beacon canon.Digest) *OrderBook {
	var lots []Listing
	for _, f := range offers {
		lots = append(lots, Listing{Offer: f, Profile: Profile{Cover: math.MaxUint64}})
	}
	return NewBook(lots, beacon)
}

func ids(l Lease) string {
	s := ""
	for _, m := range l.Members {
		s += fmt.Sprintf("%s:%d:%d ", m.ID, m.Role, m.Price)
	}
	return s
}

func TestMatch(t *testing.T) {
	for name, c := range map[string]struct {
		spoil  func(*Order)
		want   string
		reason Reason
	}{
		"target": {func(*Order) {}, "v1:2:700 w1:1:900 w3:1:900 w5:1:900 ", Matched},
		"one":    {func(o *Order) { o.Workers = Workers{1, 1, 1} }, "v1:2:700 w1:1:300 ", Matched},
		"below target": {func(o *Order) { o.Workers = Workers{2, 8, 8} }, "v1:2:700 w1:1:900 w2:1:900 w3:1:900 w5:1:900 ",
			Matched},
		"no verifier":   {func(o *Order) { o.Verifiers, o.Terms.AuditPPM = 0, 0 }, "w1:1:900 w3:1:900 w5:1:900 ", Matched},
		"few workers":   {func(o *Order) { o.Workers = Workers{5, 5, 5} }, "", TooFewWorkers},
		"few verifiers": {func(o *Order) { o.Verifiers = 3 }, "", TooFewVerifiers},
		"cap":           {func(o *Order) { o.PriceCap = 599 }, "", PriceAboveCap},
		"cap workers":   {func(o *Order) { o.Workers, o.PriceCap = Workers{4, 4, 4}, 899 }, "", PriceAboveCap},
		"budget":        {func(o *Order) { o.Budget = 4*(900+700) - 1 }, "", BudgetTooSmall},
		"exact budget":  {func(o *Order) { o.Budget = 4 * (900 + 700) }, "v1:2:700 w1:1:900 w3:1:900 w5:1:900 ", Matched},
	} {
		o := order()
		c.spoil(&o)
		if err := o.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		lease, reason := book(offers(), canon.Sum("beacon")).Match(o)
		if ids(lease) != c.want || reason != c.reason {
			t.Errorf("%s: %q %q, want %q %q", name, ids(lease), reason, c.want, c.reason)
		}
		if reason == Matched {
			if _, err := run.New(o.Terms, lease.Members, 9); err != nil {
				t.Errorf("%s: the lease makes no run: %v", name, err)
			}
		}
	}
}

func TestMatchIgnoresOrderOfOffers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	all := offers()
	for i := range all {
		all[i].Price, all[i].At = 100, 1 // only the beacon decides
	}
	all = append(all, Offer{ID: "w1", Role: crew.Verifier, Price: 100, Slots: 1, At: 1})
	first, _ := book(all, canon.Sum("beacon")).Match(order())
	differs := false
	for i := range 50 {
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		again, _ := book(all, canon.Sum("beacon")).Match(order())
		if ids(again) != ids(first) {
			t.Fatalf("%s, then %s", ids(first), ids(again))
		}
		other, _ := book(all, canon.Sum("beacon", []byte{byte(i)})).Match(order())
		differs = differs || ids(other) != ids(first)
		seen := map[string]bool{}
		for _, m := range again.Members {
			if seen[m.ID] {
				t.Fatalf("%s is a member twice", m.ID)
			}
			seen[m.ID] = true
		}
	}
	if !differs {
		t.Error("the beacon decides nothing")
	}
}

func TestOrderValidate(t *testing.T) {
	for name, spoil := range map[string]func(*Order){
		"terms":       func(o *Order) { o.Terms.Units = 0 },
		"id":          func(o *Order) { o.ID = "other" },
		"consumer":    func(o *Order) { o.Consumer = "" },
		"no worker":   func(o *Order) { o.Workers.Min = 0 },
		"min>target":  func(o *Order) { o.Workers.Min = 4 },
		"target>max":  func(o *Order) { o.Workers.Max = 2 },
		"members":     func(o *Order) { o.Verifiers = terms.MaxMembers },
		"no verifier": func(o *Order) { o.Verifiers = 0 },
		"budget":      func(o *Order) { o.Budget = 0 },
	} {
		o := order()
		spoil(&o)
		if err := o.Validate(); !errors.Is(err, ErrOrder) {
			t.Errorf("%s: %v", name, err)
		}
	}
	o := order()
	o.Deadline = 10
	if o.Expired(10) || !o.Expired(11) || order().Expired(math.MaxInt64) {
		t.Error("an order expires after its deadline, and never without one")
	}
}

func FuzzEscrow(f *testing.F) {
	f.Add(uint64(1000), uint64(400), uint64(700))
	f.Add(uint64(math.MaxUint64), uint64(math.MaxUint64), uint64(1))
	f.Fuzz(func(t *testing.T, budget, first, second uint64) {
		e := Escrow{Budget: budget}
		for _, amount := range []uint64{first, second, first} {
			before := e
			var net, fee uint64
			e, net, fee = e.Pay(amount, FeePPM)
			gross := net + fee
			share := new(big.Int).Quo(new(big.Int).Mul(new(big.Int).SetUint64(gross), big.NewInt(FeePPM)), big.NewInt(1_000_000))
			if gross != min(amount, before.Remaining()) || fee != share.Uint64() {
				t.Fatalf("paid %d+%d of %d from %+v", net, fee, amount, before)
			}
			if e.Paid+e.Fee+e.Refunded+e.Remaining() != budget {
				t.Fatalf("not conserved: %+v", e)
			}
		}
		e, refund := e.Close()
		if e.Remaining() != 0 || e.Paid+e.Fee+e.Refunded != budget || refund != e.Refunded {
			t.Fatalf("not closed: %+v", e)
		}
		if after, net, fee := e.Pay(first, FeePPM); after != e || net+fee != 0 {
			t.Fatal("a closed escrow pays")
		}
	})
}
