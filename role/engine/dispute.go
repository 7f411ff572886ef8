package engine

import (
	"sync"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee/witness"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/role/bundle"
)

// Oracle is what the party knows about the unit of a dispute in the round after a checkpoint.
func (e *Engine) Oracle(base terms.Checkpoint, g dispute.Dispute) (dispute.Oracle, error) {
	checkpoint, err := e.Base(base)
	if err != nil {
		return nil, err
	}
	start, err := e.From(base, g.Config.Unit)
	if err != nil {
		return nil, err
	}
	from, err := e.Origin(base, g.Config.Unit)
	if err != nil {
		return nil, err
	}
	if e.task.Spec.Pipeline != nil {
		start.Root = e.exchanged(base, g.Config.Unit)
	}
	w := e.witnesses.of(disputed{base, start.Root, g.Config.Unit}, func() *witness.Witness {
		return witness.New(e.task, checkpoint, g.Config.Unit, from, bundle.ShardTokens)
	})
	return &exclusive{lock: &e.computing, oracle: w}, nil
}

// disputed names a unit that was executed again for a dispute.
type disputed struct {
	base terms.Checkpoint
	from canon.Digest // root of its carried state
	unit uint32
}

// witnesses are the executions of disputed units, each kept from move to move until another round is disputed.
type witnesses struct {
	mu  sync.Mutex
	all map[disputed]*witness.Witness
}

// of returns the witness of a unit, made by begin if there is none yet.
func (x *witnesses) of(key disputed, begin func() *witness.Witness) *witness.Witness {
	x.mu.Lock()
	defer x.mu.Unlock()
	if w, ok := x.all[key]; ok {
		return w
	}
	kept := map[disputed]*witness.Witness{key: begin()}
	for k, w := range x.all {
		if k.base == key.base {
			kept[k] = w
		}
	}
	x.all = kept
	return kept[key]
}
