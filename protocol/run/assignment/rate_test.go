package assignment

import (
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/transition"
)

// firstRound deals the first round of a run to workers of these rates and speeds, and returns how many units each has.
func firstRound(rules progress.Rules, units uint32, rates []uint64, speeds []uint32, sizes []uint32) []int {
	var p progress.Progress
	p.Rules = rules
	p.Terms = terms.Terms{Job: "job", Rounds: 10, Units: units, Segments: 6, Window: 2, UnitFlops: 300, Sizes: sizes}
	p.Terms.Deadlines.Train = 100
	p.Phase = progress.Assign
	for i, rate := range rates {
		m := crew.Member{ID: string(rune('a' + i)), Role: crew.Worker, Active: true, Rate: rate}
		if speeds != nil {
			m.Speed = speeds[i]
		}
		p.Members = append(p.Members, m)
	}
	d := New(transition.Begin(p, transition.Env{Height: 10, Beacon: canon.Sum("beacon")}), nil)
	d.Deal()
	had := make([]int, len(rates))
	for _, u := range d.Units {
		had[u.Worker[0]-'a']++
	}
	return had
}

// In the first round of a run workers get units in proportion to their measured rates. A worker whose rate was not
// measured counts as the mean of the others, and runs of earlier rules deal equally. A machine that was measured slow
// and works fast has a unit that measures it; one that was measured at any rate gets at most four times the units of
// the middle one.
func TestFirstRoundFollowsRates(t *testing.T) {
	const speed = 1 << 30
	for _, c := range []struct {
		rules         progress.Rules
		units         uint32
		rates         []uint64
		speeds, sizes []uint32
		want          []int
	}{
		{progress.RatesCount, 18, []uint64{speed / 2, speed, speed, 2 * speed}, nil, nil, []int{2, 4, 4, 8}},
		{progress.RoundingIsOwed, 16, []uint64{speed / 2, speed, speed, 2 * speed}, nil, nil, []int{4, 4, 4, 4}},
		{progress.RatesCount, 16, []uint64{0, 0, 0, 0}, nil, nil, []int{4, 4, 4, 4}},
		{progress.RatesCount, 24, []uint64{0, speed, speed, speed}, nil, nil, []int{6, 6, 6, 6}},
		{progress.RatesCount, 21, []uint64{speed, speed, speed, 1 << 60}, nil, nil, []int{3, 3, 3, 12}},
		// a newcomer counts as the others relate, and one without a rate as their mean
		{progress.RatesCount, 20, []uint64{speed, speed, 2 * speed, 0}, []uint32{512, 512, 0, 0}, nil,
			[]int{4, 4, 8, 4}},
		{progress.RatesCount, 4, []uint64{speed, 2 * speed}, nil, []uint32{1, 1, 1, 3}, []int{2, 2}},
		{progress.RatesCount, 41, []uint64{speed, speed, speed / 1000}, []uint32{512, 512, 0}, nil, []int{20, 20, 1}},
	} {
		if got := firstRound(c.rules, c.units, c.rates, c.speeds, c.sizes); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// Units that draw are dealt by rates, too, before any speed is known.
func TestFirstDrawingFollowsRates(t *testing.T) {
	d := drawingRun([]uint32{0, 0, 0}, []uint32{0, 0, 0}, 2, 7, 20)
	d.Rules, d.Open = progress.NewestRules, nil
	for i, rate := range []uint64{1000, 2000, 4000} {
		d.Members[i].Rate = rate
	}
	d.Round = 0
	d.dealApart(d.Shuffled(d.Active(crew.Worker)))
	had := map[string]int{}
	for _, u := range d.Units[2:] {
		had[u.Worker]++
	}
	if had["w000"] != 2 || had["w001"] != 4 || had["w002"] != 8 {
		t.Errorf("%v", had)
	}
}
