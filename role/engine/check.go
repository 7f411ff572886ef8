package engine

import (
	"cmp"
	"context"
	"errors"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee/sealed"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/exchange/screen"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role/hold"
)

// maxExecuted is how many units that were executed for others' commitments stay in memory, for the opening of their
// seals, and for the roots that a planted fault hid.
const maxExecuted = 2

// execution names a unit that was executed again, to the end of a segment or (0) all of it.
type execution struct {
	base          terms.Checkpoint
	from          canon.Digest // root of its carried state
	unit, segment uint32
}

// again executes a unit, unless that was done a moment ago.
func (e *Engine) again(ctx context.Context, base terms.Checkpoint, unit, segment uint32) (*Work, error) {
	from, err := e.origin(base, unit, segment)
	if err != nil {
		return nil, err
	}
	name := execution{base, from, unit, segment}
	if w, ok := e.executed.Get(name); ok {
		return w, nil
	}
	w, err := e.TrainTo(ctx, base, unit, segment)
	if err != nil {
		return nil, err
	}
	PutAside(e.task.Spec, unit, segment, w, e.aside)
	w.Handed = nil // no peer fetches it from here
	e.executed.Put(name, w)
	return w, nil
}

// TrainTo computes a unit to the end of a segment, or (0) all of it. Of a part there are only its state roots and the
// state there.
func (e *Engine) TrainTo(ctx context.Context, name terms.Checkpoint, unit, segment uint32) (*Work, error) {
	if segment == 0 {
		return e.Train(ctx, name, unit)
	}
	base, err := e.Base(name)
	if err != nil {
		return nil, err
	}
	var from []*tensor.Tensor
	if e.Needs(segment) {
		if from, err = e.Origin(name, unit); err != nil {
			return nil, err
		}
	}
	e.computing.Lock()
	defer e.computing.Unlock()
	defer stopWith(ctx, e.task)()
	r, err := e.task.RunTo(base, unit, segment, from, func(uint32, float32) error { return ctx.Err() })
	e.task.Exec.Release()
	if err != nil {
		return nil, errors.Join(ctx.Err(), err)
	}
	return &Work{Commit: work.Commitment{Segments: r.Segments}, End: r.End}, nil
}

// PutAside lets go of the tensors at the end of a unit that was computed for the commitment of another party, to the
// end of a segment or (0) all of it: a seal of it can still be opened.
func PutAside(s *train.Spec, unit, segment uint32, w *Work, to hold.Aside) {
	if w.end != nil || len(w.End) == 0 || segment == 0 && w.Commit.Diverged() {
		return
	}
	s = s.Of(unit)
	steps := s.StepsTo(unit, cmp.Or(segment, s.SegmentsOf(unit)))
	var aside bool
	if w.end, aside = hold.Seal(to, steps, w.End); aside {
		w.End = nil
	}
}

// Comparison is the outcome of executing a unit again.
type Comparison struct {
	Right  bool
	Differ uint32       // unless Right: the first segment root that differs; their number: only the update differs
	Seal   canon.Digest // if Right: root of the state reached over leaves keyed with the verifier's identity
}

// Check executes a unit again, as far as the audit goes, and compares it with a commitment.
func (e *Engine) Check(ctx context.Context, base terms.Checkpoint, s audit.Subject,
	c work.Commitment) (Comparison, error) {
	mine, err := e.again(ctx, base, s.Unit, s.Segment)
	if err != nil {
		return Comparison{}, err
	}
	return e.Compare(mine, s, c), nil
}

// Compare compares the work of a unit with a commitment, as far as the audit goes.
func (e *Engine) Compare(mine *Work, s audit.Subject, c work.Commitment) Comparison {
	roots := mine.Commit.Segments
	if len(c.Segments) == 1 { // the probation task of a tolerant run: only the end is known
		roots = roots[len(roots)-1:]
	}
	for i, want := range roots {
		if i >= len(c.Segments) || c.Segments[i] != want {
			return Comparison{Differ: uint32(i)}
		}
	}
	last := uint32(len(mine.Commit.Segments))
	switch {
	case s.Segment == 0 && c.Update != mine.Commit.Update:
		return Comparison{Differ: last}
	case s.Segment == 0 && c.HandedState.Root != mine.Commit.HandedState.Root:
		return Comparison{Differ: last + 1}
	}
	return Comparison{Right: true, Seal: audit.NewSeal(s, mine.sealed(e.task.Spec, s).Trees()).Root()}
}

