package deterrence

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/reward/penalty"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/terms"
)

func TestDetection(t *testing.T) {
	for _, c := range []struct {
		ppm, steps uint32
		want       float64
	}{
		{10_000, 100, 1 - math.Pow(0.99, 100)}, // 63.4 %
		{50_000, 100, 1 - math.Pow(0.95, 100)}, // 99.4 %
		{20_000, 1, 0.02},
		{1, 1, 1e-6},
		{1, MaxCheatSteps, 1},
		{0, 1000, 0},
		{million, 1, 1},
		{500_000, 63, 1 - math.Pow(0.5, 63)},
	} {
		o, err := CheatModel{AuditPPM: c.ppm, Steps: c.steps, CheatPPM: million}.Gain()
		if err != nil {
			t.Fatal(err)
		}
		if got := float64(o.Detection) / Certainty; math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%d ppm, %d steps: %v, want %v", c.ppm, c.steps, got, c.want)
		}
	}
}

func TestStakeThatDeters(t *testing.T) {
	for _, c := range []struct { // verification.md, section 7.1: with R = 1.3 C
		ppm  uint32
		want uint64
	}{{5_000, 19870}, {10_000, 9870}, {20_000, 4870}, {50_000, 1870}, {100_000, 870}, {200_000, 370}, {million, 0},
		{0, NoStake}} {
		o, err := CheatModel{Reward: 130, Cost: 100, AuditPPM: c.ppm, Steps: 1, CheatPPM: million}.Gain()
		if err != nil || o.Needed != c.want {
			t.Errorf("%d ppm: %d uzen, want %d (%v)", c.ppm, o.Needed, c.want, err)
		}
	}
	if o, _ := (CheatModel{Cost: 100, AuditPPM: 50_000, Steps: 8}).Gain(); o.Needed != 0 || o.Gain != 0 || o.Audits != 5 {
		t.Errorf("an honest worker: %+v", o)
	}
}

// The needed stake is exactly where the gain changes its sign, and deters every smaller fraction too.
func TestNeededIsTheEdge(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		w := CheatModel{Reward: r.Uint64N(1 << 30), Cost: r.Uint64N(1 << 30), AuditPPM: 1 + r.Uint32N(million),
			Steps: 1 + r.Uint32N(200), CheatPPM: million}
		o, err := w.Gain()
		if err != nil {
			t.Fatal(err)
		}
		w.Stake = o.Needed
		if at, err := w.Gain(); err != nil || at.Gain > 0 || at.Needed != o.Needed {
			t.Fatalf("%+v: %+v (%v)", w, at, err)
		}
		part := w
		part.CheatPPM = r.Uint32N(million)
		if at, _ := part.Gain(); at.Gain > 0 {
			t.Fatalf("%+v: a part pays: %+v", part, at)
		}
		if w.Stake == 0 {
			continue
		}
		if w.Stake--; w.Stake > 0 {
			if below, _ := w.Gain(); below.Gain < 0 && w.Cost > 0 {
				t.Fatalf("%+v: a smaller stake deters: %+v", w, below)
			}
		}
	}
}

