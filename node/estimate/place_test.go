package estimate

import (
	"math"
	"testing"
	"time"

	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/terms"
)

// training is a run of rounds of 12 units, each 10^12 operations, whose workers take these blocks for one. Their rates
// are 1000 over them.
func training(blocks ...uint32) run.State {
	s := run.State{Progress: progress.Progress{}}
	s.Terms = terms.Terms{Rounds: 1000, Units: 12, Segments: 1, UnitFlops: 1e12}
	s.Round = 10
	for _, b := range blocks {
		s.Members = append(s.Members, crew.Member{ID: string(rune('a' + len(s.Members))), Role: crew.Worker, Active: true,
			Price: 1e6, Speed: b << 8, Rate: uint64(1000 / b)})
	}
	return s
}

func order(most uint32) market.Order {
	return market.Order{ID: "job", Workers: market.Workers{Min: 1, Target: 2, Max: most}}
}

// A machine that is as fast as the workers gets its part of the units, and makes the rounds as much shorter, but for
// the time in which updates travel.
func TestAPlaceMakesRoundsShorter(t *testing.T) {
	s := training(10, 10, 20)
	p := place(order(4), s, Machine{Rate: 100, Price: 1e6}, 0, 60, 1e15, 50_000)
	if p == nil {
		t.Fatal("there is no place")
	}
	// 12 units are 4.8, 4.8 and 2.4, and with the machine 3.43, 3.43, 1.71 and 3.43: their rounds take 54 and 40 blocks
	if math.Abs(p.Share-2./7) > 1e-9 || p.Pays != 11_400 || p.Rounds != 990 || p.Chance != 1 || p.Now != 60 {
		t.Errorf("%+v", *p)
	}
	if p.With < 45 || p.With > 48 {
		t.Errorf("a round takes %g blocks with the machine", p.With)
	}
	const day, shared = 5300., 1000.
	if p.Starts != p.With {
		t.Errorf("it is paid after %g blocks, and a round takes %g", p.Starts, p.With)
	}
	want := p.Share * float64(p.Pays) * day / p.With
	if got := p.day(shared, day); math.Abs(got-want*(1-p.Starts/Days/day)) > 1e-6 {
		t.Errorf("%g a day, want %g less the first round", got, want)
	}
	p.Starts = 0
	if got := p.day(shared, day); math.Abs(got-want) > 1e-6 {
		t.Errorf("%g a day, want %g", got, want)
	}
	r := InPlaces(Range{500, 1000, 1500}, []Place{*p}, day)
	if r.Low != 500 || r.Median != uint64(want) || r.High != r.Median {
		t.Errorf("%+v, of %g", r, want)
	}
	if r := InPlaces(Range{5, 6, 7}, nil, day); r != (Range{5, 6, 7}) {
		t.Errorf("without places: %+v", r)
	}
	p.Rounds = Days * day / p.With / 2 // it is over after half of the time
	if got := p.day(shared, day); math.Abs(got-(want+shared)/2) > 1e-6 {
		t.Errorf("%g a day, of %g for half of the time", got, want)
	}
}

// A full run, one that is over, and one whose workers have no speed yet have no place. Others that wait for a
// place make it less likely, and a small budget ends it earlier.
func TestPlaces(t *testing.T) {
	s := training(10, 10)
	joining := training(10, 10, 10)
	joining.Members[2].Active, joining.Members[2].Why, joining.Members[2].Speed = false, reason.OnProbation, 0
	unmeasured := training(10, 10)
	unmeasured.Members[0].Speed, unmeasured.Members[1].Speed = 0, 0
	over := training(10)
	over.Phase = progress.Done
	m := Machine{Rate: 100, Price: 1e6}
	for name, c := range map[string]struct {
		s    run.State
		most uint32
		m    Machine
	}{"full": {s, 2, m}, "over": {over, 4, m}, "no speed": {unmeasured, 4, m}, "no rate": {s, 4, Machine{Price: 1e6}},
		"full with one that joins": {joining, 3, m}} {
		if p := place(order(c.most), c.s, c.m, 0, 0, 1e15, 0); p != nil {
			t.Errorf("%s: %+v", name, *p)
		}
	}
	p := place(order(4), s, m, 3, 0, 120_000, 0)
	if p == nil || p.Chance != 0.5 || p.Rounds != 10 || p.Now != 60 {
		t.Errorf("%+v", p)
	}
	if dear := place(order(4), s, Machine{Rate: 100, Price: 2e6}, 0, 0, 120_000, 0); dear == nil || dear.Rounds != 5 {
		t.Errorf("at twice the price: %+v", dear)
	}
	if p := place(order(4), joining, m, 0, 0, 1e15, 0); p == nil || p.Now != 40 || p.Share != 0.25 {
		t.Errorf("with one that joins: %+v", p)
	}
}

// The comparison leaves out the time until the first pay, and that pay, as it is for work before it.
func TestCame(t *testing.T) {
	at := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	k := Kept{At: at, Height: 1000, Income: Range{80, 110, 120}}
	pays := []Pay{{900, 7}, {2000, 50}, {2000, 50}, {2500, 0}, {3000, 100}, {4000, 100}, {5001, 9}}
	c := k.Came(pays, 5000, at.Add(4*24*time.Hour))
	if c.Days != 4 || c.Earned != 75 || c.Since == nil || c.Since.Days != 3 || c.Since.Earned != 66 ||
		math.Abs(c.Since.Off-(110./66-1)) > 1e-9 {
		t.Errorf("%+v, %+v", c, c.Since)
	}
	if c := k.Came(pays[:4], 2600, at.Add(time.Hour)); c.Since != nil || c.Earned != 2400 {
		t.Errorf("after one pay: %+v", c)
	}
}
