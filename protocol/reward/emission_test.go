package reward

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/protocol/registry"
)

// efforts of three machines in an epoch of 100 blocks.
func efforts() Epoch {
	params := registry.DefaultParams()
	params.EpochBlocks, params.BeatBlocks, params.Witnesses = 100, 10, 1
	effort := func(id string, tier registry.Tier, beats uint32, kind registry.Kind, rate uint64) Effort {
		return Effort{
			Participant: registry.Participant{ID: id, Stake: 1_000_000, Tier: tier, Rate: rate,
				Hardware: registry.Hardware{Kind: kind, Memory: 80 << 10, Upload: 1000}},
			Uptime: &registry.Uptime{From: 300, Beats: beats}, Flops: 5_000_000_000_000, Fees: 1_000_000, Bytes: 10,
			Serves: 10,
		}
	}
	e := Epoch{Number: 3, Height: 399, Registry: params,
		Schedule: Schedule{PerEpoch: 1_000_000, BasePPM: 200_000, WorkPPM: 700_000, BandwidthPPM: 100_000}}
	e.Efforts = []Effort{
		effort("gold", registry.Gold, 10, registry.GPU, 20e12), effort("down", registry.Bronze, 9, registry.GPU, 600e9),
		effort("cpu", registry.Bronze, 10, registry.CPU, 250e9),
	}
	return e
}

func TestSettleEpoch(t *testing.T) {
	e := efforts()
	e.Efforts[2].Speeds = []registry.Speed{{Rate: 400, Best: 500}}
	got := map[string]uint64{}
	s := SettleEpoch(e)
	for i, r := range s.Receipts {
		got[fmt.Sprint(r.Who, " ", r.Kind, " ", r.Reason)] = r.Amount
		if r.Seq != uint64(i) || r.Job != "epoch/3" || !r.OfEpoch() || strings.Contains(Explain(r), "because of") {
			t.Errorf("%+v: %s", r, Explain(r))
		}
		if r.Kind != Slash && !strings.Contains(Arithmetic(r, nil)[0], "= "+r.Coin.Text(r.Amount)) {
			t.Errorf("%+v: %v", r, Arithmetic(r, nil))
		}
	}
	want := map[string]uint64{
		"gold base kept_uptime": 200_000 * 4 / 5, "cpu base kept_uptime": 200_000 / 5, "down base downtime": 0,
		// Multipliers 3, 1 and a half.
		"gold work_reward verified": 700_000 * 6 / 9, "down work_reward verified": 700_000 * 2 / 9,
		"cpu work_reward verified":    700_000 / 9,
		"gold bandwidth bytes_served": 33_333, "down bandwidth bytes_served": 33_333, "cpu bandwidth throttled": 33_333,
		"down slash downtime": 10_000,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v\nwant %v", got, want)
	}
	slices.Reverse(e.Efforts)
	if again := SettleEpoch(e); fmt.Sprint(again) != fmt.Sprint(s) {
		t.Error("the order of the efforts matters")
	}
}

// Every zero has a reason, and what to do.
func TestZerosOfAnEpoch(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*Epoch)
		kind  Kind
		want  string
	}{
		"no schedule":  {func(e *Epoch) { e.Schedule = DefaultSchedule() }, WorkReward, NothingMade},
		"not measured": {func(e *Epoch) { e.Efforts[0].Rate = 0 }, WorkReward, NotMeasured},
		"slashed":      {func(e *Epoch) { e.Efforts[0].Jailed = true }, Base, Barred},
		"late":         {func(e *Epoch) { e.Efforts[0].Uptime = &registry.Uptime{From: 301, Beats: 10} }, Base, PartOfEpoch},
		"down":         {func(e *Epoch) { e.Efforts[0].Uptime = &registry.Uptime{From: 300} }, Base, Downtime},
		"tiny":         {func(e *Epoch) { e.Efforts[0].Serves = 1 << 40 }, Bandwidth, TooSmall},
		"unpaid":       {func(e *Epoch) { e.Efforts[0].Fees = 0 }, Bandwidth, NoFees},
	} {
		e := efforts()
		c.spoil(&e)
		at := slices.IndexFunc(SettleEpoch(e).Receipts, func(r Receipt) bool { return r.Who == "gold" && r.Kind == c.kind })
		if r := SettleEpoch(e).Receipts[at]; r.Amount != 0 || r.Reason != c.want || r.Fix == "" {
			t.Errorf("%s: %+v, want %s", name, r, c.want)
		}
	}
}

