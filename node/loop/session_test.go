package loop

import (
	"testing"

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/checkpoint"
	"github.com/starling-network/starling/node/loop/record"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/work"
)

// A session keeps the data of all rounds, and the checkpoint with which an open round, or one that a verdict may open
// again, begins. It keeps the first checkpoint, too, and tensors that another round shares.
func TestBlobsOfFinalRounds(t *testing.T) {
	store, err := blob.OpenDisk(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	same := tensor.Scalar(7)
	save := func(round int, x float32) string {
		c, err := checkpoint.Save(t.Context(), store, checkpoint.Manifest{Job: "loop", Round: uint32(round)},
			[]string{"p/same", "p/x"}, map[string]*tensor.Tensor{"p/same": same, "p/x": tensor.Scalar(x)})
		if err != nil {
			t.Fatal(err)
		}
		return c.String()
	}
	s := &Session{store: store}
	var state run.State
	state.Terms.Genesis.CID = save(0, 0)
	s.record.Genesis = state.Terms.Genesis
	for round := range 6 {
		s.record.Fed = append(s.record.Fed, record.Feed{CID: save(round, float32(10+round)),
			After: save(round+1, float32(20+round))})
	}
	here := func(cid string) bool {
		c, err := blob.Parse(cid)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = checkpoint.Load(t.Context(), store.Get, checkpoint.InTurn, c)
		return err == nil
	}
	for _, open := range []int{0, 4, 4, 6} { // the first open round
		state.RoundState, state.Open = work.RoundState{Round: 6}, nil
		for r := open; r < 6; r++ {
			state.Open = append(state.Open, work.RoundState{Round: uint32(r)})
		}
		if err := s.prune(t.Context(), state); err != nil {
			t.Fatal(err)
		}
		for round, f := range s.record.Fed {
			if want := round+1 >= open; !here(f.CID) || here(f.After) != want {
				t.Errorf("from round %d on, data and checkpoint of round %d are here: %t, %t", open, round, here(f.CID),
					here(f.After))
			}
		}
		if !here(state.Terms.Genesis.CID) {
			t.Error("the first checkpoint is deleted")
		}
	}
}
