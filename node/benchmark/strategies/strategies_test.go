package strategies

import (
	"context"
	"errors"
	"math"
	"testing"
)

// The work of strategies ends when the context is cancelled, even a simulation of very many rounds.
func TestStrategiesEnd(t *testing.T) {
	o := Quick
	o.Threads, o.ScaleModel = 1, 1<<20
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Compare(ctx, o); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Every strategy trains the model, the bytes sent are those that were compared, and a robust rule withstands a
// hostile minority.
func TestStrategiesTrainAModel(t *testing.T) {
	if !*all {
		t.Skip("it takes minutes: -args -long makes it")
	}
	o := Quick
	o.Width, o.Steps, o.AttackRounds, o.Threads, o.Length, o.ScaleModel = 16, 20, 1, 1, 16, 0
	r, err := Compare(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Losses) < 15 || len(r.Attacks) != 1+len(attacks) {
		t.Fatalf("%d strategies, %d attacks", len(r.Losses), len(r.Attacks))
	}
	less := map[string]float64{}
	for _, l := range r.Losses {
		less[l.Name] = l.Less
		if !(l.Mean > 0 && l.Mean < math.Log(256)) {
			t.Errorf("%s: a loss of %v", l.Name, l.Mean)
		}
	}
	if a, b := less["fedavg"], less["sparseloco 66 of 4096, signs, rounds of 10"]; a >= b || math.Abs(a/20-1) > 0.1 ||
		less["allreduce"] > 1 {
		t.Errorf("fewer bytes: %v", less)
	}
	for _, b := range r.Bars[:4] {
		if !b.Holds {
			t.Errorf("%+v", b)
		}
	}
	o.Data = "nowhere.txt"
	if _, err := Compare(t.Context(), o); err == nil {
		t.Error("no text")
	}
}
