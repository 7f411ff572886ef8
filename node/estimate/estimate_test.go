package estimate

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/protocol/run/crew"
)

// worker is one that was measured and registered before the window (1000, 2000].
func worker(id string, rate uint64) registry.Participant {
	return registry.Participant{ID: id, Roles: []crew.Role{crew.Worker}, Rate: rate, Since: 10}
}

func pay(who string, amount uint64, height int64) reward.Receipt {
	return reward.Receipt{Who: who, Role: crew.Worker, Kind: reward.Work, Amount: amount, Height: height}
}

func TestEarners(t *testing.T) {
	barred, verifier, unrated := worker("barred", 5), worker("verifier", 5), worker("unrated", 0)
	barred.Jailed, verifier.Roles = true, []crew.Role{crew.Verifier}
	late, new := worker("late", 5), worker("new", 5)
	late.Since, new.Since = 1500, 1999
	all := []registry.Participant{worker("a", 5), barred, verifier, unrated, late, new, worker("idle", 5),
		worker("gone", 5)}
	offers := map[string]bool{"a": true, "barred": true, "late": true, "new": true, "idle": true, "unrated": true}
	audit := pay("a", 100, 1500)
	audit.Role, audit.Kind = crew.Verifier, reward.Audit
	slash := pay("a", 100, 1500)
	slash.Kind = reward.Slash
	base := reward.Receipt{Who: "a", Kind: reward.Base, Amount: 3, Height: 2000}
	got := Earners(all, offers, []reward.Receipt{
		pay("a", 7, 1001), pay("a", 1, 1000), pay("a", 1, 2001), audit, slash, base, pay("late", 9, 1600),
		pay("unrated", 9, 1600), pay("barred", 9, 1600),
	}, 1000, 2000)
	want := []Earner{{"a", 5, 1000, 10}, {"late", 5, 500, 9}, {"idle", 5, 1000, 0}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if n := Paid(got); n != 2 {
		t.Errorf("%d were paid", n)
	}
}

func TestSpread(t *testing.T) {
	if got := Spread(nil, 5, true, 1000); got != (Range{}) {
		t.Errorf("without workers: %v", got)
	}
	four := []Earner{{"a", 10, 100, 0}, {"b", 10, 100, 1000}, {"c", 10, 50, 1000}, {"d", 20, 100, 8000}}
	// uzen a day of 200 blocks for an operation a second: 0, 200, 400, 800
	for _, c := range []struct {
		rate  uint64
		joins bool
		want  Range
	}{{3, false, Range{0, 600, 1200}}, {50, false, Range{0, 10_000, 20_000}}, {50, true, Range{0, 5000, 20_000}}} {
		if got := Spread(four, c.rate, c.joins, 200); got != c.want {
			t.Errorf("%+v: got %v", c, got)
		}
	}
}

// Whether one machine of a rate or two of half of it are estimated makes no difference, nor the order of the workers;
// and low is at most median, which is at most high.
func TestSpreadIsProportional(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		all := make([]Earner, 1+r.IntN(40))
		for i := range all {
			all[i] = Earner{Rate: 1e9 + r.Uint64N(1e11), Blocks: 1 + r.Int64N(86400), Paid: r.Uint64N(1e10)}
		}
		rate := 2 * (1e8 + r.Uint64N(1e10))
		whole, half := Spread(all, rate, false, 86400), Spread(all, rate/2, false, 86400)
		if whole.Low > whole.Median || whole.Median > whole.High {
			t.Fatalf("%v", whole)
		}
		if d := int64(whole.Median) - 2*int64(half.Median); d < -1 || d > 2 {
			t.Fatalf("one earns %d, two halves %d each", whole.Median, half.Median)
		}
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		if got := Spread(all, rate, false, 86400); got != whole {
			t.Fatalf("the order matters: %v, %v", got, whole)
		}
	}
}

func TestBalance(t *testing.T) {
	p := Power{Watts: 100, PerKWh: 0.5}
	income := Range{Median: 4_000_000}
	got := p.Balance(income)
	if got.KWh < 2.399 || got.KWh > 2.401 || got.Cost < 1.199 || got.Cost > 1.201 || got.BreakEven < 0.299 ||
		got.BreakEven > 0.301 || got.Net != nil {
		t.Errorf("%+v", got)
	}
	p.OfAZen = 1
	if got = p.Balance(income); got.Net == nil || *got.Net < 2.799 || *got.Net > 2.801 {
		t.Errorf("%+v", got)
	}
	if got = p.Balance(Range{}); got.BreakEven != 0 || *got.Net > -1.199 {
		t.Errorf("without income: %+v", got)
	}
}

func TestRaises(t *testing.T) {
	params := registry.DefaultParams()
	p := worker("a", 1e11)
	p.Hardware = registry.Hardware{Kind: registry.GPU, Memory: 8 << 10, Upload: 60_000}
	p.Stake = 50_000_000
	names := map[string]int{}
	for _, s := range Raises(p, params) {
		names[s.Name] = len(s.Lacks)
		if s.WeighsPPM <= s.NowPPM {
			t.Errorf("%+v weighs no more", s)
		}
	}
	// the consumer class lacks the rate alone; bronze nothing but the promise
	if names["consumer"] != 1 || names["professional"] != 2 || names["bronze"] != 1 || names["silver"] != 2 ||
		names["gold"] != 4 {
		t.Errorf("%v", names)
	}
	p.Rate, p.Hardware.Memory, p.Tier = 5e12, 40<<10, registry.Gold
	if steps := Raises(p, params); len(steps) != 0 {
		t.Errorf("the best machine can be raised: %+v", steps)
	}
}
