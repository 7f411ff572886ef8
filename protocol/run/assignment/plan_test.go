package assignment

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/transition"
	"github.com/starling-network/starling/protocol/run/work"
)

// drawingRun is a run in a round whose units are dealt to workers with these speeds at units that learn, and that draw.
func drawingRun(learn, draw []uint32, units, each, round uint32) *Assignment {
	var p progress.Progress
	p.Terms = terms.Terms{Job: "job", Rounds: 80, Units: units, Segments: 4, UnitFlops: 300,
		Rollout: terms.Rollout{Units: units * each, Staleness: 2, Flops: 100}}
	p.Terms.Deadlines.Train = 100
	p.Phase, p.Round = progress.Train, round
	for i := range learn {
		p.Members = append(p.Members, crew.Member{ID: fmt.Sprintf("w%03d", i), Role: crew.Worker, Active: true,
			Speed: learn[i], DrawSpeed: draw[i]})
	}
	answers := work.RoundState{Round: round - 2}
	for i := range units + units*each {
		answers.Units = append(answers.Units, &work.Unit{Index: i, Status: work.Accepted, Draws: i >= units})
	}
	p.Open = []work.RoundState{answers}
	return New(transition.Begin(p, transition.Env{Height: 1000, Beacon: canon.Sum("beacon")}), nil)
}

// Units of either kind are done as early as the speeds allow: no other dealing of the units of a kind ends before. A
// worker that learns draws only where the others would be later. The same state is dealt the same way.
func TestDealtApart(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 11))
	for range 300 {
		workers, units, each := 1+r.IntN(40), uint32(1+r.IntN(6)), uint32(1+r.IntN(8))
		learn, draw := make([]uint32, workers), make([]uint32, workers)
		for i := range learn {
			learn[i], draw[i] = uint32(256+r.IntN(20000)), uint32(256+r.IntN(9000))
		}
		d := drawingRun(learn, draw, units, each, 20)
		d.dealApart(d.Shuffled(d.Active(crew.Worker)))
		busy := map[string]uint64{}
		ends := func(units work.Units, times []uint32) {
			before := maps.Clone(busy)
			var last uint64
			for _, u := range units {
				if u.Worker == "" || u.Status != work.Assigned || u.Deadline <= 1000 {
					t.Fatalf("unit %d: %+v", u.Index, u)
				}
				i, _ := d.Index(u.Worker)
				busy[u.Worker] += uint64(times[i])
				last = max(last, busy[u.Worker])
			}
			n := uint64(0) // units that can be done before that
			for i, m := range d.Members {
				n += (last - 1 - min(last-1, before[m.ID])) / uint64(times[i])
			}
			if n >= uint64(len(units)) {
				t.Fatalf("%d units end after %d, and %d could be done before", len(units), last, n)
			}
		}
		ends(d.Units.Learning(), learn)
		ends(d.Units[units:], draw)
		again := drawingRun(learn, draw, units, each, 20)
		again.dealApart(again.Shuffled(again.Active(crew.Worker)))
		if !slices.EqualFunc(d.Units, again.Units, func(a, b *work.Unit) bool { return a.Worker == b.Worker }) {
			t.Fatal("the same state is dealt in two ways")
		}
	}
}

// In the first rounds units that learn go to workers whose speed at them is not known. Later such a worker counts as
// its speed at drawing says, and one that was late as slower.
func TestUnmeasuredLearners(t *testing.T) {
	learns := func(d *Assignment) (list []string) {
		d.dealApart(d.Shuffled(d.Active(crew.Worker)))
		for _, u := range d.Units.Learning() {
			list = append(list, u.Worker)
		}
		slices.Sort(list)
		return list
	}
	learn, draw := []uint32{3000, 3000, 0, 0}, []uint32{1000, 1000, 900, 1100}
	if got := learns(drawingRun(learn, draw, 2, 1, 9)); !slices.Equal(got, []string{"w002", "w003"}) {
		t.Errorf("in the first rounds %v learn", got)
	}
	if got := learns(drawingRun(learn, draw, 1, 1, 10)); !slices.Equal(got, []string{"w002"}) {
		t.Errorf("later %v learns", got)
	}
	d := drawingRun(learn, draw, 1, 1, 10)
	if d.Members[2].Missed++; slices.Contains(learns(d), "w002") {
		t.Error("a worker that was late learns")
	}
}

// While the answers are drawn from which a round is about to learn, its units that draw leave those workers free that
// will learn.
func TestLearnersAreFree(t *testing.T) {
	d := drawingRun([]uint32{900, 900, 3000, 3000, 3000}, slices.Repeat([]uint32{900}, 5), 2, 1, 20)
	late := *d.Open[0].Units[2]
	late.Status, late.Worker, late.AssignedAt = work.Assigned, "w004", 999
	d.Open[0].Units[2] = &late
	d.dealApart(d.Shuffled(d.Active(crew.Worker)))
	for _, u := range d.Units[2:] {
		if u.Worker != "w002" && u.Worker != "w003" {
			t.Errorf("%s draws", u.Worker)
		}
	}
	if !d.Units[0].Waits() {
		t.Error("a unit learns what is not drawn")
	}
}

// A round of as many units as there may be is dealt in a time that does not grow with their square.
func BenchmarkDealtApart(b *testing.B) {
	speeds := slices.Repeat([]uint32{2560}, 128)
	for b.Loop() {
		d := drawingRun(speeds, speeds, 128, 7, 20)
		d.dealApart(d.Shuffled(d.Active(crew.Worker)))
	}
}