// Measure executes a unit again and compares its update with the bytes of the one that was committed to. Both are
// compared as they come out of the codec. Bytes that are not the committed update are a *BadUpdate.
func (e *Engine) Measure(ctx context.Context, base terms.Checkpoint, unit uint32, c work.Commitment,
	update []byte) (audit.Finding, error) {
	mine, err := e.again(ctx, base, unit, 0)
	if err != nil {
		return audit.Finding{}, err
	}
	return e.Find(mine, base, unit, c, update)
}

// Find is what comes of the work of a unit, held against the update of another execution.
func (e *Engine) Find(mine *Work, base terms.Checkpoint, unit uint32, c work.Commitment,
	update []byte) (audit.Finding, error) {
	l, err := e.CompareUpdate(mine, base, unit, c, update)
	if err != nil {
		return audit.Finding{}, err
	}
	roots := mine.Commit.Segments
	f := audit.Finding{End: roots[len(roots)-1]}
	f.DistancePPM, f.CosinePPM = l.PPM()
	return f, nil
}

// CompareUpdate compares an update with that of the work of its unit.
func (e *Engine) CompareUpdate(mine *Work, base terms.Checkpoint, unit uint32, c work.Commitment,
	update []byte) (screen.Similarity, error) {
	from, err := e.Base(base)
	if err != nil {
		return screen.Similarity{}, err
	}
	theirs, err := e.unpack(from, base.Round, unit, c, update)
	if err != nil {
		return screen.Similarity{}, err
	}
	exact, err := e.unpack(from, base.Round, unit, mine.Commit, mine.Update)
	if err != nil {
		return screen.Similarity{}, err
	}
	return screen.Compare(theirs, exact), nil
}

// unpack decodes an update, which must be the one committed to. base is any checkpoint.
func (e *Engine) unpack(base *train.Checkpoint, round, unit uint32, c work.Commitment,
	update []byte) ([]*tensor.Tensor, error) {
	delta, err := outer.Unpack(e.task.Spec, base, round, unit, c.Update, update)
	if err != nil {
		return nil, &BadUpdate{round, unit, err}
	}
	return delta, nil
}

// Unseal opens the seal of a unit that Check found right.
func (e *Engine) Unseal(ctx context.Context, base terms.Checkpoint, s audit.Subject,
	question canon.Digest) (audit.Opening, error) {
	mine, err := e.again(ctx, base, s.Unit, s.Segment)
	if err != nil {
		return audit.Opening{}, err
	}
	return e.Answer(mine, s, question)
}

// Answer opens the seal of the work of a unit.
func (e *Engine) Answer(mine *Work, s audit.Subject, question canon.Digest) (audit.Opening, error) {
	end := mine.sealed(e.task.Spec, s)
	return audit.NewSeal(s, end.Trees()).Open(question, end)
}

// sealed is the state at the end of the unit or segment that a subject names.
func (w *Work) sealed(spec *train.Spec, s audit.Subject) hold.Sealed {
	if w.end != nil {
		return w.end
	}
	part := spec.Of(s.Unit)
	steps := part.StepsOf(s.Unit)
	if s.Segment > 0 {
		steps = part.StepsTo(s.Unit, s.Segment)
	}
	return sealed.New(steps, w.End)
}

// Release drops the checkpoints and the carried states that are held in memory, once no unit is computed, and then
// calls also, which drops more. They are loaded from the store when they are needed again. Executions for open seals
// and disputes are needed at once: their last states go to a place outside of memory, if it has room.
func (e *Engine) Release(to hold.Aside, also func()) {
	e.computing.Lock()
	defer e.computing.Unlock()
	e.Recent.Clear()
	e.states.held.Clear()
	e.executed.Each(func(x execution, w *Work) {
		if len(w.End) > 0 { // another copy: an opening may read w
			away := *w
			away.end = nil
			PutAside(e.task.Spec, x.unit, x.segment, &away, to)
			e.executed.Put(x, &away)
		}
	})
	also()
}

// Exclusively calls a function while the engine computes no unit: it may use the Exec of the task.
func Exclusively(e *Engine, do func() error) error {
	e.computing.Lock()
	defer e.computing.Unlock()
	return do()
}
