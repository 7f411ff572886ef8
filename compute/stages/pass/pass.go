// Package pass computes the tasks of one stage of a step: it takes the values that other stages have sent, runs the
// programs of the tasks in their order, and sends what others read. It moves no bytes: a Wire does.
package pass

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/stages"
	"github.com/starling-network/starling/compute/stages/order"
	"github.com/starling-network/starling/compute/tensor"
)

// ErrFrame is wrapped by every reason why the values of another stage are not taken: their number or shapes.
var ErrFrame = errors.New("pass: not the values of this task")

// Frame is all values that a task of one stage makes for another, in the order of stages.Plan.Transfers.
type Frame struct {
	Step   uint32
	Task   order.Task
	Values []*tensor.Tensor
}

// Wire takes frames to and from other stages. Both may block; neither keeps a tensor that it is given.
type Wire interface {
	Send(to int, f Frame) error
	// Receive returns the frame of a task of another stage in a step.
	Receive(from int, step uint32, t order.Task) (Frame, error)
}

// Stage is one stage of a job, between two steps. It is for one goroutine at a time.
type Stage struct {
	plan   *stages.Plan
	number int
	tasks  []task
	shapes map[string]tensor.Shape
	state  map[string]*tensor.Tensor
	pool   map[int][]*tensor.Tensor // tensors that no task needs any more, by bytes
	room   func(tensor.Shape) *tensor.Tensor

	received map[string]bool // names of the values that other stages send
}

// step is a step that has begun and is not at its end.
type step struct {
	number uint32
	lead   int // by how many steps it is ahead of the state
	left   int // tasks
	in     map[string]*tensor.Tensor
	values map[string]*tensor.Tensor // that tasks keep, or have received
	told   map[string]*tensor.Tensor
	taken  map[order.Place]bool // tasks whose frames were received
}

// task is a piece in the order of the stage.
type task struct {
	*stages.Piece
	exec   *cpu.Exec
	shapes []tensor.Shape // of the outputs
	waits  []order.Place  // whose frames it takes
	sends  []int          // stages to which it sends a frame
	lets   []string       // values that no later task reads
	over   []int          // by output: the input whose memory it takes; -1: it has its own
	moves  map[int]int    // outputs that are inputs of the state under another name, by output: they are not computed
}

// New returns a stage of a plan with its state, which it owns from now on, in the order of stages.Stage.State. Its
// tasks are computed in the given order, by a number of threads.
func New(plan *stages.Plan, number int, tasks []order.Task, state []*tensor.Tensor, threads int) (*Stage, error) {
	if number < 0 || number >= len(plan.Stages) || len(state) != len(plan.Stages[number].State) {
		return nil, fmt.Errorf("pass: stage %d of %d with %d tensors", number, len(plan.Stages), len(state))
	}
	own := &plan.Stages[number]
	s := &Stage{plan: plan, number: number, state: map[string]*tensor.Tensor{}, pool: map[int][]*tensor.Tensor{},
		shapes: own.Whole.InputShapes(), room: tensor.New, received: map[string]bool{}}
	for _, tr := range plan.Transfers {
		if tr.To == number {
			s.received[tr.Name()] = true
		}
	}
	for i, n := range own.State {
		if shape, ok := s.shapes[n]; ok && !shape.Equal(state[i].Shape) {
			return nil, fmt.Errorf("pass: %q of stage %d is %v, not %v", n, number, state[i].Shape, shape)
		}
		s.state[n] = state[i]
	}
	compiled, waits := map[canon.Digest]*cpu.Exec{}, plan.Waits()[number]
	for _, t := range tasks {
		i := slices.IndexFunc(own.Pieces, func(p stages.Piece) bool { return p.Task == t })
		if i < 0 {
			return nil, fmt.Errorf("%w: stage %d has no task %v", order.ErrOrder, number, t)
		}
		p := &own.Pieces[i]
		moves, computed := s.moves(p)
		key := computed.Digest()
		if compiled[key] == nil {
			x, err := cpu.Compile(computed, threads)
			if err != nil {
				return nil, err
			}
			compiled[key] = x
		}
		made := s.task(p, compiled[key], waits[t])
		made.moves = moves
		s.tasks = append(s.tasks, made)
	}
	s.forget()
	return s, s.check()
}

