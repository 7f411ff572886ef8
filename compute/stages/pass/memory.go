package pass

import (
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/program"
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

// Bytes is the most memory that a step of the stage takes: its state, the values that are kept between tasks and those
// of other stages, and what the task under way computes with.
func (s *Stage) Bytes() int64 {
	var state, live, most int64
	for _, x := range s.state {
		state += size(x.Shape)
	}
	values := map[string]int64{}
	add := func(name string, shape tensor.Shape) {
		if _, own := s.state[name]; !own && values[name] == 0 {
			values[name] = size(shape)
			live += size(shape)
		}
	}
	for i := range s.tasks {
		t := &s.tasks[i]
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
			k := t.over[o]
			if _, own := s.state[n]; !own || k >= 0 { // the memory of an input, or a value that is added
				works -= size(t.shapes[o])
			}
			if k >= 0 {
				live -= values[t.In[k]]
				delete(values, t.In[k])
			}
			add(n, t.shapes[o])
		}
		most = max(most, live+max(works, 0))
		for _, n := range t.lets {
			live -= values[n]
			delete(values, n)
		}
	}
	return state + most
}

func size(s tensor.Shape) int64 { return int64(tensor.AlignUp(s.Bytes())) }
