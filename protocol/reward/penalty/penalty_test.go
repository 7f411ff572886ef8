package penalty

import (
	"errors"
	"testing"
)

func TestTaken(t *testing.T) {
	p := Default()
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

func TestPenaltyThatGovernsNothing(t *testing.T) {
	for name, p := range map[string]Params{"nothing": {}, "more than all": {SlashPPM: million + 1},
		"all of it given away":     {SlashPPM: 500_000, BountyPPM: million},
		"more for a seal than all": {SlashPPM: 1, UnopenedPPM: million + 1}} {
		if err := p.Validate(); !errors.Is(err, ErrParams) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := Default().Validate(); err != nil {
		t.Error(err)
	}
}