// An account that orders work from itself, declares anything, acknowledges its own bytes, and is the only one that
// works, gets less than the fee that it pays: also of a large pot, and in any class of its machine.
func TestOrderOfOneselfEarnsLessThanItsFee(t *testing.T) {
	for _, fees := range []uint64{1, 9, 500, 1_000_000} {
		e := efforts()
		e.Schedule.PerEpoch = maxEmission
		self := e.Efforts[0] // weighs 3
		self.Tier, self.Uptime, self.Flops, self.Fees, self.Bytes, self.Serves = registry.NoTier, nil, 1e19, fees, 1<<50,
			1<<50
		e.Efforts = []Effort{self}
		var made uint64
		for _, r := range SettleEpoch(e).Receipts {
			made += r.Amount
			if text := strings.Join(Arithmetic(r, nil), "\n"); !r.Capped || !strings.HasSuffix(text, r.Coin.Text(r.Amount)) {
				t.Errorf("%+v: %s", r, text)
			}
		}
		if made >= fees {
			t.Errorf("%d uzen are made of fees of %d", made, fees)
		}
	}
}

// Declarations take nothing from accounts that work for others: operations and bytes have no weight, only the pay for
// them.
func TestDeclaredWorkWeighsNothing(t *testing.T) {
	e := efforts()
	before, honest := SettleEpoch(e), func(s Settlement) (sum uint64) {
		for _, r := range s.Receipts {
			if r.Who == "gold" && (r.Kind == WorkReward || r.Kind == Bandwidth) {
				sum += r.Amount
			}
		}
		return sum
	}
	liar := e.Efforts[0]
	liar.ID, liar.Tier, liar.Uptime, liar.Flops, liar.Fees, liar.Bytes, liar.Serves = "liar", registry.NoTier, nil, 1e19,
		500, 1<<50, 1<<50
	e.Efforts = append(e.Efforts, liar)
	if was, is := honest(before), honest(SettleEpoch(e)); is+is/1000 < was {
		t.Errorf("an honest worker is made %d in place of %d", is, was)
	}
}

// A stake earns for its uptime what it is, on however many accounts it lies.
func TestUptimeIsPaidByStake(t *testing.T) {
	e := efforts()
	one := e.Efforts[2]
	one.ID, one.Stake, one.Bytes, one.Flops = "one", 250_000_000, 0, 0
	e.Efforts = []Effort{one}
	for i := range 25 {
		part := one
		part.ID, part.Stake = fmt.Sprint("part", i), 10_000_000
		e.Efforts = append(e.Efforts, part)
	}
	var alone, split uint64
	for _, r := range SettleEpoch(e).Receipts {
		if r.Who == "one" {
			alone += r.Amount
		} else {
			split += r.Amount
		}
	}
	if split > alone || alone != 100_000 {
		t.Errorf("250 ZEN earn %d on one account, %d on 25", alone, split)
	}
}