// moves are the outputs of a piece that are tensors of the state under another name, and its program without them.
func (s *Stage) moves(p *stages.Piece) (moves map[int]int, computed *program.Program) {
	inputs := map[int32]int{}
	for i := range p.Program.Ops {
		if p.Program.Ops[i].Kind == program.Input {
			inputs[int32(i)] = len(inputs)
		}
	}
	moves, computed = map[int]int{}, &program.Program{Numerics: p.Program.Numerics, Ops: p.Program.Ops}
	for o, out := range p.Program.Outputs {
		k, given := inputs[out.Value]
		if given && s.state[p.Out[o]] != nil && s.state[p.In[k]] != nil && p.In[k] != p.Out[o] {
			moves[o] = k
			continue
		}
		computed.Outputs = append(computed.Outputs, out)
	}
	return moves, computed
}

// check reports a task that reads a part of the state after an earlier task has made its next value.
func (s *Stage) check() error {
	made := map[string]order.Task{}
	for _, t := range s.tasks {
		for _, n := range t.In {
			if by, ok := made[n]; ok {
				return fmt.Errorf("%w: %v of stage %d reads %q after %v", order.ErrOrder, t.Task, s.number, n, by)
			}
		}
		for _, n := range t.Out {
			if _, own := s.state[n]; own {
				made[n] = t.Task
			}
		}
	}
	return nil
}

func (s *Stage) task(p *stages.Piece, x *cpu.Exec, waits []order.Place) task {
	t := task{Piece: p, exec: x, waits: waits}
	for _, o := range p.Program.Outputs {
		t.shapes = append(t.shapes, p.Program.Ops[o.Value].Out)
	}
	for _, tr := range s.plan.Transfers {
		if tr.From == s.number && tr.After == p.Task && !slices.Contains(t.sends, tr.To) {
			t.sends = append(t.sends, tr.To)
		}
	}
	return t
}

// forget finds after which task each value is not read any more, and which outputs take the memory of an input: of the
// state their own, and sums of gradients that of the sums before.
func (s *Stage) forget() {
	seen := map[string]bool{}
	for i := len(s.tasks) - 1; i >= 0; i-- {
		t := &s.tasks[i]
		for _, n := range slices.Concat(t.In, t.Out) {
			if _, own := s.state[n]; !own && !seen[n] {
				seen[n] = true
				t.lets = append(t.lets, n)
			}
		}
		t.over = make([]int, len(t.Out))
		for o, n := range t.Out {
			t.over[o] = slices.IndexFunc(t.In, func(in string) bool { return in == n })
			if _, own := s.state[n]; !own {
				t.over[o] = s.dying(t, o)
			}
			if s.moved(t, n) {
				t.over[o] = -1
			}
			if k := t.over[o]; k >= 0 && !t.exec.Shares(fmt.Sprintf("i%d", k), fmt.Sprintf("o%d", o)) {
				t.over[o] = -1
			}
		}
	}
}

// moved reports whether a task gives a tensor of the state another name, or gives another one this name.
func (s *Stage) moved(t *task, name string) bool {
	for o, k := range t.moves {
		if t.In[k] == name || t.Out[o] == name {
			return true
		}
	}
	return false
}

// dying is a kept input of a task, which no later task reads, that an output could replace; -1: there is none.
func (s *Stage) dying(t *task, output int) int {
	return slices.IndexFunc(t.In, func(in string) bool {
		k := slices.Index(t.In, in)
		return strings.HasPrefix(in, stages.Kept) && slices.Contains(t.lets, in) && !slices.Contains(t.over[:output], k) &&
			t.Program.InputShapes()[fmt.Sprintf("i%d", k)].Equal(t.shapes[output]) &&
			t.exec.Shares(fmt.Sprintf("i%d", k), fmt.Sprintf("o%d", output))
	})
}

// State returns the state, in the order of stages.Stage.State.
func (s *Stage) State() []*tensor.Tensor {
	var list []*tensor.Tensor
	for _, n := range s.plan.Stages[s.number].State {
		list = append(list, s.state[n])
	}
	return list
}

