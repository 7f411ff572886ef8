// Package pipeline is one stage of a replica, as the party that holds it computes a unit: it exchanges frames with the
// holders of other stages, signs what it sends and takes, and makes the roots of its states, which bind all values that
// it has exchanged. A unit of a stage is a function of its first state, of the data, and of the values that the stage
// has received: a train.Task with the program of the stage and these values executes it again, alone.
//
// It moves no bytes and knows no chain.
package pipeline

import (
	"fmt"
	"strings"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/stages/pass"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/parts"
)

// Unit is the unit of one stage of a replica.
type Unit struct {
	*Replica
	Stage   int
	Spec    *train.Spec // of the job: data, scalars and steps
	Corpus  data.Reader
	Threads int
	Sign    func(statement []byte) []byte
	Moves   Transport
	// Room makes the tensors of the stage that last longer than a task, zeroed; nil: the collector has them.
	Room func(tensor.Shape) *tensor.Tensor

	// Keep is given every frame that was received. It copies the values. nil: nothing is kept.
	Keep func(from int, f pass.Frame) error
	// Exchanged is given what was exchanged in every step, if it is not nil.
	Exchanged func([]Exchange)

	line *line // once it runs
}

// Result is a computed unit.
type Result struct {
	Segments []canon.Digest // roots of the states: the first, and that after every step
	Losses   []float32      // of the last stage; zeros of the others, and of steps before a Resume
	Norms    []float32
	End      []*tensor.Tensor // the parameters and moments at the end, in the order of stages.Stage.State
}

// Begin is the state with which a unit begins, in the order of stages.Stage.State. weights are parameters and frozen
// tensors by name, of which it takes copies.
func (u *Unit) Begin(weights map[string]*tensor.Tensor) (state []*tensor.Tensor, err error) {
	shapes, room := u.Plan.Stages[u.Stage].Whole.InputShapes(), u.Room
	if room == nil {
		room = tensor.New
	}
	for _, n := range u.Plan.Stages[u.Stage].State {
		w, weight := strings.CutPrefix(n, parts.Param)
		if !weight {
			w, weight = strings.CutPrefix(n, parts.Anchor)
		}
		if !weight {
			_, w, weight = optimizer.EarlierOf(n)
		}
		switch {
		case !weight:
			state = append(state, room(shapes[n]))
		case weights[w] == nil || !weights[w].Shape.Equal(shapes[n]):
			return nil, fmt.Errorf("pipeline: stage %d has no weights %q of shape %v", u.Stage, w, shapes[n])
		default:
			x := room(shapes[n])
			copy(x.Bytes(), weights[w].Bytes())
			weights[w].Rest()
			state = append(state, x)
		}
	}
	return state, nil
}

// Open is the stage with the state of Begin, for a caller that computes its steps.
func (u *Unit) Open(weights map[string]*tensor.Tensor) (*pass.Stage, error) {
	state, err := u.Begin(weights)
	if err != nil {
		return nil, err
	}
	st, err := pass.New(u.Plan, u.Stage, u.Orders[u.Stage], state, u.Threads)
	if err == nil && u.Room != nil {
		st.Lies(u.Room)
	}
	return st, err
}

// Run computes a unit, which begins with weights as Begin takes them.
func (u *Unit) Run(weights map[string]*tensor.Tensor) (*Result, error) {
	st, err := u.Open(weights)
	if err != nil {
		return nil, err
	}
	return u.steps(st, newLine(u.Replica, u.Stage, u.Sign, u.Moves, u.Keep),
		&Result{Segments: []canon.Digest{u.root(0, st, nil)}})
}

