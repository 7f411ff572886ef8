package engine_test

import (
	"context"
	"io"
	"testing"

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role/engine"
	"github.com/starling-network/starling/role/hold"
)

// away is a place outside of memory, whose tensors are not written to.
type away struct{ laid int }

func (*away) Keep([][]byte) io.ReaderAt { return nil }

func (a *away) Room(int64) func(*tensor.Tensor) *tensor.Tensor {
	return func(t *tensor.Tensor) *tensor.Tensor {
		a.laid++
		return tensor.Lend(t.Shape, t.Clone().Bytes(), a)
	}
}

func (*away) Scratch(int64) hold.Scratch { return nil }

func (*away) Rest([]byte) {}

// alone is a party that others hold nothing for.
type alone struct{ blob.Store }

func (a alone) Fetch(ctx context.Context, c blob.CID, _ []string) ([]byte, error) {
	return a.Get(ctx, c)
}

func (alone) Each(n int, do func(i int)) {
	for i := range n {
		do(i)
	}
}

// A round gives the same checkpoint whether the checkpoints lie in memory or elsewhere, and one that is loaded again
// lies there, too.
func TestCheckpointsOutsideOfMemory(t *testing.T) {
	task, genesis := newTask(t)
	base := terms.Checkpoint{Root: genesis.Root(), CID: "genesis"}
	var next [2]terms.Checkpoint
	for k, place := range []*away{nil, {}} {
		store, h := blob.NewMemory(), engine.Holding{}
		if place != nil {
			h.Aside = place
		}
		e, err := engine.NewHolding(h, terms.Terms{Job: "fox", Units: 2}, task, store, alone{store})
		if err != nil {
			t.Fatal(err)
		}
		e.Hold(base, genesis)
		var units work.Units
		var updates [][]byte
		for unit := range uint32(2) {
			w, err := e.Train(t.Context(), base, unit)
			if err != nil {
				t.Fatal(err)
			}
			units, updates = append(units, &work.Unit{Index: unit, Commit: w.Commit}), append(updates, w.Update)
		}
		a, err := e.Advance(t.Context(), base, units, func(i int) ([]byte, error) { return updates[i], nil })
		if err != nil {
			t.Fatal(err)
		}
		next[k] = a.Next
		again, err := engine.NewHolding(h, terms.Terms{Job: "fox", Units: 2}, task, store, alone{store})
		if err != nil {
			t.Fatal(err)
		}
		if err := again.Load(t.Context(), a.Next, nil); err != nil {
			t.Fatal(err)
		}
		c, err := again.Base(a.Next)
		if err != nil || c.Root() != a.Next.Root {
			t.Fatalf("another checkpoint is loaded: %v", err)
		}
		if want := 3 * len(genesis.Tensors()); place != nil && (place.laid != want || !c.Params[0].Lent()) {
			t.Errorf("%d tensors are laid, want %d", place.laid, want)
		}
	}
	if next[0] != next[1] {
		t.Errorf("checkpoints %v", next)
	}
}
