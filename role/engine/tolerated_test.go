package engine_test

import (
	"context"
	"errors"
	"testing"

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role/engine"
)

// drift is an executor that moves every weight by the learning rate, or fails at a step.
type drift struct {
	state  []*tensor.Tensor
	failAt int
	steps  int
}

var errDrift = errors.New("no more")

func (d *drift) Begin(state []*tensor.Tensor) error {
	d.state, d.steps = nil, 0
	for _, t := range state {
		d.state = append(d.state, t.Clone())
	}
	return nil
}

func (d *drift) Step(_ []int32, _ *tensor.Tensor, lr, _, _ float32) (float32, error) {
	if d.steps++; d.steps == d.failAt {
		return 0, errDrift
	}
	for _, t := range d.state[:len(d.state)/3] {
		for i := range t.F32() {
			t.F32()[i] -= lr
		}
	}
	return 1, nil
}

func (d *drift) State(into []*tensor.Tensor) error {
	for i, t := range d.state {
		copy(into[i].Bytes(), t.Bytes())
	}
	return nil
}

// Units that the run tolerates are computed on the executor; exact ones, and those that it fails at, with the kernels,
// and so is whatever is held against others.
func TestTolerated(t *testing.T) {
	task, genesis := newTask(t)
	e, err := engine.New(terms.Terms{Job: "fox"}, task, blob.NewMemory(), nil)
	if err != nil {
		t.Fatal(err)
	}
	base := terms.Checkpoint{Root: genesis.Root(), CID: "genesis"}
	e.Hold(base, genesis)
	exact, err := e.Train(t.Context(), base, 1)
	if err != nil {
		t.Fatal(err)
	}
	tolerant := terms.Terms{Tolerance: terms.Tolerance{DistancePPM: 100_000, CosinePPM: 990_000}}
	for _, c := range []struct {
		name    string
		terms   terms.Terms
		exact   bool // the attempt
		failAt  int
		on      bool // the executor computes it
		reports bool
	}{
		{"a tolerated unit", tolerant, false, 0, true, false},
		{"an exact attempt", tolerant, true, 0, false, false},
		{"an exact run", terms.Terms{}, false, 0, false, false},
		{"the executor fails in the middle", tolerant, false, 4, false, true},
	} {
		e.Follow(
			run.State{
				Progress: progress.Progress{
					Crew:   crew.Crew{Terms: c.terms},
					Window: work.Window{RoundState: work.RoundState{Base: base, Units: work.Units{{}, {Index: 1, Exact: c.exact}}}},
				},
			},
		)
		var failed error
		x := engine.Tolerated{Engine: e, On: &drift{failAt: c.failAt}, Failed: func(_ uint32, err error) { failed = err }}
		w, err := x.Train(t.Context(), base, 1)
		if err != nil {
			t.Fatal(c.name, err)
		}
		if on := w.Commit.Update != exact.Commit.Update; on != c.on || errors.Is(failed, errDrift) != c.reports {
			t.Errorf("%s: computed on the executor: %v, want %v; it failed with %v", c.name, on, c.on, failed)
		}
		if len(w.Commit.Segments) != len(exact.Commit.Segments) || w.Commit.Segments[0] != exact.Commit.Segments[0] {
			t.Errorf("%s: %d segments, from %v", c.name, len(w.Commit.Segments), w.Commit.Segments[0])
		}
		f, err := x.Measure(t.Context(), base, 1, w.Commit, w.Update)
		end := exact.Commit.Segments[len(exact.Commit.Segments)-1]
		if err != nil || (f.DistancePPM == 0) == c.on || f.End != end {
			t.Errorf("%s: measured %+v (%v), the exact execution ends in %v", c.name, f, err, end)
		}
	}
	e.Follow(
		run.State{
			Progress: progress.Progress{
				Crew:   crew.Crew{Terms: tolerant},
				Window: work.Window{RoundState: work.RoundState{Base: base, Units: work.Units{{}, {}}}},
			},
		},
	)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	x := engine.Tolerated{Engine: e, On: &drift{}, Failed: func(uint32, error) {
		t.Error("a unit that nobody wants is " +
			"no failure")
	}}
	if _, err := x.Train(gone, base, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want a unit that ends with its context", err)
	}
}
