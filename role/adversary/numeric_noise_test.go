package adversary_test

import (
	"context"
	"testing"

	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role/adversary"
	"github.com/starling-network/starling/role/party"
)

// The distance of an update of 50 steps with other arithmetic from the exact one, compared to that of lies: the
// default tolerance of a job (distance 0.1, cosine 0.99) lies between.
func TestNoiseAndLiesBesideTheTolerance(t *testing.T) {
	e, base := smallEngine(t)
	tolerance := terms.Tolerance{DistancePPM: 100_000, CosinePPM: 990_000}
	for _, c := range []struct {
		name   string
		act    adversary.Attack
		within bool
	}{
		{"the last of 23 bits", adversary.NondeterministicStack{Bits: 1}, true},
		{"4 bits", adversary.NondeterministicStack{Bits: 4}, true},
		{"8 bits", adversary.NondeterministicStack{Bits: 8}, true},
		{"12 bits", adversary.NondeterministicStack{Bits: 12}, true},
		{"16 bits, as bfloat16 weights", adversary.NondeterministicStack{Bits: 16}, true},
		{"1 % off the rate", adversary.WrongRate{Factor: 1.01}, true},
		{"20 % off the rate", adversary.WrongRate{Factor: 1.2}, false},
		{"one of 50 steps left out", adversary.TrainsLess{Steps: 49}, true},
		{"10 of 50 steps left out", adversary.TrainsLess{Steps: 40}, false},
		{"other data", adversary.WrongData{}, false},
	} {
		p := &party.Executor{Compute: e}
		state := func(context.Context) (run.State, error) {
			return run.State{
				Progress: progress.Progress{
					Crew:   crew.Crew{Terms: terms.Terms{Tolerance: tolerance}},
					Window: work.Window{RoundState: work.RoundState{Base: base, Units: work.Units{{}, {}, {}, {}}}},
				},
			}, nil
		}
		c.act.Install(adversary.Setup{Party: p, Honest: e, State: state})
		w, err := p.Compute.Train(context.Background(), base, 1)
		if err != nil {
			t.Fatal(err)
		}
		like, err := e.Measure(context.Background(), base, 1, w.Commit, w.Update)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%-30s distance %.5f cosine %.6f", c.name, float64(like.DistancePPM)/1e6, float64(like.CosinePPM)/1e6)
		if got := tolerance.Holds(like.DistancePPM, like.CosinePPM); got != c.within {
			t.Errorf("%s: within the tolerance: %v, want %v", c.name, got, c.within)
		}
	}
}
