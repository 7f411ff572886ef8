package train

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train/diverged"
	"github.com/starling-network/starling/compute/train/parts"
)

// Task is everything that work units of one job are computed from.
type Task struct {
	Spec   *Spec
	Step   *program.Program // the training step, Spec.Program
	Exec   *cpu.Exec        // Step, compiled
	Corpus data.Reader
	Frozen []*tensor.Tensor // by Frozen(Step): read, never written
	Device Device           // takes the steps of units; nil: the kernels do

	// FrozenRoots are the roots of Frozen, if the maker of the task knows them. nil: RootsOfFrozen computes them.
	FrozenRoots []canon.Digest

	// Received is what a stage of a model has received in a step of a unit, by the names of inputs with the prefix
	// parts.Received; nil: the task is of a whole model.
	Received func(round, unit, step uint32) (map[string]*tensor.Tensor, error)

	kinds *kinds // Divide made them
	whole *Task  // of which this is a part
}

// RootsOfFrozen returns the roots of Frozen.
func (t *Task) RootsOfFrozen() []canon.Digest {
	if t.FrozenRoots != nil {
		return t.FrozenRoots
	}
	return RootsBy(kernel.Cores, t.Frozen, nil)
}

// Session is the execution of one work unit, step by step.
type Session struct {
	task        *Task
	round, unit uint32
	step        uint32           // inner steps done
	names       []string         // of the state
	base, from  []*tensor.Tensor // parameters that a replica is made from
	// state before and after the current step, the same tensors where the program lets them
	in, out map[string]*tensor.Tensor
	tokens  *tensor.Tensor
	on      Executor // nil: the kernels
	device  Device   // nil: the kernels
	begun   bool     // the device has the inputs
	stale   bool     // the device has a newer state
}

// Begin prepares the unit of the round that follows a checkpoint. from is the state carried to the unit, nil for
// none: units that are replicas begin from the checkpoint less from.
func (t *Task) Begin(base *Checkpoint, unit uint32, from []*tensor.Tensor) (*Session, error) {
	return t.begin(base, unit, from, false)
}

// begin is Begin. With own, the session owns the carried moments from now on, and writes to them.
func (t *Task) begin(base *Checkpoint, unit uint32, from []*tensor.Tensor, own bool) (*Session, error) {
	if t.kinds != nil {
		return t.Of(unit).begin(base, unit, from, own)
	}
	base = ModelOf(t.Spec, base, unit)
	var answers []*tensor.Tensor
	if IsGiven(t.Spec) {
		answers, from = from, nil
	}
	left, moments := Split(t.Spec.Exchange, len(base.Params), from)
	from = Below(t.Spec.Exchange, base, unit, left)
	remembered, shapes := Moments(t.Step), t.Step.InputShapes()
	if from != nil && !alike(base.Params, from) || moments != nil && !shaped(moments, remembered, shapes) ||
		!shaped(answers, parts.Given(t.Step), shapes) {
		return nil, fmt.Errorf("train: the state carried to unit %d of round %d does not have the shapes of the parameters",
			unit, base.Round)
	}
	if unit >= t.Spec.Units || base.Round >= t.Spec.Rounds {
		return nil, fmt.Errorf("train: no unit %d in round %d of a job of %d rounds of %d units", unit, base.Round,
			t.Spec.Rounds, t.Spec.Units)
	}
	s := &Session{
		task: t, round: base.Round, unit: unit, names: StateNames(t.Step), base: base.Params, from: from,
		in: map[string]*tensor.Tensor{}, out: map[string]*tensor.Tensor{},
		tokens: tensor.New(tensor.Shape{DType: tensor.Int32, Dims: []int{int(t.Spec.Batch), int(t.Spec.Length) + 1}}),
	}
	for i, n := range base.Names {
		if from == nil {
			s.in[Param+n] = base.Params[i].Clone()
			base.Params[i].Rest()
		} else {
			s.in[Param+n] = Difference(base.Params[i], from[i])
			s.in[Param+n].Canonicalize()
		}
	}
	base.Rest() // neighbours of a page that is read come with it
	begun(remembered, shapes, moments, answers, own, s.in)
	for _, n := range s.names {
		if s.out[n] = s.in[n]; !t.Exec.Shares(n, n) {
			s.out[n] = tensor.New(shapes[n])
		}
	}
	if parts.Anchored(t.Step) {
		for i, n := range base.Names {
			s.in[Anchor+n] = base.Params[i]
		}
	}
	for i, n := range Frozen(t.Step) {
		s.in[Param+n] = t.Frozen[i]
	}
	if shape, ok := shapes["dice"]; ok {
		s.in["dice"] = tensor.New(shape)
	}
	maps.Copy(s.out, parts.Measured(t.Step))
	if _, ok := shapes["tokens"]; ok {
		s.in["tokens"] = s.tokens
	}
	for _, n := range scalars {
		if _, ok := shapes[n]; ok {
			s.in[n] = tensor.Scalar(0)
		}
	}
	return s, nil
}