func TestEmission(t *testing.T) {
	s := Schedule{PerEpoch: 1000, Halving: 10}
	for epoch, want := range map[int64]uint64{0: 1000, 9: 1000, 10: 500, 25: 250, 1 << 40: 0} {
		if got := s.Emission(epoch); got != want {
			t.Errorf("epoch %d: %d, want %d", epoch, got, want)
		}
	}
	if (Schedule{PerEpoch: 7}).Emission(1<<50) != 7 || DefaultSchedule().Emission(0) != 0 ||
		DefaultSchedule().Validate() != nil {
		t.Error("a schedule without halving, or the default one")
	}
	for _, bad := range []Schedule{{BasePPM: million, WorkPPM: 1}, {PerEpoch: maxEmission + 1}} {
		if err := bad.Validate(); !errors.Is(err, ErrSchedule) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// No more is made than the schedule says, and no more taken than is staked, whatever was done.
func FuzzSettleEpoch(f *testing.F) {
	f.Add(uint64(1), uint64(1_000_000))
	f.Fuzz(func(t *testing.T, seed, perEpoch uint64) {
		r := rand.New(rand.NewPCG(seed, 0))
		e := efforts()
		e.Schedule.PerEpoch = perEpoch % maxEmission
		e.Schedule.BasePPM, e.Schedule.WorkPPM = r.Uint32N(300_000), r.Uint32N(600_000)
		e.Efforts = nil
		stakes := map[string]uint64{}
		for i := range r.IntN(12) {
			p := registry.Participant{
				ID: fmt.Sprint("p", i), Stake: r.Uint64() >> r.IntN(64), Tier: registry.Tier(r.IntN(5)),
				Rate: r.Uint64() >> r.IntN(64), Jailed: r.IntN(5) == 0,
				Hardware: registry.Hardware{Kind: registry.Kind(r.IntN(3)), Memory: r.Uint64N(1 << 18), Upload: r.Uint64N(1 << 20)},
			}
			effort := Effort{Participant: p, Flops: r.Uint64() >> r.IntN(64), Fees: r.Uint64() >> r.IntN(64),
				Serves: r.Uint64() >> r.IntN(64), Bytes: r.Uint64() >> r.IntN(64),
				Speeds: []registry.Speed{{Rate: r.Uint64N(1 << 20), Best: r.Uint64N(1 << 20)}}}
			if p.Tier != registry.NoTier {
				effort.Uptime = &registry.Uptime{From: r.Int64N(400), Beats: r.Uint32N(12), Missed: r.Uint32N(4)}
			}
			e.Efforts = append(e.Efforts, effort)
			stakes[Stake(p.ID)] = p.Stake
		}
		s := SettleEpoch(e)
		made := uint64(0)
		for _, transfer := range s.Transfers {
			if transfer.From == Emission {
				made += transfer.Amount
				continue
			}
			if transfer.To != CommunityPool || transfer.Amount > stakes[transfer.From] {
				t.Fatalf("%+v of a stake of %d", transfer, stakes[transfer.From])
			}
			stakes[transfer.From] -= transfer.Amount
		}
		if made > e.Schedule.PerEpoch {
			t.Fatalf("%d uzen made of %d", made, e.Schedule.PerEpoch)
		}
		var told uint64
		for _, receipt := range s.Receipts {
			told += receipt.Amount
			i := slices.IndexFunc(e.Efforts, func(f Effort) bool { return f.ID == receipt.Who })
			if most, bound := e.Efforts[i].limit(receipt.Kind); bound && receipt.Amount > most {
				t.Fatalf("more is made than %d of the fees: %+v", most, receipt)
			}
			if receipt.Amount == 0 && receipt.Kind != Slash && receipt.Fix == "" {
				t.Fatalf("a zero without advice: %+v", receipt)
			}
		}
		for _, transfer := range s.Transfers {
			told -= transfer.Amount
		}
		if told != 0 {
			t.Fatalf("receipts and transfers differ by %d", told)
		}
	})
}

func TestGrant(t *testing.T) {
	for name, c := range map[string]struct {
		ppm  uint32
		work []ShareBalance
		want string
	}{
		"thirds": {300_000, []ShareBalance{{"b", 7}, {"a", 7}, {"c", 7}},
			"[{carol 700000} {a 100000} {b 100000} {c 100000}]"},
		"remainders":     {1_000_000, []ShareBalance{{"b", 1}, {"a", 1}, {"c", 1}}, "[{a 333334} {b 333333} {c 333333}]"},
		"nobody":         {1_000_000, nil, "[{carol 1000000}]"},
		"the consumer":   {500_000, []ShareBalance{{"carol", 1}, {"a", 3}}, "[{carol 625000} {a 375000}]"},
		"nothing":        {0, []ShareBalance{{"a", 1}}, "[{carol 1000000}]"},
		"large":          {1_000_000, []ShareBalance{{"a", 1 << 63}, {"b", 1 << 63}}, "[{a 500000} {b 500000}]"},
		"one in a crowd": {10, []ShareBalance{{"a", 1}, {"b", 1 << 60}}, "[{carol 999990} {b 10}]"},
	} {
		granted := Grant("carol", c.ppm, c.work)
		if fmt.Sprint(granted) != c.want {
			t.Errorf("%s: %v, want %s", name, granted, c.want)
		}
	}
}

// Revenue is conserved to the last uzen, whatever is paid, transferred and claimed.
func FuzzRevenue(f *testing.F) {
	f.Add(uint64(1), 40)
	f.Fuzz(func(t *testing.T, seed uint64, steps int) {
		r := rand.New(rand.NewPCG(seed, 0))
		m := Model{Job: "job"}
		shares, holders := []uint64{Shares - 300_001, 300_000, 1}, make([]Holder, 3)
		var paid, claimed uint64
		for range min(max(steps, 0), 200) {
			a, b := r.IntN(3), r.IntN(3)
			switch r.IntN(3) {
			case 0:
				amount := r.Uint64N(5_000_000)
				m, paid = m.Pay(amount), paid+amount
			case 1:
				holders[a], holders[b] = holders[a].Accrue(m, shares[a]), holders[b].Accrue(m, shares[b])
				n := r.Uint64N(shares[a] + 1)
				shares[a] -= n
				shares[b] += n
			case 2:
				var r Receipt
				m, holders[a], r = m.Claim("a", holders[a], shares[a], 1)
				claimed += r.Amount
				if text := strings.Join(Arithmetic(r, nil), "\n"); r.Pot+r.Part*r.Whole != r.Amount ||
					!strings.HasSuffix(text, "= "+r.Coin.Text(r.Amount)) || (r.Amount == 0) != (r.Reason == NothingDue) {
					t.Fatalf("%+v: %s", r, text)
				}
			}
			due := uint64(0)
			for i, h := range holders {
				due += h.Accrue(m, shares[i]).Due
			}
			if m.Held != paid-claimed || due+m.Carry != m.Held {
				t.Fatalf("%d paid, %d claimed, %d due, %+v", paid, claimed, due, m)
			}
		}
	})
}
