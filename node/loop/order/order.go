// Package order makes what the order of a training loop asks for: the program of a step, a specification, and the
// checkpoint with which the run begins. It orders nothing.
package order

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"

	"github.com/starling-network/starling/chain/referee"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/model/tokenloss"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/aggregate"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/node/trainer"
	"github.com/starling-network/starling/role/bundle"
)

// Shape bounds the steps of a session: the sequences of a step, the tokens of a sequence, and the number of steps.
type Shape struct {
	Rows   int    `json:"rows"`
	Length int    `json:"length"`
	Steps  uint32 `json:"steps"`
}

// Work is what an order of a session asks for.
type Work struct {
	Shape
	Adam     optimizer.AdamW
	Task     *train.Task // without an Exec
	Manifest data.Manifest
	Genesis  *train.Checkpoint
}

// Compile makes the work of a loop that continues from the state of a model, by steps of AdamW with given constants, in
// a version of the numerics.
func Compile(s trainer.State, a optimizer.AdamW, shape Shape, numerics uint32) (*Work, error) {
	step, err := tokenloss.Step(s.Config, a, shape.Rows, shape.Length)
	if err != nil {
		return nil, err
	}
	step = step.In(numerics)
	// The specification of a job names a corpus. This one has no tokens that are read: the data come with the rounds.
	corpus, err := data.Rows([][]uint32{make([]uint32, shape.Length+1), make([]uint32, shape.Length+1)},
		uint32(s.Config.VocabSize()), 0, 0)
	if err != nil {
		return nil, err
	}
	w := &Work{Shape: shape, Adam: a, Manifest: corpus.Manifest(bundle.ShardTokens)}
	var seed [8]byte
	_, _ = rand.Read(seed[:]) // never fails
	spec := &train.Spec{Version: 1, Numerics: numerics, Name: "loop", Seed: binary.LittleEndian.Uint64(seed[:]),
		Program: step.Digest(), Data: w.Manifest.Digest(), Rounds: shape.Steps, Steps: 1, Segment: 1, Units: 1,
		Batch: uint32(shape.Rows), Length: uint32(shape.Length), Rate: train.Rate{Kind: train.Constant},
		Exchange: train.Exchange{Codec: codec.Float32, Rule: aggregate.Mean, Outer: outer.SGD, Rate: 1}, Led: true}
	w.Task = &train.Task{Spec: spec, Step: step, Corpus: corpus}
	for _, n := range train.Frozen(step) {
		w.Task.Frozen = append(w.Task.Frozen, s.Base[n])
	}
	w.Task.FrozenRoots = train.Roots(w.Task.Frozen)
	spec.Frozen = train.FrozenRoot(w.Task.FrozenRoots)
	if w.Genesis, err = outer.Genesis(spec.Exchange, train.Params(step), w.begin(s)); err != nil {
		return nil, err
	}
	spec.Genesis = w.Genesis.Root()
	if err := spec.Check(); err != nil {
		return nil, err
	}
	if err := train.CheckProgram(spec, step); err != nil {
		return nil, err
	}
	if err := referee.Check(spec, step, w.Manifest); err != nil {
		return nil, fmt.Errorf("a dispute about a step of %d sequences of %d tokens could not be decided: %w", shape.Rows,
			shape.Length, err)
	}
	return w, nil
}

// begin are the parameters with which a run begins.
func (w *Work) begin(s trainer.State) map[string]*tensor.Tensor {
	all := tokenloss.Remembered(s.Config, w.Rows, w.Length, s.Trained)
	for _, of := range []struct {
		prefix  string
		moments map[string]*tensor.Tensor
	}{{tokenloss.FirstOf, s.First}, {tokenloss.SecondOf, s.Second}} {
		for name, x := range of.moments {
			all[of.prefix+name] = x
		}
	}
	return all
}

// Named are the parameters of a checkpoint by their names.
func Named(c *train.Checkpoint) map[string]*tensor.Tensor {
	all := make(map[string]*tensor.Tensor, len(c.Names))
	for i, n := range c.Names {
		all[n] = c.Params[i]
	}
	return all
}
