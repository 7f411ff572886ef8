package adversary_test

import (
	"context"
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee/sealed"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role/adversary"
)

// Updates of real training are no outliers among each other; a fabricated one is.
func TestFabricatedUpdateIsOdd(t *testing.T) {
	e, base := smallEngine(t)
	liar := adversary.Fabricator{Honest: e}
	for name, c := range map[string]struct {
		lies int
		odd  []uint32
	}{"honest": {-1, nil}, "liar": {2, []uint32{2}}} {
		var units work.Units
		updates := map[uint32][]byte{}
		for i := range uint32(4) {
			train := e.Train
			if int(i) == c.lies {
				train = liar.Train
			}
			w, err := train(context.Background(), base, i)
			if err != nil {
				t.Fatal(err)
			}
			units = append(units, &work.Unit{Index: i, Commit: w.Commit})
			updates[i] = w.Update
		}
		a, err := e.Advance(context.Background(), base, units, func(i int) ([]byte, error) { return updates[uint32(i)], nil })
		if err != nil || !slices.Equal(a.Odd, c.odd) {
			t.Errorf("%s: odd are %v, want %v (%v)", name, a.Odd, c.odd, err)
		}
	}
}

// A random update of the usual length is no outlier among the others; its effect on the loss shows it.
func TestUselessUpdateIsOdd(t *testing.T) {
	for screen, want := range map[terms.Screen][]uint32{
		terms.ScreenOff: nil, terms.ScreenUpdates: nil, terms.ScreenLosses: {1}} {
		e, name := looking(t, screen)
		base, err := e.Base(name)
		if err != nil {
			t.Fatal(err)
		}
		var units work.Units
		var updates [][]byte
		for i := range uint32(4) {
			r, err := e.Task().Run(base, i, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range r.Delta {
				if i == 1 {
					slices.Reverse(d.F32())
				}
			}
			w, err := e.NewWork(name, i, r)
			if err != nil {
				t.Fatal(err)
			}
			units = append(units, &work.Unit{Index: i, Commit: w.Commit})
			updates = append(updates, w.Update)
		}
		a, err := e.Advance(context.Background(), name, units, func(i int) ([]byte, error) { return updates[i], nil })
		if err != nil || !slices.Equal(a.Odd, want) {
			t.Errorf("screen %d: odd are %v, want %v (%v)", screen, a.Odd, want, err)
		}
	}
}

// The seal of an executed unit opens under the root that its worker committed to, also when the state has to be
// computed again.
func TestSealOfAnExecutedUnit(t *testing.T) {
	e, base := smallEngine(t)
	var first audit.Subject
	var root canon.Digest
	var commit work.Commitment
	for unit := range uint32(4) {
		w, err := e.Train(context.Background(), base, unit)
		if err != nil {
			t.Fatal(err)
		}
		s := audit.Subject{Verifier: "vic", Job: "job", Unit: unit}
		f, err := e.Check(context.Background(), base, s, w.Commit)
		if err != nil || !f.Right {
			t.Fatalf("unit %d: %+v, %v", unit, f, err)
		}
		if unit == 0 {
			first, root, commit = s, f.Seal, w.Commit
		}
	}
	question := audit.Question(canon.Sum("beacon"), first)
	o, err := e.Unseal(context.Background(), base, first, question)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Check(first, commit.Segments[len(commit.Segments)-1], root, question, sealed.RootFuncs{}); err != nil {
		t.Error(err)
	}
}
