package staged

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee/link"
	"github.com/starling-network/starling/compute/stages"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/parts"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/engine"
)

// again executes the unit of a stage alone, from the values that it has received, unless that was done a moment ago.
func (x *Engine) again(ctx context.Context, name terms.Checkpoint, unit, segment uint32) (*engine.Work, error) {
	v, err := held(x, name.Round, unit)
	if err != nil {
		return nil, err
	}
	key := execution{name, v.root, unit, segment}
	w, done := x.executed.Get(key)
	if done {
		return w, nil
	}
	if w, err = x.execute(ctx, name, unit, segment); err != nil {
		return nil, err
	}
	engine.PutAside(x.Task().Spec, unit, segment, w, x.Aside)
	w.Update, w.Handed = nil, nil // no peer fetches them from here
	x.executed.Put(key, w)
	return w, nil
}

// execute executes a unit to the end of a segment, or (0) all of it, with the root over the heads of its links.
func (x *Engine) execute(ctx context.Context, name terms.Checkpoint, unit, segment uint32) (w *engine.Work, err error) {
	base, err := x.Base(name)
	if err != nil {
		return nil, err
	}
	task := x.Task().Of(unit)
	var roots []map[string]canon.Digest // of values that were exchanged, by step
	names := train.StateNames(task.Step)
	observe := func(p train.Progress) error {
		step := map[string]canon.Digest{}
		for i, n := range names {
			if parts.IsExchanged(n) {
				step[n] = p.State[i].Root()
			}
		}
		roots = append(roots, step)
		return ctx.Err()
	}
	var r *train.Result
	err = engine.Exclusively(x.Engine, func() (err error) {
		if segment > 0 {
			r, err = task.RunTo(base, unit, segment, nil, func(uint32, float32) error { return ctx.Err() })
			task.Exec.Release()
			return err
		}
		r, err = task.Resume(base, unit, nil, false, nil, observe)
		return err
	})
	if err != nil {
		return nil, errors.Join(ctx.Err(), err)
	}
	if segment > 0 {
		return &engine.Work{Commit: work.Commitment{Segments: r.Segments}, End: r.End}, nil
	}
	if w, err = x.NewWork(name, unit, r); err != nil {
		return nil, err
	}
	stage, _ := x.stage(unit)
	for _, l := range link.OfStage(x.plan, stage) {
		h, err := link.Head(x.plan, l, uint32(len(roots)), func(step uint32, t stages.Transfer) (canon.Digest, error) {
			return roots[step][t.Name()], nil
		})
		if err != nil {
			return nil, err
		}
		w.Commit.Links = append(w.Commit.Links, work.Exchanged{Frames: h.Frames, Chain: h.Chain})
	}
	w.Commit.HandedState.Root = work.LinksRoot(w.Commit.Links)
	return w, nil
}

// alone computes the unit of a stage with the values that an execution of all stages gives.
func (x *Engine) alone(ctx context.Context, name terms.Checkpoint, unit uint32) (*engine.Work, error) {
	v, err := x.whole(ctx, name, unit)
	if err != nil {
		return nil, err
	}
	x.has.Put(place{name.Round, unit}, v)
	w, err := x.execute(ctx, name, unit, 0)
	if err != nil {
		return nil, err
	}
	return w, x.record(w, unit, v)
}

// Start implements party.Lineage: it brings what a committed unit has received to memory. Nothing is needed of one that
// is not committed.
func (x *Engine) Start(ctx context.Context, base terms.Checkpoint, unit uint32, holders []string) error {
	at := place{base.Round, unit}
	l, err := x.round(base)
	if err != nil && holders != nil { // of a round that is final, for a probation
		v, failed := x.loaded(ctx, base, unit, holders)
		if failed == nil {
			x.has.Put(at, v)
		}
		return failed
	}
	if err != nil {
		return err
	}
	replica := l.Replica(x.terms(), unit)
	stage, _ := x.stage(unit)
	if replica == nil {
		return fmt.Errorf("staged: the round has no unit %d", unit)
	}
	c := replica[stage].Commit
	if replica[stage].Status == work.Assigned {
		return nil
	}
	v, ok := x.has.Get(at)
	if ok && v.root == c.HandedState.Root {
		return nil
	}
	if v, err = x.fetch(ctx, replica, stage, holders); err != nil {
		if x.later(at, holders) {
			return err
		}
		lacks := err
		if v, err = right(ctx, x, base, unit, holders, c); err != nil {
			return errors.Join(err, lacks)
		}
	}
	v.root = c.HandedState.Root
	x.has.Put(at, v)
	return nil
}