// Step computes a step. in has the inputs of the step that are no state: tokens and scalars. It returns the outputs
// that are no state: of the last stage "loss" and "grad_norm". After an error the stage is of no use.
func (s *Stage) Step(number uint32, in map[string]*tensor.Tensor, w Wire) (told map[string]*tensor.Tensor, err error) {
	err = s.Steps(number, 1, func(uint32) (map[string]*tensor.Tensor, error) { return in, nil },
		func(_ uint32, all map[string]*tensor.Tensor) error { told = all; return nil }, w)
	return told, err
}

// Steps computes n steps from one on, as the plan continues them. inputs gives those of Step as a step begins, and end
// is given its outputs when the state is that after it.
func (s *Stage) Steps(first, n uint32, inputs func(step uint32) (map[string]*tensor.Tensor, error),
	end func(step uint32, told map[string]*tensor.Tensor) error, w Wire) error {
	begun, done, at := map[uint32]*step{}, first, map[order.Task]*task{}
	var own []order.Task
	for i := range s.tasks {
		own, at[s.tasks[i].Task] = append(own, s.tasks[i].Task), &s.tasks[i]
	}
	for _, next := range s.plan.Continued(s.number, own, n) {
		number := first + next.Step
		r := begun[number]
		if r == nil {
			in, err := inputs(number)
			if err != nil {
				return err
			}
			r = &step{number: number, left: len(own), in: in, values: map[string]*tensor.Tensor{},
				told: map[string]*tensor.Tensor{}, taken: map[order.Place]bool{}}
			begun[number] = r
		}
		r.lead = int(number - done)
		if err := s.run(at[next.Task], r, w); err != nil {
			return fmt.Errorf("stage %d, step %d, task %v: %w", s.number, number, next.Task, err)
		}
		if r.left--; r.left > 0 {
			continue
		}
		delete(begun, number)
		done++
		if err := end(number, r.told); err != nil {
			return err
		}
	}
	return nil
}

// run computes a task.
func (s *Stage) run(t *task, r *step, w Wire) error {
	for _, at := range t.waits {
		if err := s.receive(at, r, w); err != nil {
			return err
		}
	}
	given, made := map[string]*tensor.Tensor{}, map[string]*tensor.Tensor{}
	for i, n := range t.In {
		x, err := s.input(n, r)
		if err != nil {
			return err
		}
		given[fmt.Sprintf("i%d", i)] = x
	}
	for i := range t.Out {
		if _, moves := t.moves[i]; moves {
			continue
		}
		if k := t.over[i]; k >= 0 {
			made[fmt.Sprintf("o%d", i)] = given[fmt.Sprintf("i%d", k)]
			delete(r.values, t.In[k])
			continue
		}
		made[fmt.Sprintf("o%d", i)] = s.take(t.shapes[i])
	}
	if err := t.exec.RunInto(given, made); err != nil {
		return err
	}
	t.exec.Release() // of all tasks but one
	s.settle(t, r, made)
	for _, to := range t.sends {
		if err := w.Send(to, s.frame(t.Task, r.number, to, r.values)); err != nil {
			return err
		}
	}
	for _, n := range t.lets {
		if x, ok := r.values[n]; ok {
			if !s.received[n] { // each frame comes in memory of its own
				s.give(x)
			}
			delete(r.values, n)
		}
	}
	return nil
}

// settle takes what a task has made into the state and the values of its step.
func (s *Stage) settle(t *task, r *step, made map[string]*tensor.Tensor) {
	next := map[string]*tensor.Tensor{}
	for i, n := range t.Out {
		x := made[fmt.Sprintf("o%d", i)]
		switch _, own := s.state[n]; {
		case x == nil: // it moves
			next[n] = s.state[t.In[t.moves[i]]]
		case own && t.over[i] < 0:
			next[n] = x
		case own:
		case strings.HasPrefix(n, stages.Exchanged) || strings.HasPrefix(n, stages.Kept):
			r.values[n] = x
		default:
			r.told[n] = x
		}
	}
	kept := map[*tensor.Tensor]bool{}
	for _, x := range next {
		kept[x] = true
	}
	for _, n := range t.Out { // in an order that does not depend on the map
		if x := s.state[n]; next[n] != nil && !kept[x] {
			s.give(x)
		}
	}
	maps.Copy(s.state, next)
}

