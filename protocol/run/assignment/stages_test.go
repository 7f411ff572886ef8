package assignment

import (
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run/auditing"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/transition"
	"github.com/starling-network/starling/protocol/run/work"
)

// inStages is a run of replicas of three stages, with workers of these rates.
func inStages(rules progress.Rules, replicas uint32, rates ...uint64) progress.Progress {
	var p progress.Progress
	p.Rules, p.Phase = rules, progress.Assign
	p.Terms = terms.Terms{Job: "job", Rounds: 10, Units: 3 * replicas, Segments: 6, Window: 2, UnitFlops: 300}
	p.Terms.Pipeline.Flops = []uint64{300, 300, 300}
	p.Terms.Deadlines.Train = 100
	for i, rate := range rates {
		p.Members = append(p.Members, crew.Member{ID: string(rune('a' + i)), Role: crew.Worker, Active: true, Rate: rate})
	}
	return p
}

// deal deals a round at a height.
func deal(p progress.Progress, height int64) *Assignment {
	draft := transition.Begin(p, transition.Env{Height: height, Beacon: canon.Sum("beacon")})
	audits, _ := auditing.New(draft, nil)
	d := New(draft, audits)
	d.Deal()
	return d
}

// had is how many units each worker has.
func had(d *Assignment) []int {
	n := make([]int, len(d.Members))
	for _, u := range d.Units {
		n[u.Worker[0]-'a']++
	}
	return n
}

// Stages go to workers by their rates. One that missed deadlines counts as slower, one without a rate as the mean of
// the others, one that is much faster than the middle one as four times as fast, and one that joined has its part. Runs
// of earlier rules deal in turn.
func TestStagesFollowRates(t *testing.T) {
	const speed = 1 << 30
	even := []int{2, 2, 2}
	for _, c := range []struct {
		rules  progress.Rules
		rates  []uint64
		change func(p *progress.Progress)
		want   []int
	}{
		{progress.StagesBySpeed, []uint64{3 * speed, 2 * speed, speed, speed, 2 * speed, 3 * speed}, nil,
			[]int{3, 2, 1, 1, 2, 3}},
		{progress.ReportsExtend, []uint64{3 * speed, 2 * speed, speed, speed, 2 * speed, 3 * speed}, nil,
			append(even, even...)},
		{progress.StagesBySpeed, []uint64{0, 0, 0, 0, 0, 0}, nil, append(even, even...)},
		{progress.StagesBySpeed, []uint64{0, speed, speed, speed, speed, speed}, nil, append(even, even...)},
		{progress.StagesBySpeed, []uint64{1 << 62, speed, speed, speed, speed}, nil, []int{4, 2, 2, 2, 2}},
		{progress.StagesBySpeed, []uint64{speed, speed, speed, speed, speed, speed, speed},
			func(p *progress.Progress) { p.Members[0].Missed = 2 }, []int{0, 2, 2, 2, 2, 2, 2}},
	} {
		p := inStages(c.rules, 4, c.rates...)
		if c.change != nil {
			c.change(&p)
		}
		d := deal(p, 10)
		if got := had(d); !slices.Equal(got, c.want) {
			t.Errorf("%v of rules %d: %v, wanted %v", c.rates, c.rules, got, c.want)
		}
		if len(d.Members) < 3 {
			continue
		}
		for r := 0; r < len(d.Units); r += 3 {
			if a, b, c := d.Units[r].Worker, d.Units[r+1].Worker, d.Units[r+2].Worker; a == b || b == c || a == c {
				t.Errorf("replica %d has workers %s, %s and %s", r/3, a, b, c)
			}
		}
	}
}

// A stage whose worker is gone goes to one that ends it soonest with the units that it has, and no worker that is not
// in its replica twice gets it.
func TestAStageThatIsLeftGoesToTheFastest(t *testing.T) {
	d := deal(inStages(progress.StagesBySpeed, 2, 100, 100, 100, 100, 100, 100, 400), 10)
	for i := range d.Units { // the fast one has nothing yet
		d.Unit(&d.RoundState, i).Worker = string(rune('a' + i))
	}
	restart(d, &d.RoundState, reason.MissedDeadline, 1)
	if u := d.Units[1]; u.Worker != "g" || u.Attempt != 1 || d.Units[3].Attempt != 0 {
		t.Errorf("it goes to %s in attempt %d, and the other replica is in attempt %d", u.Worker, u.Attempt,
			d.Units[3].Attempt)
	}
	restart(d, &d.RoundState, reason.MissedDeadline, 0)
	if u := d.Units[0]; u.Worker == "g" || u.Worker == "c" {
		t.Errorf("%s has two stages of a replica, and others have none", u.Worker)
	}
}

// Stages of a worker are computed at the same time: when it has committed one, the others have not begun then.
func TestStagesBeginTogether(t *testing.T) {
	for rules, want := range map[progress.Rules]int64{progress.StagesBySpeed: 10, progress.ReportsExtend: 30} {
		d := deal(inStages(rules, 2, 1, 1, 1), 10)
		d.Env.Height = 30
		i := slices.IndexFunc(d.Units, func(u *work.Unit) bool { return u.Worker == "a" })
		d.Unit(&d.RoundState, i).Status = work.Committed
		d.Turn("a", 0)
		for _, u := range d.Units {
			if u.Worker == "a" && u.Status == work.Assigned && u.AssignedAt != want {
				t.Errorf("rules %d: unit %d begins at %d, wanted %d", rules, u.Index, u.AssignedAt, want)
			}
		}
	}
}

// Rates follow how late the replicas of workers were: of two workers without a measured rate, one of which makes its
// replicas take twice as long, that one is dealt fewer stages from round to round, until all end together.
func TestRatesOfStagesAreLearnt(t *testing.T) {
	p := inStages(progress.StagesBySpeed, 8, 0, 0, 0, 0, 1<<40, 1<<40)
	speed := map[string]int64{"a": 1, "b": 2, "c": 2, "d": 2, "e": 2, "f": 2}
	var first, last int64
	for round := range uint32(12) {
		p.Round, p.Units = round, nil
		d := deal(p, 10)
		load, ends := map[string]int64{}, make([]int64, 8)
		for _, u := range d.Units {
			load[u.Worker] += 24
		}
		span := int64(0)
		for i, u := range d.Units {
			ends[i/3] = max(ends[i/3], load[u.Worker]/speed[u.Worker])
			span = max(span, ends[i/3])
		}
		if last = span; round == 0 {
			first = span
		}
		l := d.RoundState
		l.Units = nil
		for i, u := range d.Units {
			l.Units = append(l.Units, &work.Unit{Index: u.Index, Worker: u.Worker, Status: work.Committed, Took: ends[i/3]})
		}
		p.Members, p.Open = d.Members, []work.RoundState{l}
	}
	if best := int64(24 * 24 / 11); first < best*16/10 || last > best*13/10 {
		t.Errorf("the first round takes %d, and the last %d, and %d would do", first, last, best)
	}
}
