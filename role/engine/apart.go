package engine

import (
	"context"
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/parts"
	"github.com/starling-network/starling/compute/train/unitlog"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/checkpoint"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

// In a job whose answers are drawn apart (train.Rollout), a unit that learns starts from the answers of several
// units of an earlier round.

// drawn names what a unit of the round after a checkpoint learns from, in the order of parts.Rounds.ReadsAll, and the
// round that it was drawn in. There is none of a unit that draws.
func (x *states) drawn(base terms.Checkpoint, unit uint32) (list []work.HandedState, l work.RoundState, err error) {
	s := x.task.Spec
	if s.Rollout == nil || unit >= s.Units {
		return nil, l, nil
	}
	run, round, ok := x.round(base)
	if !ok || round.Starts(unit).Root.IsZero() {
		return nil, l, fmt.Errorf("engine: the answers of unit %d of round %d are not known", unit, base.Round)
	}
	policy := s.Apart().Policy(base.Round)
	if l, ok = run.Answers(policy); !ok || len(l.Units) < int(s.Units+s.Apart().Drawing()) {
		return nil, l, fmt.Errorf("engine: round %d, in which the answers of round %d were drawn, is closed", policy,
			base.Round)
	}
	var roots []canon.Digest
	for _, k := range s.Apart().ReadsAll(unit) {
		h := l.Units[k].Commit.HandedState
		list, roots = append(list, h), append(roots, h.Root)
	}
	if parts.GivenRoot(roots) != round.Starts(unit).Root {
		return nil, l, fmt.Errorf("engine: the answers of unit %d of round %d are others by now", unit, base.Round)
	}
	return list, l, nil
}

// Answers are what a unit has drawn.
type Answers struct {
	Work     work.UnitID // that draws them
	Worker   string      // that has committed to them
	State    work.HandedState
	Withheld bool // most members could not fetch them
}

// Lacks lists the answers that a unit of the round after a checkpoint learns from and that are not in memory.
func (x *states) Lacks(base terms.Checkpoint, unit uint32) (list []Answers, err error) {
	drawn, l, err := x.drawn(base, unit)
	if err != nil {
		return nil, err
	}
	reads := x.task.Spec.Apart().ReadsAll(unit)
	for k, from := range drawn {
		if _, ok := x.held.Get(from.Root); !ok {
			u := l.Units[reads[k]]
			list = append(list, Answers{u.ID(l.Round), u.Worker, from, u.Withheld})
		}
	}
	return list, nil
}

// Take brings answers to memory, whose blobs get returns.
func (x *states) Take(ctx context.Context, a work.HandedState, get checkpoint.Getter) error {
	tensors, err := x.loadState(ctx, a, get)
	if err == nil {
		x.keep(a.Root, tensors)
	}
	return err
}

// gather brings what a unit learns from to memory: from the store, from the holders, or, if that is not nil and none of
// them has it, by executing the unit that draws it.
func gather(ctx context.Context, e *Engine, base terms.Checkpoint, unit uint32, holders []string) error {
	drawn, l, err := e.drawn(base, unit)
	if err != nil {
		return err
	}
	for k, from := range drawn {
		if _, ok := e.states.held.Get(from.Root); ok {
			continue
		}
		tensors, err := e.fetchState(ctx, from, holders)
		if err == nil {
			e.keep(from.Root, tensors)
			continue
		}
		if holders == nil || ctx.Err() != nil {
			return err
		}
		if err := e.Load(ctx, l.Base, holders); err != nil {
			return err
		}
		drawing := e.task.Spec.Apart().ReadsAll(unit)[k]
		w, err := e.Train(ctx, l.Base, drawing)
		switch {
		case err != nil:
			return err
		case w.Commit.HandedState.Root != from.Root:
			return &BadCarriedState{l.Round, drawing}
		}
		for i := range w.Handed { // others may miss them, too
			b, err := w.Handed[i].Get()
			if err != nil {
				return err
			}
			if _, err := e.store.Put(ctx, b); err != nil {
				return err
			}
		}
	}
	return nil
}

// answers are what a unit learns from, which gather has brought to memory.
func (x *states) answers(base terms.Checkpoint, unit uint32) ([]*tensor.Tensor, error) {
	drawn, _, err := x.drawn(base, unit)
	if err != nil {
		return nil, err
	}
	var all []*tensor.Tensor
	for _, from := range drawn {
		s, ok := x.held.Get(from.Root)
		if !ok {
			return nil, fmt.Errorf("engine: the answers of unit %d of round %d are not held", unit, base.Round)
		}
		tensors, _, err := s.Get()
		if err != nil {
			return nil, err
		}
		all = append(all, tensors...)
	}
	return all, nil
}

// newDrawing is the commitment to the result of a unit that draws: it passes on a part of its last state.
func newDrawing(e *Engine, round, unit uint32, r *train.Result) (*Work, error) {
	log := unitlog.Encode(round, unit, r.Losses, r.Norms)
	w := &Work{Commit: work.Commitment{Segments: r.Segments, Log: blob.Of(log).String()}, Log: log, End: r.End}
	on := r.End[len(r.End)-len(parts.HandedOn(e.task.Step)):]
	var reward float64
	for _, t := range on[1:2] {
		for _, x := range t.F32() {
			reward += float64(x) / float64(len(t.F32()))
		}
	}
	if missed := (1 - reward) * 1e6; missed-missed == 0 && missed < 1<<62 && missed > -1<<62 {
		w.Commit.Loss = int64(missed)
	}
	var err error
	w.Commit.HandedState, w.Handed, err = e.handOn(round, unit, on)
	for i := range w.Handed {
		b, err := w.Handed[i].Get()
		if err != nil {
			return nil, err
		}
		w.Commit.Bytes += uint64(len(b))
	}
	return w, err
}
