package pass

import (
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/stages/order"
	"github.com/starling-network/starling/compute/tensor"
)

// StepBytes is the memory that a run of a program takes whose outputs have the memory of the inputs with their names,
// where they can.
func StepBytes(x *cpu.Exec, p *program.Program) int64 {
	need := x.PeakBytes()
	for _, o := range p.Outputs {
		if x.Shares(o.Name, o.Name) {
			need -= int64(p.Ops[o.Value].Out.Bytes())
		}
	}
	return need
}

// Bytes is the most memory that steps of the stage take: its state, the values that are kept between tasks and those of
// other stages, of all steps that are under way at a time, and what the task under way computes with.
func (s *Stage) Bytes() int64 {
	var b bytes
	for _, x := range s.state {
		b.state += size(x.Shape)
	}
	tasks, at := []order.Task(nil), map[order.Task]*task{}
	for i := range s.tasks {
		t := &s.tasks[i]
		tasks, at[t.Task] = append(tasks, t.Task), t
		for _, k := range t.moves { // the value after an update is made in addition to those that move
			if n := t.In[k]; s.computes(t, n) {
				b.state += size(s.shapes[n])
			}
		}
	}
	values := map[uint32]map[string]int64{}
	for _, next := range s.plan.Continued(s.number, tasks, uint32(s.plan.Late())+2) {
		if values[next.Step] == nil {
			values[next.Step] = map[string]int64{}
		}
		b.task(s, at[next.Task], values[next.Step])
	}
	return b.state + b.most
}

// computes reports whether a task computes an output.
func (s *Stage) computes(t *task, name string) bool {
	for o, n := range t.Out {
		if _, moves := t.moves[o]; n == name && !moves {
			return true
		}
	}
	return false
}

// bytes counts the memory of a stage as its tasks are computed.
type bytes struct{ state, live, most int64 }

// task counts a task, given the values of its step.
func (b *bytes) task(s *Stage, t *task, values map[string]int64) {
	add := func(name string, shape tensor.Shape) {
		if _, own := s.state[name]; !own && values[name] == 0 {
			values[name] = size(shape)
			b.live += size(shape)
		}
	}
	shapes, works := t.Program.InputShapes(), t.exec.PeakBytes()
	for _, at := range t.waits {
		for _, tr := range s.plan.Frame(at.Stage, s.number, at.Task) {
			add(tr.Name(), tr.Shape)
		}
	}
	for _, in := range t.Program.Inputs() {
		works -= size(shapes[in.Name])
	}
	for o, n := range t.Out {
		if _, moves := t.moves[o]; moves {
			continue
		}
		k := t.over[o]
		if _, own := s.state[n]; !own || k >= 0 || s.moved(t, n) { // of an input, or a value that is added, or counted
			works -= size(t.shapes[o])
		}
		if k >= 0 {
			b.live -= values[t.In[k]]
			delete(values, t.In[k])
		}
		add(n, t.shapes[o])
	}
	b.most = max(b.most, b.live+max(works, 0))
	for _, n := range t.lets {
		b.live -= values[n]
		delete(values, n)
	}
}

func size(s tensor.Shape) int64 { return int64(tensor.AlignUp(s.Bytes())) }
