package engine_test

import (
	"testing"

	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role/engine"
)

// The cache of a unit is keyed with its carried state: after a verdict the same unit of the same checkpoint may start
// from another state.
func TestExecutionsFromOtherOrigins(t *testing.T) {
	task, genesis := newTask(t)
	task.Spec.Exchange = train.Exchange{Codec: codec.TopKName(82, 2), Rule: "mean", Outer: "sgd", Rate: 1, Feedback: 0.95,
		Carry: 3}
	task.Spec.Rounds = 3
	first := &train.Checkpoint{Names: genesis.Names, Params: genesis.Params}
	e, err := engine.New(terms.Terms{Job: "fox"}, task, blob.NewMemory(), nil)
	if err != nil {
		t.Fatal(err)
	}
	base := terms.Checkpoint{Root: first.Root(), CID: "genesis"}
	e.Hold(base, first)
	var handed []work.HandedState
	for unit := range uint32(2) {
		w, err := e.Train(t.Context(), base, unit)
		if err != nil {
			t.Fatal(err)
		}
		handed = append(handed, w.Commit.HandedState)
	}
	second := &train.Checkpoint{Round: 1, Names: genesis.Names, Params: genesis.Params}
	next := terms.Checkpoint{Round: 1, Root: second.Root(), CID: "second"}
	e.Hold(next, second)
	from := func(c work.HandedState) {
		e.Follow(
			run.State{
				Progress: progress.Progress{
					Window: work.Window{RoundState: work.RoundState{Round: 1, Base: next, From: []work.HandedState{c}}},
				},
			},
		)
	}

	from(handed[0])
	commit := func() work.Commitment {
		w, err := e.Train(t.Context(), next, 0)
		if err != nil {
			t.Fatal(err)
		}
		return w.Commit
	}
	one := commit()
	game := dispute.Dispute{Config: dispute.Config{Round: 1}}
	update := func() any {
		o, err := e.Oracle(next, game)
		if err != nil {
			t.Fatal(err)
		}
		tree, err := o.Result(dispute.Update)
		if err != nil {
			t.Fatal(err)
		}
		return tree.Root()
	}
	check := func(c work.Commitment, right bool) {
		t.Helper()
		f, err := e.Check(t.Context(), next, audit.Subject{Round: 1}, c)
		if err != nil || f.Right != right {
			t.Errorf("right: %v (%v), want %v", f.Right, err, right)
		}
	}
	check(one, true)
	if update() != any(one.Update) {
		t.Error("the witness comes to another update than the worker")
	}
	from(handed[1])
	check(one, false)
	other := commit()
	check(other, true)
	if update() != any(other.Update) {
		t.Error("the witness takes what was handed on before for what is handed on now")
	}
}