// input is an input of a task. A step that is ahead of the state reads weights that are as many updates younger in the
// state of now as it is ahead.
func (s *Stage) input(name string, r *step) (*tensor.Tensor, error) {
	if first, ok := strings.CutPrefix(name, stages.Rows); ok {
		return rows(r.in["tokens"], first, s.plan.Micro)
	}
	if k, of, ok := optimizer.EarlierOf(name); ok && r.lead > 0 {
		if name = optimizer.EarlierName(k-r.lead, of); k == r.lead {
			name = optimizer.Param + of
		}
	}
	for _, from := range []map[string]*tensor.Tensor{s.state, r.values, r.in} {
		if x, ok := from[name]; ok {
			return x, nil
		}
	}
	return nil, fmt.Errorf("%w: no %q", program.ErrInput, name)
}

// rows is a microbatch of tokens, from a row on.
func rows(tokens *tensor.Tensor, first string, micro int) (*tensor.Tensor, error) {
	from, err := strconv.Atoi(first)
	if err != nil || tokens == nil {
		return nil, fmt.Errorf("%w: no tokens from row %q on", program.ErrInput, first)
	}
	n, length := tokens.Shape.Dims[0]/micro, tokens.Shape.Dims[1]
	if from < 0 || from+n > tokens.Shape.Dims[0] {
		return nil, fmt.Errorf("%w: no row %d of %d tokens", program.ErrInput, from+n, tokens.Shape.Dims[0])
	}
	return tensor.FromI32(slices.Clone(tokens.I32()[from*length:(from+n)*length]), n, length), nil
}

// frame is the values that a task has made for another stage.
func (s *Stage) frame(t order.Task, step uint32, to int, values map[string]*tensor.Tensor) Frame {
	f := Frame{Step: step, Task: t}
	for _, tr := range s.plan.Transfers {
		if tr.From == s.number && tr.To == to && tr.After == t {
			f.Values = append(f.Values, values[tr.Name()])
		}
	}
	return f
}

// receive takes the frame of a task of another stage, unless an earlier task has taken it.
func (s *Stage) receive(at order.Place, r *step, w Wire) error {
	if r.taken[at] {
		return nil
	}
	r.taken[at] = true
	f, err := w.Receive(at.Stage, r.number, at.Task)
	if err != nil {
		return err
	}
	if err := CheckFrame(s.plan, at.Stage, s.number, r.number, at.Task, f); err != nil {
		return err
	}
	for i, tr := range s.plan.Frame(at.Stage, s.number, at.Task) {
		r.values[tr.Name()] = f.Values[i]
	}
	return nil
}

// CheckFrame reports why a frame is not that of a task of one stage for another: it is of another step or task, or has
// other shapes. Values that are not finite are values like others: a unit that diverges is computed to its end.
func CheckFrame(plan *stages.Plan, from, to int, step uint32, t order.Task, f Frame) error {
	expected := plan.Frame(from, to, t)
	if f.Step != step || f.Task != t || len(f.Values) != len(expected) {
		return fmt.Errorf("%w: %d values of %v of step %d, wanted %d of %v of step %d", ErrFrame, len(f.Values), f.Task,
			f.Step, len(expected), t, step)
	}
	for i, tr := range expected {
		if !f.Values[i].Shape.Equal(tr.Shape) {
			return fmt.Errorf("%w: value %d is %v, wanted %v", ErrFrame, tr.Value, f.Values[i].Shape, tr.Shape)
		}
	}
	return nil
}

// take is a tensor whose contents are not defined.
func (s *Stage) take(shape tensor.Shape) *tensor.Tensor {
	n := shape.Bytes()
	if list := s.pool[n]; len(list) > 0 {
		x := list[len(list)-1]
		s.pool[n] = list[:len(list)-1]
		return x.As(shape)
	}
	return s.room(shape)
}

// Lies makes the values that the stage keeps between tasks lie where room says, from the next step on.
func (s *Stage) Lies(room func(tensor.Shape) *tensor.Tensor) { s.room = room }

// give keeps the memory of a tensor for the next one of its size.
func (s *Stage) give(x *tensor.Tensor) { s.pool[x.Shape.Bytes()] = append(s.pool[x.Shape.Bytes()], x) }
