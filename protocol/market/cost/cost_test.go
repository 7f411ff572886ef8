package cost

import (
	"errors"
	"math"
	"math/big"
	"testing"

	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

// job is three rounds of four audited units.
func job() terms.Terms {
	return terms.Terms{Job: "job", Rounds: 3, Units: 4, Segments: 2, UnitFlops: Flops, AuditPPM: 50_000}
}

// The exposure of a run is the cost of every open round and the next one: paid audits are paid, and unpaid work is
// owed at the price of its worker, also of members that left.
func TestExposure(t *testing.T) {
	s := run.State{
		Progress: progress.Progress{
			Crew: crew.Crew{Terms: job(), Members: []crew.Member{
				{ID: "gone", Role: crew.Worker, Price: 900},
				{ID: "v", Role: crew.Verifier, Price: 600, Active: true},
				{ID: "w", Role: crew.Worker, Price: 300, Active: true},
			}},
		},
	}
	next := uint64(4 * (300 + 600))
	if got := Exposure(s); got != next || got != Round(s) {
		t.Errorf("with nothing open %d, want %d", got, next)
	}
	s.Open = []work.RoundState{{Units: work.Units{{Worker: "w", Passed: true}, {Worker: "gone"}}},
		{Units: work.Units{{Worker: "w"}}}}
	if got, want := Exposure(s), next+300+(900+600)+(300+600); got != want {
		t.Errorf("with two rounds open %d, want %d", got, want)
	}
	// A unit that draws may be open in a round that is attested; in one that was rolled back it stands for nothing.
	drawing := work.RoundState{Units: work.Units{{Worker: "w", Status: work.Assigned, Draws: true}}}
	s.RolledBack = []work.RoundState{drawing}
	if got, want := Exposure(s), next+300+(900+600)+(300+600); got != want {
		t.Errorf("with a unit that draws in a round that was rolled back %d, want %d", got, want)
	}
	s.Open, s.RolledBack = append(s.Open, drawing), nil
	if got, want := Exposure(s), next+300+(900+600)+(300+600)+(300+600); got != want {
		t.Errorf("with a unit that draws open %d, want %d", got, want)
	}
	s.Open = s.Open[:2]
	s.Terms.AuditPPM = 0
	if got, want := Exposure(s), uint64(4*300+300+900+300); got != want {
		t.Errorf("without audits %d, want %d", got, want)
	}
}

func FuzzOf(f *testing.F) {
	f.Add(uint64(0), uint64(0))
	f.Add(uint64(math.MaxUint64), uint64(math.MaxUint64))
	f.Add(uint64(Flops), uint64(math.MaxUint64))
	f.Add(uint64(Flops+1), uint64(math.MaxUint64))
	f.Fuzz(func(t *testing.T, flops, price uint64) {
		want := new(big.Int).Mul(new(big.Int).SetUint64(flops), new(big.Int).SetUint64(price))
		want.Quo(want, big.NewInt(Flops))
		got, err := Of(flops, price)
		switch {
		case want.IsUint64() && (err != nil || got != want.Uint64()):
			t.Fatalf("Of(%d, %d) = %d, %v, want %s", flops, price, got, err, want)
		case !want.IsUint64() && (!errors.Is(err, ErrOverflow) || got != math.MaxUint64):
			t.Fatalf("Of(%d, %d) = %d, %v, want saturation", flops, price, got, err)
		}
	})
}

func TestQuote(t *testing.T) {
	job := job()
	if round, whole := Quote(job, 10, 1); round != 4*20 || whole != 3*4*20 {
		t.Errorf("with audits: %d, %d", round, whole)
	}
	if round, whole := Quote(job, 10, 0); round != 4*10 || whole != 3*4*10 {
		t.Errorf("without: %d, %d", round, whole)
	}
	job.UnitFlops = math.MaxUint64
	if round, whole := Quote(job, math.MaxUint64, 1); round != math.MaxUint64 || whole != math.MaxUint64 {
		t.Errorf("does not saturate: %d, %d", round, whole)
	}
}

func TestRoundCountsTheActive(t *testing.T) {
	s := run.State{
		Progress: progress.Progress{
			Crew: crew.Crew{Terms: job(), Members: []crew.Member{
				{ID: "a", Role: crew.Worker, Price: 7, Active: true},
				{ID: "b", Role: crew.Worker, Price: 100},
				{ID: "v", Role: crew.Verifier, Price: 11, Active: true},
			}},
		},
	}
	if got := Round(s); got != 4*(7+11) {
		t.Errorf("Round = %d", got)
	}
}

// Units of different sizes cost the sum of their operations, each rounded by itself.
func TestCostOfSizes(t *testing.T) {
	job := job()
	job.Segments, job.UnitFlops, job.Sizes = 4, Flops/3, []uint32{4, 3, 2, 1}
	job.UnitFlops -= job.UnitFlops % 4
	var want uint64
	for u := range job.Units {
		unit, _ := Of(job.FlopsOf(u), 1001)
		want += unit
	}
	round, whole := Quote(job, 1001, 1)
	if round != 2*want || whole != 3*2*want {
		t.Errorf("a round of %d: %d, and three %d", want, round, whole)
	}
	s := run.State{
		Progress: progress.Progress{
			Crew: crew.Crew{Terms: job, Members: []crew.Member{{ID: "v", Role: crew.Verifier, Price: 600, Active: true},
				{ID: "w", Role: crew.Worker, Price: 300, Active: true}}},
		},
	}
	next := Round(s)
	once, _ := Of(job.FlopsOf(3), 300)
	again, _ := Of(job.FlopsOf(3), 600)
	s.Open = []work.RoundState{{Units: work.Units{{Index: 3, Worker: "w"}}}}
	if got := Exposure(s); got != next+once+again {
		t.Errorf("with the smallest unit open %d, want %d", got, next+once+again)
	}
}

func TestAnHour(t *testing.T) {
	const rate = 3_000_000_000_000
	if price := PerFlops(400_000, rate); Hourly(price, rate) < 400_000 || Hourly(price-1, rate) >= 400_000 {
		t.Errorf("400000 uzen an hour are %d uzen per 10^15 operations, which are %d an hour", price, Hourly(price, rate))
	}
	if price := Within(400_000, rate); Hourly(price, rate) > 400_000 || Hourly(price+1, rate) <= 400_000 {
		t.Errorf("an hour at %d uzen per 10^15 operations costs %d", price, Hourly(price, rate))
	}
}