// Resume computes a unit from a step on, which may have begun before: a holder that restarts, or takes the place of
// another, executes the steps before again from the values that neighbours have kept (see train.Task.Received), and
// then begins the step once more. Neighbours send it the frames of the step again, and leave out those that they have.
// state is that of stages.Stage.State after the steps of segments, and heads are those of the links of the stage.
// Stages that do not wait for each other have links in different steps, and begin the unit again instead.
func (u *Unit) Resume(segments []canon.Digest, state []*tensor.Tensor, heads []Exchange) (*Result, error) {
	if late := u.Plan.Late(); late > 0 {
		return nil, fmt.Errorf("pipeline: a unit of stages that are late by up to %d steps is begun again as a whole", late)
	}
	st, err := pass.New(u.Plan, u.Stage, u.Orders[u.Stage], state, u.Threads)
	if err != nil {
		return nil, err
	}
	l := newLine(u.Replica, u.Stage, u.Sign, u.Moves, u.Keep)
	for _, x := range heads {
		if own := l.links[[2]int{x.From, x.To}]; own != nil {
			*own = x.next()
		}
		if x.To == u.Stage { // a neighbour may still wait for it
			if err := u.Moves.Send(x.From, Message{Voucher: x.Taken}); err != nil {
				return nil, err
			}
		}
	}
	done := len(segments) - 1
	return u.steps(st, l, &Result{Segments: segments, Losses: make([]float32, done), Norms: make([]float32, done)})
}

// steps computes the steps that are left. Where stages do not wait for each other between steps, the words of receivers
// about a step are waited for as many steps later as the first stage is late.
func (u *Unit) steps(st *pass.Stage, l *line, r *Result) (*Result, error) {
	u.line = l
	first, late := uint32(len(r.Segments))-1, uint32(u.Plan.Late())
	n := u.Spec.StepsOf(u.Number) - first
	exchanged := func() error {
		all, err := l.end()
		if err == nil && u.Exchanged != nil {
			u.Exchanged(all)
		}
		return err
	}
	err := st.Steps(first, n, u.Inputs, func(step uint32, told map[string]*tensor.Tensor) error {
		r.Segments = append(r.Segments, u.root(step+1, st, l.roots[step]))
		r.Losses = append(r.Losses, parts.Value(told["loss"]))
		r.Norms = append(r.Norms, parts.Value(told["grad_norm"]))
		delete(l.roots, step)
		if step < first+late {
			return nil
		}
		return exchanged()
	}, l)
	if err != nil {
		return nil, err
	}
	for range min(late, n) {
		if err := exchanged(); err != nil {
			return nil, err
		}
	}
	r.End = st.State()
	return r, nil
}

// root is the root of the state after some steps, with the values exchanged in the last of them: zeros before the
// first.
func (u *Unit) root(step uint32, st *pass.Stage, exchanged map[int32]canon.Digest) canon.Digest {
	own := &u.Plan.Stages[u.Stage]
	held, shapes := map[string]*tensor.Tensor{}, own.Whole.InputShapes()
	for i, x := range st.State() {
		held[own.State[i]] = x
	}
	values := map[string]canon.Digest{}
	for _, t := range u.Plan.Transfers {
		values[t.Name()] = exchanged[t.Value]
	}
	names := parts.StateNames(own.Whole)
	roots := make([]canon.Digest, len(names))
	kernel.Parallel(u.Threads, len(names), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			switch x := held[names[i]]; {
			case x != nil:
				roots[i] = x.Root()
			case step == 0:
				roots[i] = tensor.New(shapes[names[i]]).Root()
			default:
				roots[i] = values[names[i]]
			}
		}
	})
	return train.StateRoot(step, roots)
}

// Inputs are the inputs of a step that are no state and are not received.
func (u *Unit) Inputs(step uint32) (map[string]*tensor.Tensor, error) {
	in, s := map[string]*tensor.Tensor{}, u.Spec
	if shape, ok := u.Plan.Stages[u.Stage].Whole.InputShapes()["tokens"]; ok {
		in["tokens"] = tensor.New(shape)
		if err := u.Corpus.Batch(in["tokens"].I32(), s.Address(u.Round, u.Number, step), int(s.Length)); err != nil {
			return nil, err
		}
	}
	lr, c1, c2 := s.Scalars(u.Round, u.Number, step)
	for n, x := range map[string]float32{"lr": lr, "c1": c1, "c2": c2} {
		in[n] = tensor.Scalar(x)
	}
	in["dice"] = s.Dice(u.Round, u.Number, step)
	return in, nil
}