func TestWagerLimits(t *testing.T) {
	for _, w := range []CheatModel{
		{Steps: 0}, {Steps: MaxCheatSteps + 1}, {Steps: 1, AuditPPM: million + 1}, {Steps: 1, CheatPPM: million + 1},
		{Steps: 1, Stake: MaxCheatSum + 1}, {Steps: 1, Cost: MaxCheatSum + 1}, {Steps: 1, Reward: MaxCheatSum + 1},
	} {
		if _, err := w.Gain(); !errors.Is(err, ErrCheatModel) {
			t.Errorf("%+v: %v", w, err)
		}
	}
	o, err := CheatModel{
		Stake:    MaxCheatSum,
		Reward:   MaxCheatSum,
		Cost:     MaxCheatSum,
		AuditPPM: million,
		Steps:    MaxCheatSteps,
		CheatPPM: million,
	}.Gain()
	if err != nil || o.Gain != -MaxCheatSum {
		t.Errorf("%+v, %v", o, err)
	}
	o, err = CheatModel{Cost: MaxCheatSum, AuditPPM: 1, Steps: 1, CheatPPM: million}.Gain()
	if err != nil || o.Needed != NoStake {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestToPost(t *testing.T) {
	for _, c := range []struct {
		taken uint64
		ppm   uint32
		want  uint64
	}{{100, penalty.DefaultSlashPPM, 200}, {100, 300_000, 334}, {0, 0, 0}, {1, 0, NoStake},
		{NoStake, penalty.DefaultSlashPPM, NoStake},
		{7, million, 7}} {
		if got := ToPost(c.taken, c.ppm); got != c.want {
			t.Errorf("ToPost(%d, %d) = %d, want %d", c.taken, c.ppm, got, c.want)
		}
	}
}

// The stake of a seat, with the default parameters of a network, makes faking a result a loss at every price and rate
// of audits; a twentieth less leaves a gain where audits are rare. The market asks for the same stake.
func TestStakeOfASeatLeavesNoTemptation(t *testing.T) {
	params, slash := registry.DefaultParams(), penalty.Default()
	for _, price := range []uint64{1000, 59_123, 1 << 40} {
		for _, rate := range []uint32{1_000, 10_000, 50_000, 100_000, 500_000, million} {
			stake := Seat(price, rate, params.CoverPPM, 0)
			if gain := Temptation(slash, price, stake, rate); gain > 0 {
				t.Errorf("price %d, rate %d: a stake of %d leaves %d", price, rate, stake, gain)
			}
			if gain := Temptation(slash, price, stake-stake/20, rate); rate <= 50_000 && gain <= 0 {
				t.Errorf("price %d, rate %d: less than %d is enough", price, rate, stake)
			}
			o := market.Order{Terms: terms.Terms{UnitFlops: price * 1_000_000, AuditPPM: rate}}
			if got := o.Stake(crew.Worker, 1_000_000_000, params); got != max(stake, params.WorkerStake) {
				t.Errorf("price %d, rate %d: the market asks %d, not %d", price, rate, got, stake)
			}
		}
	}
	if Seat(1<<62, 1, 4_000_000, 0) != NoStake || Seat(0, 5, 1, 7) != 7 {
		t.Error("a stake beyond all, or below the least")
	}
}

// A first conviction takes less of a large stake than a second one, and still makes faking a loss at any size of the
// stake, for an author that owns a quarter of the auditors and the accuser: the amount follows from the bond, not from
// the stake.
func TestFirstConvictionTakesLessAndStillDeters(t *testing.T) {
	params, slash := registry.DefaultParams(), penalty.Default()
	for _, price := range []uint64{1000, 59_123, 1 << 40} {
		for _, rate := range []uint32{10_000, 100_000, 500_000, million} {
			seat := Seat(price, rate, params.CoverPPM, 0)
			for _, times := range []uint64{1, 2, 10, 100} {
				stake := times * seat
				if gain := Temptation(slash, price, stake, rate); gain > 0 {
					t.Errorf("price %d, rate %d, %d times the stake: faking gains %d", price, rate, times, gain)
				}
				c := penalty.Conviction{Stake: stake, Bond: audit.Bond(price, rate), Least: params.WorkerStake}
				first := slash.Taken(c)
				c.Again = true
				again := slash.Taken(c)
				if first > again || times > 1 && stake > params.WorkerStake && first >= again || again < stake/2 {
					t.Errorf("a first conviction takes %d of %d, one more %d", first, stake, again)
				}
			}
		}
	}
}

// The formula of `starling network economics` and the rules agree on a deposit: a worker that leaves all of m units
// undone gains nothing over the saved cost, and one faked unit is worth nothing.
func TestDepositLeavesNoTemptation(t *testing.T) {
	for _, price := range []uint64{1000, 59_123, 1 << 40} {
		for _, rate := range []uint32{audit.TolerantPPM, 800_000, million} {
			deposit := audit.Deposit(price, rate)
			if gain := Backed(price, deposit, rate); gain > 0 {
				t.Errorf("price %d, rate %d: a faked unit gains %d", price, rate, gain)
			}
			if gain := Backed(price, deposit/2, rate); gain <= 0 {
				t.Errorf("price %d, rate %d: with half of the deposit a faked unit gains %d", price, rate, gain)
			}
			for m := uint32(1); m <= 64; m *= 2 {
				all := uint64(m) * price
				odds, err := CheatModel{Stake: deposit, Reward: all, Cost: all, AuditPPM: audit.Forfeits(rate), Steps: m,
					CheatPPM: million}.Gain()
				if err != nil || odds.Gain > 0 {
					t.Errorf("price %d, rate %d, %d units: %+v, %v", price, rate, m, odds, err)
				}
			}
		}
	}
}
