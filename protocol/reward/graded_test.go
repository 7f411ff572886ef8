package reward

import (
	"testing"

	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run"
)

// A first conviction takes less of a large stake than one more, and still leaves whoever fakes with a loss, however
// large the stake is, with a quarter of the auditors and the accuser its own: what it takes does not follow from the
// stake but from the bond.
func TestFirstConvictionTakesLessAndStillDeters(t *testing.T) {
	params, penalty := registry.DefaultParams(), DefaultPenalty()
	for _, price := range []uint64{1000, 59_123, 1 << 40} {
		for _, rate := range []uint32{10_000, 100_000, 500_000, million} {
			seat := Seat(price, rate, params.CoverPPM, 0)
			for _, times := range []uint64{1, 2, 10, 100} {
				stake := times * seat
				if gain := penalty.Temptation(price, stake, rate); gain > 0 {
					t.Errorf("price %d, rate %d, %d times the stake: faking gains %d", price, rate, times, gain)
				}
				c := Conviction{Stake: stake, Bond: audit.Bond(price, rate), Least: params.WorkerStake}
				first := penalty.Taken(c)
				c.Again = true
				again := penalty.Taken(c)
				if first > again || times > 1 && stake > params.WorkerStake && first >= again || again < stake/2 {
					t.Errorf("a first conviction takes %d of %d, one more %d", first, stake, again)
				}
			}
		}
	}
}

func TestTaken(t *testing.T) {
	p := DefaultPenalty()
	for name, c := range map[string]struct {
		Conviction
		want uint64
	}{
		"a tenth":                        {Conviction{Stake: 100_000_000, Least: 1_000_000}, 10_000_000},
		"the bond, and the accuser's":    {Conviction{Stake: 100_000_000, Bond: 20_000_000}, 40_000_000},
		"no more than half":              {Conviction{Stake: 100_000_000, Bond: 200_000_000}, 50_000_000},
		"half of the smallest stake":     {Conviction{Stake: 1_000_000, Least: 1_000_000}, 500_000},
		"half the next time":             {Conviction{Stake: 100_000_000, Again: true}, 50_000_000},
		"and the bond":                   {Conviction{Stake: 100_000_000, Bond: 40_000_000, Again: true}, 80_000_000},
		"and no more than all":           {Conviction{Stake: 100_000_000, Bond: 1 << 63, Again: true}, 100_000_000},
		"nothing of nothing":             {Conviction{Bond: 7}, 0},
		"nothing of nothing, once again": {Conviction{Bond: 7, Again: true}, 0},
	} {
		if got := p.Taken(c.Conviction); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	p.MemoryBlocks = 0
	if got := p.Taken(Conviction{Stake: 100_000_000, Least: 1_000_000}); got != 50_000_000 {
		t.Errorf("without a memory it takes %d", got)
	}
}

// The ledger knows whether a conviction is the first, for as long as the penalty remembers, and the receipt says how
// much of which stake was taken.
func TestConvictionsAreRemembered(t *testing.T) {
	s := run.State{Terms: run.Terms{Job: "job", Units: 1, UnitFlops: 1_000_000, AuditPPM: 100_000, Segments: 1},
		Members: []run.Member{
			{ID: "liar", Role: run.Worker, Price: 1_000_000_000, Why: run.WhyVerdict}, {ID: "vera", Role: run.Verifier},
		}}
	verdict := []run.Event{{Kind: run.DisputeEnded, Who: "vera", Other: "liar", Why: run.WhyWrongWork}}
	for _, c := range []struct{ last, height, want int64 }{
		{0, 100, 10_000_000}, {1, 100, 50_000_000}, {1, DefaultMemoryBlocks + 1, 50_000_000},
		{1, DefaultMemoryBlocks + 2, 10_000_000},
	} {
		settled := Settle(s, verdict, Book{
			Escrow: market.Escrow{Budget: 1000}, Penalty: DefaultPenalty(), Height: c.height,
			Stake:     func(string) uint64 { return 100_000_000 },
			Convicted: func(string) int64 { return c.last }, Least: registry.DefaultParams().MinStake,
		})
		var out uint64
		for _, tr := range settled.Transfers {
			if tr.From == Stake("liar") {
				out += tr.Amount
			}
		}
		i := 0
		for settled.Receipts[i].Kind != Slash {
			i++
		}
		if r := settled.Receipts[i]; out != uint64(c.want) || r.Amount != out || r.Part != out || r.Whole != 100_000_000 ||
			!r.Jails() {
			t.Errorf("convicted at %d and at %d: takes %d: %+v", c.last, c.height, out, r)
		}
	}
}
