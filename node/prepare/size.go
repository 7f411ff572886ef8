package prepare

import (
	"context"

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/exchange/slice"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/role/bundle"
)

// ShippedBytes is how many bytes a job ships, with its first checkpoint.
func ShippedBytes(ctx context.Context, id string, t *train.Task, genesis *train.Checkpoint) (int64, error) {
	var s scale
	_, _, _, err := bundle.Ship(ctx, &s, id, t, genesis, "")
	return s.bytes, err
}

// scale is a store that weighs what is put into it, and keeps nothing.
type scale struct {
	blob.Store
	bytes int64
}

func (s *scale) Put(_ context.Context, data []byte) (blob.CID, error) {
	s.bytes += int64(len(data))
	return blob.Of(data), nil
}

// ParameterBytes is the size of the parameters that are trained.
func (b *CompiledJob) ParameterBytes() (n int64) {
	for _, s := range b.Shapes() {
		n += int64(s.Bytes())
	}
	return n
}

// OuterBytes is the size of the state of the outer optimizer of a planned job.
func (b *CompiledJob) OuterBytes() int64 {
	return int64(len(b.Genesis.Outer)) * b.ParameterBytes()
}

// Traffic is how many bytes a worker receives in a round.
func (b *CompiledJob) Traffic() (int64, error) {
	if b.Slices == 0 {
		update, err := b.Update()
		return int64(b.Spec.Units-1) * update, err
	}
	t, err := slice.TrafficOf(b.Spec.Exchange.Codec, b.Shapes(), int(b.Spec.Units), int(b.Slices))
	return t.Total(), err
}

// Update is how many bytes the update of a unit has; of replicas, which exchange other parts in every round, on
// average.
func (b *CompiledJob) Update() (int64, error) {
	if b.Spec.Exchange.Replicas() {
		sent, err := outer.Sent(b.Spec, train.Params(b.Step), b.Shapes())
		var all int64
		for _, n := range sent {
			all += n
		}
		return all / int64(max(1, len(sent))), err
	}
	whole, err := slice.TrafficOf(b.Spec.Exchange.Codec, b.Shapes(), 2, 0) // of the one other worker
	return whole.Updates, err
}

// Shapes of the parameters that are trained.
func (b *CompiledJob) Shapes() (shapes []tensor.Shape) {
	inputs := b.Step.InputShapes()
	for _, name := range train.Params(b.Step) {
		shapes = append(shapes, inputs[train.Param+name])
	}
	return shapes
}

// Tokens trained in so many inner steps, of all units that have as many in their rounds.
func (b *CompiledJob) Tokens(steps int) uint64 {
	s := b.Spec
	rounds, rest := uint64(steps)/uint64(s.Steps), uint32(steps)%s.Steps
	all := rounds * s.StepsBefore(s.Units)
	for u := range s.Units {
		all += uint64(min(rest, s.StepsOf(u)))
	}
	return all * uint64(s.Batch) * uint64(s.Length)
}