// scalars are the inputs of a step that Spec.Scalars gives, in order. A unit that draws has none.
var scalars = [...]string{"lr", "c1", "c2"}

// Inputs returns the inputs of the next step. The tensors belong to the session and change with Advance.
func (s *Session) Inputs() (map[string]*tensor.Tensor, error) {
	sp := s.task.Spec
	if sp.Led { // it reads no corpus
	} else if err := s.task.Corpus.Batch(s.tokens.I32(), sp.Address(s.round, s.unit, s.step), int(sp.Length)); err != nil {
		return nil, s.failed("data", fmt.Errorf("%w: %w", data.ErrBatch, err))
	}
	if s.task.Received != nil {
		given, err := s.task.Received(s.round, s.unit, s.step)
		if err != nil {
			return nil, s.failed("what was received", err)
		}
		maps.Copy(s.in, given)
	}
	lr, c1, c2 := sp.Scalars(s.round, s.unit, s.step)
	for i, x := range []float32{lr, c1, c2} {
		if t := s.in[scalars[i]]; t != nil {
			t.F32()[0] = x
		}
	}
	if dice := s.in["dice"]; dice != nil {
		copy(dice.Bytes(), sp.Dice(s.round, s.unit, s.step).Bytes())
	}
	return s.in, nil
}

func (s *Session) failed(what string, err error) error {
	return fmt.Errorf("train: %s of round %d, unit %d, step %d: %w", what, s.round, s.unit, s.step, err)
}

// Advance executes one inner step and returns its loss (mean cross-entropy in nats, before the update). After an error
// the session is of no use.
func (s *Session) Advance() (loss float32, err error) {
	in, err := s.Inputs()
	if err != nil {
		return 0, err
	}
	switch {
	case s.on != nil:
		return s.advanceOn(in)
	case s.device != nil:
		return s.advanceOnDevice(in)
	}
	if err := s.task.Exec.RunInto(in, s.out); err != nil {
		return 0, s.failed("execution", err)
	}
	for _, n := range s.names {
		s.in[n], s.out[n] = s.out[n], s.in[n]
	}
	s.step++
	return parts.Value(s.out["loss"]), nil
}

// skip makes a session that begins at a root stand where it stood after some progress.
func (s *Session) skip(p *Progress, start canon.Digest) error {
	state, spec := s.Tensors(), s.task.Spec
	whole := p.Step < spec.StepsOf(s.unit) && len(p.Losses) == int(p.Step) && len(p.Norms) == int(p.Step) &&
		len(p.Segments) == 1+int(p.Step/spec.Segment) && len(p.State) == len(state)
	if !whole || p.Segments[0] != start {
		return s.failed("resuming", ErrProgress)
	}
	for i, x := range p.State {
		if !x.Shape.Equal(state[i].Shape) {
			return s.failed("resuming", ErrProgress)
		}
	}
	for i, x := range p.State {
		copy(state[i].Bytes(), x.Bytes())
	}
	s.step = p.Step
	return nil
}

