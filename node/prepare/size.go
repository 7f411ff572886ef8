package prepare

import (
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/exchange/slice"
)

// Size computes how many bytes the parts of a job have.
type Size struct{ job *CompiledJob }

func (b *CompiledJob) Size() Size { return Size{b} }

// Parameters is the size of the parameters that are trained.
func (s Size) Parameters() int64 { return s.inputs(train.Param, train.Params(s.job.Step)) }

// Frozen is the size of the tensors that are read and not trained.
func (s Size) Frozen() int64 { return s.inputs(train.Param, train.Frozen(s.job.Step)) }

// State is the size of the state of a unit: the parameters that are trained, and the state of the optimizer.
func (s Size) State() int64 { return s.inputs("", train.StateNames(s.job.Step)) }

// inputs is the size of the inputs of a step with these names after a prefix.
func (s Size) inputs(prefix string, names []string) (n int64) {
	shapes := s.job.Step.InputShapes()
	for _, name := range names {
		n += int64(shapes[prefix+name].Bytes())
	}
	return n
}

// Outer is the size of the state of the outer optimizer of a planned job.
func (s Size) Outer() int64 { return int64(len(s.job.Genesis.Outer)) * s.Parameters() }

// Checkpoint is the size of the tensors of a checkpoint of a planned job.
func (s Size) Checkpoint() int64 { return s.Parameters() + s.Outer() }

// Traffic is how many bytes a worker receives in a round.
func (s Size) Traffic() (int64, error) {
	if s.job.Slices == 0 {
		update, err := s.Update()
		return int64(s.job.Spec.Unsplit().Units-1) * update, err
	}
	t, err := slice.TrafficOf(s.job.Spec.Exchange.Codec, s.Shapes(), int(s.job.Spec.Units), int(s.job.Slices))
	return t.Total(), err
}

// Update is how many bytes the update of a unit has; of replicas, which exchange other parts in every round, on
// average.
func (s Size) Update() (int64, error) {
	if s.job.Spec.Exchange.Replicas() {
		sent, err := outer.Sent(s.job.Spec, train.Params(s.job.Step), s.Shapes())
		var all int64
		for _, n := range sent {
			all += n
		}
		return all / int64(max(1, len(sent))), err
	}
	whole, err := slice.TrafficOf(s.job.Spec.Exchange.Codec, s.Shapes(), 2, 0) // of the one other worker
	return whole.Updates, err
}

// Shapes of the parameters that are trained.
func (s Size) Shapes() (shapes []tensor.Shape) {
	inputs := s.job.Step.InputShapes()
	for _, name := range train.Params(s.job.Step) {
		shapes = append(shapes, inputs[train.Param+name])
	}
	return shapes
}

// Tokens trained in so many inner steps, of all units that have as many in their rounds.
func (b *CompiledJob) Tokens(steps int) uint64 {
	s := b.Spec.Unsplit()
	rounds, rest := uint64(steps)/uint64(s.Steps), uint32(steps)%s.Steps
	all := rounds * s.StepsBefore(s.Units)
	for u := range s.Units {
		all += uint64(min(rest, s.StepsOf(u)))
	}
	return all * uint64(s.Batch) * uint64(s.Length)
}
