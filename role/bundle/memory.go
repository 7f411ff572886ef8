package bundle

import (
	"slices"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/parts"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/network/checkpoint"
)

// Parameters are the shapes of the trained tensors of a step.
func Parameters(step *program.Program) (list []tensor.Shape) {
	shapes := map[string]tensor.Shape{}
	for _, in := range step.Inputs() {
		shapes[in.Name] = in.Shape
	}
	for _, n := range train.Params(step) {
		list = append(list, shapes[train.Param+n])
	}
	return list
}

// sizes are the bytes of the data that a member of a run holds.
type sizes struct {
	params, largest int64 // all parameters, and the largest tensor
	state           int64 // of a unit: the parameters, and the state of the optimizer
	frozen          int64 // tensors that the job reads and does not train
	model           int64 // a checkpoint: the parameters, and the state of the outer optimizer
	update          int64 // the largest of a unit, encoded
	updates         int64 // of all stages of a replica, or of a unit that is none
	tensors         int64 // how many a checkpoint has, and of the frozen ones
}

func (j *Job) sizes() sizes { return sizesOf(j.Spec, j.Step) }

func sizesOf(spec *train.Spec, step *program.Program) (s sizes) {
	c, _ := codec.ByName(spec.Exchange.Codec) // of a checked specification
	updates := make([]int64, spec.Pipeline.Stages())
	for i, shape := range Parameters(step) {
		n, stage := int64(shape.Bytes()), uint32(0)
		if spec.Pipeline != nil {
			stage = spec.Pipeline.Stage[i]
		}
		s.params, s.largest, s.tensors = s.params+n, max(s.largest, n), s.tensors+1
		each := int64(codec.Size(c, shape))
		updates[stage], s.updates = updates[stage]+each, s.updates+each
	}
	s.update = slices.Max(updates)
	shapes := step.InputShapes()
	for _, name := range train.StateNames(step) {
		s.state += int64(shapes[name].Bytes())
	}
	for _, name := range train.Frozen(step) {
		n := int64(shapes[train.Param+name].Bytes())
		s.frozen, s.largest, s.tensors = s.frozen+n, max(s.largest, n), s.tensors+1
	}
	state := 1 // tensors for each parameter in the state of the outer optimizer
	if n, err := outer.State(spec.Exchange); err == nil {
		state = max(state, n)
	}
	s.model, s.tensors = int64(1+state)*s.params, int64(1+state)*s.tensors
	return s
}

// DataMemory is the most bytes of memory that a member has of a corpus: the shards that it read last, and the tokens of
// the next steps of its units.
func DataMemory(s *train.Spec, m data.Manifest) int64 {
	width := min(int64(s.Batch)*(int64(s.Length)+1), data.MaxTokens)
	return min(m.Bytes(), ShardMemory) + MaxReadings*4*max(width, min(ReadingTokens, int64(s.Steps)*width))
}

// Batches of a corpus are read in groups: MaxReadings of them are held at a time, each of ReadingTokens unless one step
// has more.
const (
	MaxReadings   = 8
	ReadingTokens = 1 << 20
)

// atOnce is how many blobs of a job are read at the same time, at most.
const atOnce = 4

// MaxHeld is how many checkpoints a member holds in memory: the one that a round starts from, the one it leads to,
// and one of an earlier round that is audited or disputed. Others are loaded from the store again.
const MaxHeld = 3

// Memory is the most bytes of memory that the job takes with this number of threads: DataMemory; the checkpoints in
// memory; the state of a unit, at its beginning, while it is computed and at its end; the updates of all rounds that
// are combined at a time; and the blobs that are read meanwhile. A quarter is added for garbage that is not collected
// yet.
func (j *Job) Memory(threads int) int64 {
	s := j.sizes()
	if j.Spec.Pipeline != nil {
		return inMemory(j, threads)
	}
	return j.memory(3*s.state + max(cpu.Memory(parts.Learning(j.Step), threads), drawing(j, threads)))
}

// DrawingMemory is Memory for a member that executes units that draw, and none that learns: it has no state of a unit,
// and no gradients.
func (j *Job) DrawingMemory(threads int) int64 { return j.memory(drawing(j, threads)) }

// memory is the memory of a member, in bytes, given that in which it executes its units.
func (j *Job) memory(units int64) int64 {
	s := j.sizes()
	updates := int64(j.terms.Units) * s.params
	switch {
	case j.terms.Sliced():
		updates = 2 * s.params
	case j.Spec.Exchange.Overlap > 0:
		updates *= 2 // the last round of a group waits for the one before
	}
	need := DataMemory(j.Spec, j.Data) + s.frozen + MaxHeld*s.model + updates + atOnce*j.Largest() + units + 3*j.values
	return need + need/4
}

// drawing is the memory of the part that draws answers.
func drawing(j *Job, threads int) int64 {
	if j.Spec.Rollout == nil {
		return 0
	}
	return cpu.Memory(parts.Drawing(j.Step), threads)
}

// Aside is the most bytes that a member moves out of memory: the checkpoints that it holds, and the state of a unit.
func (j *Job) Aside() int64 {
	s := j.sizes()
	if j.Spec.Pipeline != nil { // of all stages, with their values; the frozen tensors; the checkpoint that is made
		s.state = 2*s.state + s.frozen + s.model
	}
	return MaxHeld*s.model + s.state
}

// Largest is the most bytes of a blob that a member of the job reads: a shard of the corpus or of a checkpoint, an
// update, or the log of a unit.
func (j *Job) Largest() int64 {
	s := j.sizes()
	shard := max(s.largest, min(checkpoint.ShardBytes, max(s.model, s.state, s.frozen)))
	if j.terms.Sliced() {
		shard = max(shard, s.model/int64(j.terms.Slices)+s.largest) // a slice of a checkpoint
	}
	return max(shard, s.update+s.update/16, int64(j.Data.ShardTokens)*int64(j.Data.Width), j.link) + s.tensors<<10 +
		int64(j.Spec.Steps)<<5 + 1<<20
}
