package adversary

import (
	"cmp"
	"context"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/parts"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/role/engine"
)

// TrainsLess is a worker that stops after some inner steps of every unit and commits as if it had done them all.
type TrainsLess struct{ Steps uint32 }

// Install implements Attack.
func (a TrainsLess) Install(c Setup) Step { return a.faulty(c.Honest).play(c) }

func (a TrainsLess) faulty(h Honest) faultyCompute {
	return faultyCompute{Honest: h, tamper: func(done uint32, before, after []*tensor.Tensor) {
		for i := range after {
			if done > a.Steps {
				copy(after[i].Bytes(), before[i].Bytes())
			}
		}
	}}
}

// FlipsBit is a worker that trains as it should, but for one bit of one weight after one step.
type FlipsBit struct{ Step, Tensor, Bit uint32 }

// Install implements Attack.
func (a FlipsBit) Install(c Setup) Step {
	return faultyCompute{Honest: c.Honest, tamper: func(done uint32, _, after []*tensor.Tensor) {
		if done == a.Step {
			b := after[int(a.Tensor)%len(after)].Bytes()
			b[int(a.Bit/8)%len(b)] ^= 1 << (a.Bit % 8)
		}
	}}.play(c)
}

// WrongData is a worker that trains on other examples than its own.
type WrongData struct{}

// Install implements Attack.
func (WrongData) Install(c Setup) Step {
	return faultyCompute{Honest: c.Honest, spec: func(s *train.Spec) { s.Seed++ }}.play(c)
}

// IgnoresCarriedState is a worker of replicas that begins its units from the checkpoint, and not from their carried
// state.
type IgnoresCarriedState struct{}

// Install implements Attack.
func (IgnoresCarriedState) Install(c Setup) Step {
	return faultyCompute{Honest: c.Honest, anew: true}.play(c)
}

// WrongRate is a worker that trains with another learning rate.
type WrongRate struct{ Factor float64 }

// Install implements Attack.
func (a WrongRate) Install(c Setup) Step {
	return faultyCompute{Honest: c.Honest, spec: func(s *train.Spec) { s.Rate.Peak *= a.Factor }}.play(c)
}

// OtherNumerics is a worker that computes its units in another version of the numerics than that of the job, as an old
// program would that does not look at the version.
type OtherNumerics struct{}

// Install implements Attack.
func (OtherNumerics) Install(c Setup) Step {
	d := faultyCompute{Honest: c.Honest, numerics: kernel.Version1}
	if d.Task().Step.Numerics == kernel.Version1 {
		d.numerics = kernel.Version2
	}
	return d.play(c)
}

// CopiesChanged is a worker that presents the work of the next unit as its own, with a change that hides it.
type CopiesChanged struct{}

// Install implements Attack.
func (CopiesChanged) Install(c Setup) Step {
	return faultyCompute{Honest: c.Honest, shift: 1, poison: func(delta []*tensor.Tensor) {
		for _, d := range delta {
			for i := range d.F32() {
				d.F32()[i] *= 1.01
			}
		}
	}}.play(c)
}

// Poisons is a worker that trains honestly and shares an update that points away from its result.
type Poisons struct{ Factor float32 }

// Install implements Attack.
func (a Poisons) Install(c Setup) Step {
	return faultyCompute{Honest: c.Honest, poison: func(delta []*tensor.Tensor) {
		for _, d := range delta {
			for i := range d.F32() {
				d.F32()[i] *= a.Factor
			}
		}
	}}.play(c)
}

// faultyCompute executes another unit than the assigned one, and defends the result with the traces of that execution.
type faultyCompute struct {
	Honest
	spec  func(s *train.Spec) // what is trained in place of the job; nil: the job
	shift uint32              // to the unit that is trained in place of the own
	// version in which the program is executed; 0: its own
	numerics uint32
	// begins from the checkpoint, without the carried state
	anew   bool
	tamper func(done uint32, before, after []*tensor.Tensor) // changes the state after so many steps; nil: not
	poison func(delta []*tensor.Tensor)                      // changes the update; nil: not
}

func (d faultyCompute) play(c Setup) Step {
	c.Party.Compute = d
	return c.Step
}

// task is the task that is trained, with an executor of its own: the executor of the honest party serves the other
// duties of the process.
func (d faultyCompute) task() (*train.Task, error) {
	t, s := *d.Task(), *d.Task().Spec
	if d.spec != nil {
		d.spec(&s)
	}
	t.Spec = &s
	var err error
	if t.Exec, err = s.Compile(t.Step.In(cmp.Or(d.numerics, t.Step.Numerics)), 1); err != nil {
		return nil, err
	}
	return &t, t.Divide()
}

// Train implements party.Compute.
func (d faultyCompute) Train(_ context.Context, name terms.Checkpoint, unit uint32) (*engine.Work, error) {
	base, err := d.Base(name)
	if err != nil {
		return nil, err
	}
	from, err := d.Origin(name, unit)
	if err != nil {
		return nil, err
	}
	r, err := d.run(base, unit, from)
	if err != nil {
		return nil, err
	}
	return d.NewWork(name, unit, r)
}

