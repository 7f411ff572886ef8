package bundle

import (
	"slices"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/lower"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/stages"
	"github.com/starling-network/starling/compute/stages/pass"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/codec"
)

// exchanged are how many bytes stages send on a link in a step at most, and how many one of them sends and receives in
// a unit at most; 0: units are no stages.
func exchanged(s *train.Spec, step *program.Program) (link, unit int64) {
	if s.Pipeline == nil {
		return 0, 0
	}
	plan, err := stages.Cut(step, s.Pipeline.Cuts())
	if err != nil {
		return 0, 0 // CheckProgram says so
	}
	for a := range plan.Stages {
		var own int64
		for b := range plan.Stages {
			out, in := plan.Bytes(a, b), plan.Bytes(b, a)
			link, own = max(link, out), own+out+in
		}
		unit = max(unit, own*int64(s.Steps))
	}
	return link, unit
}

// StageMemory is the bytes of memory that the stages of a job take, each in the order of the stages.
type StageMemory struct {
	Step    []int64 // a step together with other stages: state, gradients, values, and what a task computes with
	Again   []int64 // an execution alone
	State   []int64 // weights and moments
	Commit  []int64 // the update of a unit as it is made, after the last step
	Combine []int64 // the updates of a stage as they are combined
}

// StagesMemory is the memory of the stages of a job, computed by a number of threads.
func StagesMemory(s *train.Spec, step *program.Program, threads int) (m StageMemory, err error) {
	plan, err := stages.Cut(step, s.Pipeline.Cuts())
	if err != nil {
		return m, err
	}
	c, _ := codec.ByName(s.Exchange.Codec) // of a checked specification
	orders, replicas := plan.Orders(), int64(s.Units/s.Pipeline.Stages())
	for k, st := range plan.Stages {
		var params, update, largest, held int64
		for i, shape := range Parameters(step) {
			if s.Pipeline.Stage[i] == uint32(k) {
				n := int64(shape.Bytes())
				params, update, largest = params+n, update+int64(codec.Size(c, shape)), max(largest, n)
			}
		}
		shapes, state := st.Whole.InputShapes(), []*tensor.Tensor(nil)
		for _, n := range st.State {
			held += int64(shapes[n].Bytes())
			state = append(state, &tensor.Tensor{Shape: shapes[n]})
		}
		of, err := pass.New(plan, k, orders[k], state, threads)
		if err != nil {
			return m, err
		}
		m.Step, m.State = append(m.Step, of.Bytes()), append(m.State, held)
		exec, err := cpu.Compile(st.Whole, threads)
		if err != nil {
			return m, err
		}
		m.Again = append(m.Again, max(pass.StepBytes(exec, st.Whole), lower.TracePeak(st.Whole)))
		m.Commit = append(m.Commit, 2*params+2*update)
		m.Combine = append(m.Combine, replicas*params+2*update+3*largest)
	}
	return m, nil
}

// Together is the memory of all stages of all replicas, computed at the same time in one process, with one that is
// executed again, and the updates of a stage that are combined.
func (m StageMemory) Together(replicas int64) (all int64) {
	for k := range m.Step {
		all += replicas * max(m.Step[k], m.Commit[k])
	}
	return all + slices.Max(m.Again) + slices.Max(m.Combine)
}

// Planned is a job of which nothing is stored yet, as far as the memory of its stages depends on it.
func Planned(s *train.Spec, step *program.Program, m data.Manifest) *Job {
	j := &Job{Spec: s, Step: step, Data: m}
	j.link, j.values = exchanged(s, step)
	return j
}

// Least bytes that are moved out of the memory of a member: of the tensors of a checkpoint, and of a state.
const (
	leastLaid  = 32 << 20
	leastAside = 64 << 20
)

// StageMemory is the most bytes of memory that a job in stages takes if its checkpoints and its frozen tensors lie on
// the disk, where Aside says how many bytes they have: one stage, while a step of it is computed or executed again, its
// update is made, or the updates of one are combined; the values that it exchanges; and the file of a checkpoint that
// is read or written. A verifier executes units while it combines updates, and keeps the end of one. A quarter is added
// for garbage that is not collected yet.
func (j *Job) StageMemory(threads int, verifies bool) (int64, error) {
	m, err := StagesMemory(j.Spec, j.Step, threads)
	if err != nil {
		return 0, err
	}
	s := j.sizes()
	var works, combines, ends int64
	for k := range m.Step {
		works, combines = max(works, m.Step[k], m.Again[k], m.Commit[k]), max(combines, m.Combine[k])
		if m.State[k] < leastAside {
			ends = max(ends, m.State[k])
		}
	}
	combines = max(combines, 2*j.Largest())
	need := max(works, combines) + 3*j.values
	if verifies {
		need = works + combines + maxExecuted*ends + heldValues*j.values
	}
	if s.model < leastLaid {
		need += MaxHeld * s.model
	}
	if s.frozen < leastLaid {
		need += s.frozen
	}
	need += DataMemory(j.Spec, j.Data)
	return need + need/4, nil
}

// maxExecuted and heldValues are how many units that were executed again a verifier keeps, and of how many it has the
// values that they exchanged. A worker has those of its unit, their bytes, and those of one that it executes again.
const (
	maxExecuted = 2
	heldValues  = 5
)

// inMemory is StageMemory of a member whose checkpoints stay in memory.
func inMemory(j *Job, threads int) int64 {
	need, err := j.StageMemory(threads, true)
	if err != nil {
		return j.memory(0) // CheckProgram says so
	}
	s := j.sizes()
	return need + (MaxHeld*s.model+s.frozen)/4*5
}