// right are the values that a unit receives from right stages, if it has committed to them. That it has not is found
// once: all stages take long.
func right(ctx context.Context, x *Engine, base terms.Checkpoint, unit uint32, holders []string,
	c work.Commitment) (*values, error) {
	key := execution{base, c.HandedState.Root, unit, 0}
	hidden := fmt.Errorf("staged: the values that unit %d of round %d has received cannot be had, and are others than "+
		"right stages send", unit, base.Round)
	x.mu.Lock()
	known := x.wrong[key]
	x.mu.Unlock()
	if known {
		return nil, hidden
	}
	v, err := x.loaded(ctx, base, unit, holders)
	if err != nil {
		return nil, err
	}
	stage, _ := x.stage(unit)
	ok, err := v.agrees(x.plan, stage, x.Task().Spec.StepsOf(unit), c)
	if err != nil {
		return nil, errors.Join(err, hidden)
	}
	if !ok {
		x.mu.Lock()
		x.wrong[key] = true
		x.mu.Unlock()
		return nil, hidden
	}
	return v, nil
}

// loaded is whole of a checkpoint that is loaded first.
func (x *Engine) loaded(ctx context.Context, base terms.Checkpoint, unit uint32, holders []string) (*values, error) {
	if err := x.Load(ctx, base, holders); err != nil {
		return nil, err
	}
	return x.whole(ctx, base, unit)
}

// later reports whether values that could not be had are asked for again, before they are computed by all stages.
func (x *Engine) later(at place, holders []string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(holders) > 0 {
		x.tries[at]++
	}
	return x.tries[at] < maxTries
}

// fetch gets the values that a stage has received from those that keep them: itself, or those that sent them, which
// keep the same blobs. A record of either may name values that were not exchanged: the heads of the links decide.
func (x *Engine) fetch(ctx context.Context, replica work.Units, stage int, holders []string) (*values, error) {
	v, mine := newValues(), replica[stage]
	steps := x.Task().Spec.StepsOf(mine.Index)
	var lacks role.LacksLink
	for i, l := range link.OfStage(x.plan, stage) {
		if int(l.To) != stage {
			continue
		}
		if i >= len(mine.Commit.Links) {
			return nil, fmt.Errorf("staged: unit %d has committed to no link %d", mine.Index, i)
		}
		err := x.from(ctx, v, mine, i, l, steps, holders)
		if err == nil {
			err = v.under(x.plan, l, steps, mine.Commit.Links[i])
		}
		if err == nil {
			continue
		}
		sender := replica[l.From]
		at := slices.Index(link.OfStage(x.plan, int(l.From)), l)
		failed := x.from(ctx, v, sender, at, l, steps, holders)
		if failed == nil {
			failed = v.under(x.plan, l, steps, mine.Commit.Links[i])
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if failed != nil {
			lacks.Links, lacks.Err = append(lacks.Links, uint32(i)+1), errors.Join(lacks.Err, err, failed)
		}
	}
	if len(lacks.Links) > 0 {
		return nil, &lacks
	}
	return v, nil
}

// from gets the values of a link as the record of a unit names them.
func (x *Engine) from(ctx context.Context, v *values, u *work.Unit, at int, l terms.Link, steps uint32,
	holders []string) error {
	id, err := blob.Parse(u.Commit.HandedState.CID)
	if err != nil {
		return err
	}
	b, err := x.Peers.Fetch(ctx, id, holders)
	if err != nil {
		return err
	}
	r, err := decodeRecord(b)
	if err != nil {
		return err
	}
	if at >= len(r.Links) || len(r.Links[at]) != int(steps) {
		return fmt.Errorf("staged: the record of unit %d has not the values of %d steps", u.Index, steps)
	}
	for step, cid := range r.Links[at] {
		id, err := blob.FromBytes(cid)
		if err != nil {
			return err
		}
		if b, err = x.Peers.Fetch(ctx, id, holders); err != nil {
			return err
		}
		if err := v.read(x.plan, l, uint32(step), b); err != nil {
			return err
		}
	}
	return nil
}