// Tensors returns the state in the order in which StateRoot takes it.
func (s *Session) Tensors() (out []*tensor.Tensor) {
	for _, n := range s.names {
		out = append(out, s.in[n])
	}
	return out
}

// Named are the tensors whose roots make the root of the current inner state: those of the state itself, or, before the
// first step of a replica, what that is made from.
func (s *Session) Named() []*tensor.Tensor {
	state := s.Tensors()
	if s.step > 0 || s.from == nil {
		return state
	}
	return slices.Concat(s.base, state[len(s.base):], s.from)
}

// Root is the root of the current inner state.
func (s *Session) Root() canon.Digest { return StateRoot(s.step, Roots(s.Named())) }

// shaped reports whether tensors have the shapes of inputs.
func shaped(list []*tensor.Tensor, names []string, shapes map[string]tensor.Shape) bool {
	return slices.EqualFunc(list, names, func(x *tensor.Tensor, n string) bool { return x.Shape.Equal(shapes[n]) })
}

func alike(a, b []*tensor.Tensor) bool {
	return slices.EqualFunc(a, b, func(x, y *tensor.Tensor) bool { return x.Shape.Equal(y.Shape) })
}

// DivergedError is a *diverged.Error.
type DivergedError = diverged.Error

// Result is a finished work unit, or one that was executed to the end of a segment.
type Result struct {
	Segments []canon.Digest // inner state roots at the start, at every segment boundary and at the end
	// of a finished unit: base minus end, per parameter: the pseudo-gradient of DiLoCo (Douillard et al. 2023,
	// algorithm 1); of a parameter of Spec.UnderWay what it began with minus end
	Delta  []*tensor.Tensor
	Losses []float32 // of every inner step
	// of the gradient of every inner step, Euclidean, before it is clipped; nil: of an Executor, which does not tell
	Norms    []float32
	End      []*tensor.Tensor // the state reached, in the order in which StateRoot takes it
	Diverged *DivergedError   // the update is not finite; nil: it is
}

// Run executes a whole unit; from is as for Begin. After every step it calls observe, if given; an error of observe
// ends the unit. A unit with values that are not finite is executed to its end like any other: every bit of it is
// specified, with one NaN for all.
func (t *Task) Run(base *Checkpoint, unit uint32, from []*tensor.Tensor,
	observe func(step uint32, loss float32) error) (*Result, error) {
	return t.Resume(base, unit, from, false, nil, each(observe))
}

// RunTo executes a unit from its start to the end of a segment, counted from 1. It makes no update of it.
func (t *Task) RunTo(base *Checkpoint, unit, segment uint32, from []*tensor.Tensor,
	observe func(step uint32, loss float32) error) (*Result, error) {
	return t.execute(base, unit, segment, from, false, nil, each(observe))
}

func each(observe func(step uint32, loss float32) error) func(Progress) error {
	return func(p Progress) error {
		if observe == nil {
			return nil
		}
		return observe(p.Step, p.Losses[p.Step-1])
	}
}

// Progress is the state of a unit between steps: enough to resume it, even in another process.
type Progress struct {
	Step     uint32           // inner steps done
	Segments []canon.Digest   // as in a Result, so far
	Losses   []float32        // of the steps done
	Norms    []float32        // of their gradients, as in a Result
	State    []*tensor.Tensor // in the order in which StateRoot takes it; valid until the next step
	Fetch    func() error     // brings State from where it is computed; nil: it is here
}

// ErrProgress is wrapped by every reason why a unit cannot be resumed from some progress.
var ErrProgress = errors.New("not the progress of this unit")

// Resume is Run from earlier progress p, which the caller vouches for; nil: from the start. observe gets the progress
// after every step. own says that the caller does not use the carried state any more: its moments become those of the
// unit, and are not copied. The memory of the task's Exec is given back.
func (t *Task) Resume(base *Checkpoint, unit uint32, from []*tensor.Tensor, own bool, p *Progress,
	observe func(Progress) error) (*Result, error) {
	if t.kinds != nil {
		return t.Of(unit).Resume(base, unit, from, own, p, observe)
	}
	base = ModelOf(t.Spec, base, unit)
	r, err := t.execute(base, unit, t.Spec.SegmentsOf(unit), from, own, p, observe)
	if t.Exec.Release(); err != nil { // the update takes as much as the parameters
		return nil, err
	}
	if t.Spec.learning != nil { // it has no update
		return r, nil
	}
	if IsGiven(t.Spec) {
		from = nil
	}
	left, _ := Split(t.Spec.Exchange, len(base.Params), from)
	r.Conclude(t.Spec.origin(base, left), base, unit)
	return r, nil
}