// run executes the whole unit as train.Task.Run does.
func (d faultyCompute) run(base *train.Checkpoint, unit uint32, from []*tensor.Tensor) (*train.Result, error) {
	x := &execution{faulty: d, base: base, unit: unit, from: from}
	spec := d.Task().Spec.Of(unit)
	steps := spec.StepsOf(unit)
	r := &train.Result{Losses: make([]float32, steps)}
	for done := uint32(0); ; done = min(done+spec.Segment, steps) {
		if err := x.at(done); err != nil {
			return nil, err
		}
		r.Segments = append(r.Segments, x.session.Root())
		if done == steps {
			break
		}
	}
	r.End = x.session.Tensors()
	begun := train.ModelOf(spec, base, unit)
	for i, end := range r.End[:len(begun.Params)] {
		delta := tensor.New(end.Shape)
		for j, p := range begun.Params[i].F32() {
			delta.F32()[j] = p - end.F32()[j]
		}
		r.Delta = append(r.Delta, delta)
	}
	if d.poison != nil {
		d.poison(r.Delta)
	}
	for i := range r.Losses {
		r.Losses[i] = 1
	}
	return r, nil
}

// Oracle implements party.Compute.
func (d faultyCompute) Oracle(name terms.Checkpoint, g dispute.Dispute) (dispute.Oracle, error) {
	honest, err := d.Honest.Oracle(name, g)
	if err != nil {
		return nil, err
	}
	base, err := d.Base(name)
	if err != nil {
		return nil, err
	}
	from, err := d.Origin(name, g.Config.Unit)
	return &execution{Oracle: honest, faulty: d, base: base, name: name, unit: g.Config.Unit, from: from}, err
}

// execution is a faulty execution of a unit. It answers as the asserter of a dispute. How an output or a payload
// that it claims is made it cannot show: it says what the honest one does, which does not lead there.
type execution struct {
	dispute.Oracle
	faulty faultyCompute
	base   *train.Checkpoint
	name   terms.Checkpoint // of base
	unit   uint32
	from   []*tensor.Tensor // its carried state

	session *train.Session
	done    uint32
}

// at brings the session to the state after some steps.
func (x *execution) at(step uint32) (err error) {
	if x.session == nil || x.done > step {
		task, err := x.faulty.task()
		if err != nil {
			return err
		}
		from := x.from
		if x.faulty.anew {
			from = nil
		}
		x.done = 0
		base := train.ModelOf(task.Spec, x.base, x.unit)
		if x.session, err = task.Begin(base, shifted(task.Spec, x.unit, x.faulty.shift), from); err != nil {
			return err
		}
	}
	for x.done < step {
		before := clones(x.session.Tensors())
		if _, err := x.session.Advance(); err != nil {
			return err
		}
		x.done++
		if x.faulty.tamper != nil {
			x.faulty.tamper(x.done, before, x.session.Tensors())
		}
	}
	return nil
}

// shifted is the unit a number of places after another, among the units of its kind: those that draw, or the others.
func shifted(s *train.Spec, unit, by uint32) uint32 {
	if unit < s.Units {
		return (unit + by) % s.Units
	}
	return s.Units + (unit-s.Units+by)%s.Apart().Drawing()
}

func clones(ts []*tensor.Tensor) []*tensor.Tensor {
	out := make([]*tensor.Tensor, len(ts))
	for i, t := range ts {
		out[i] = t.Clone()
	}
	return out
}

// Steps implements dispute.Oracle.
func (x *execution) Steps(after []uint64) ([]canon.Digest, error) {
	roots := make([]canon.Digest, len(after))
	for i, step := range after {
		if err := x.at(uint32(step)); err != nil {
			return nil, err
		}
		roots[i] = x.session.Root()
	}
	return roots, nil
}

// Trace implements dispute.Oracle.
func (x *execution) Trace(step uint32) (*canon.Tree, error) {
	values, err := x.trace(step)
	if err != nil {
		return nil, err
	}
	return canon.NewTree(train.Roots(values)), nil
}

// trace returns the outputs of all operators of a step, tampered with like the state after it.
func (x *execution) trace(step uint32) ([]*tensor.Tensor, error) {
	if err := x.at(step); err != nil {
		return nil, err
	}
	before := clones(x.session.Tensors())
	of := x.faulty.Task().Of(x.unit).Step
	values := make([]*tensor.Tensor, len(of.Ops))
	_, err := x.session.Trace(func(op int, value *tensor.Tensor) { values[op] = value.Clone() })
	if err != nil || x.faulty.tamper == nil {
		return values, err
	}
	at := map[string]int32{}
	for _, o := range of.Outputs {
		at[o.Name] = o.Value
	}
	var after []*tensor.Tensor
	for _, n := range train.StateNames(of) {
		after = append(after, values[at[n]])
	}
	x.faulty.tamper(step+1, before, after)
	return values, nil
}

// Result implements dispute.Oracle.
func (x *execution) Result(k dispute.Kind) (*canon.Tree, error) {
	r, err := x.faulty.run(x.base, x.unit, x.from)
	if err != nil {
		return nil, err
	}
	return resultTree(k, x.faulty, x.name, x.unit, r)
}

func resultTree(k dispute.Kind, h Honest, name terms.Checkpoint, unit uint32, r *train.Result) (*canon.Tree, error) {
	if s := h.Task().Spec; s.Rollout != nil && unit >= s.Units {
		return canon.NewTree(train.Roots(r.End[len(r.End)-len(parts.HandedOn(h.Task().Step)):])), nil
	}
	from, err := h.Origin(name, unit)
	if err != nil {
		return nil, err
	}
	u, on, err := outer.Commit(h.Task().Spec, train.Params(h.Task().Step), name.Round, unit, r, from)
	switch {
	case err != nil:
		return nil, err
	case k == dispute.Carry:
		return canon.NewTree(train.Roots(on)), nil
	}
	return u.Tree(), nil
}