// Conclude makes the update of a whole unit, which began with some parameters of a checkpoint, or says where its
// numbers end.
func (r *Result) Conclude(origin []*tensor.Tensor, base *Checkpoint, unit uint32) {
	for i, n := range base.Names {
		delta := Difference(origin[i], r.End[i])
		origin[i].Rest()
		if k := slices.IndexFunc(delta.F32(), func(x float32) bool { return !finite(x) }); k >= 0 && r.Diverged == nil {
			r.Diverged = &DivergedError{Round: base.Round,
				What: fmt.Sprintf("the update of unit %d to element %d of %q is %v", unit, k, n, delta.F32()[k])}
		}
		r.Delta = append(r.Delta, delta)
	}
	if k := slices.IndexFunc(r.Losses, func(x float32) bool { return !finite(x) }); k >= 0 && r.Diverged != nil {
		r.Diverged.What = fmt.Sprintf("the loss of step %d of unit %d is %v", k+1, unit, r.Losses[k])
	}
}

// execute executes a unit to the end of a segment.
func (t *Task) execute(base *Checkpoint, unit, segment uint32, from []*tensor.Tensor, own bool, p *Progress,
	observe func(Progress) error) (*Result, error) {
	if t.kinds != nil {
		return t.Of(unit).execute(base, unit, segment, from, own, p, observe)
	}
	if r, done, err := t.onDevice(base, unit, segment, from, p, observe); done {
		return r, err
	}
	s, err := t.begin(base, unit, from, own)
	if err != nil {
		return nil, err
	}
	return s.execute(t.Spec.StepsTo(unit, segment), p, observe)
}

// execute takes the steps up to end, after earlier progress if there is any.
func (s *Session) execute(end uint32, p *Progress, observe func(Progress) error) (*Result, error) {
	r := &Result{Segments: []canon.Digest{s.Root()}}
	if p != nil {
		if err := s.skip(p, r.Segments[0]); err != nil {
			return nil, err
		}
		r.Segments, r.Losses, r.Norms = slices.Clone(p.Segments), slices.Clone(p.Losses), slices.Clone(p.Norms)
	}
	if err := s.continueTo(end, r, observe); err != nil {
		return nil, err
	}
	return r, nil
}

// continueTo takes steps until step end, and adds their states and losses to the result.
func (s *Session) continueTo(end uint32, r *Result, observe func(Progress) error) error {
	for s.step < end {
		loss, err := s.Advance()
		if err != nil {
			return err
		}
		r.Losses = append(r.Losses, loss)
		if s.on == nil {
			r.Norms = append(r.Norms, parts.Value(s.out["grad_norm"]))
		}
		if spec := s.task.Spec; s.step%spec.Segment == 0 || s.step == spec.StepsOf(s.unit) {
			if err := s.fetch(); err != nil {
				return err
			}
			r.Segments = append(r.Segments, s.Root())
		}
		if err := observe(Progress{s.step, r.Segments, r.Losses, r.Norms, s.Tensors(), s.fetch}); err != nil {
			return err
		}
	}
	r.End = s.Tensors()
	return nil
}

func finite(x float32) bool { return x-x == 0 }

// Difference is a minus b, of equal shapes.
func Difference(a, b *tensor.Tensor) *tensor.Tensor {
	d := tensor.New(a.Shape)
	x, y, z := a.F32(), b.F32(), d.F32()
	for i := range z {
		z[i] = x[i] - y[i]
	}
	runtime.KeepAlive(a)
	runtime.KeepAlive(b)
	return d
}
