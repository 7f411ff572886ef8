package engine

import (
	"context"
	"encoding/binary"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/screen"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

// heldBatches is how many batches of held-out data a look at a round is drawn from.
const heldBatches = 64

// screened lists the places of the units of a round whose updates are odd, as far as the terms say to look. What it
// finds depends on the checkpoint and the updates alone, so that all members find the same.
func (e *Engine) screened(ctx context.Context, base *train.Checkpoint, round uint32, units work.Units,
	deltas [][]*tensor.Tensor) (odd []uint32, err error) {
	if e.terms.Screen == terms.ScreenOff {
		return nil, nil
	}
	limits := screen.Default
	if spec := e.task.Spec; spec.Sizes != nil {
		for _, u := range units {
			limits.Steps = append(limits.Steps, spec.StepsOf(u.Index))
		}
	}
	reports := screen.Updates(deltas, limits)
	if e.terms.Screen >= terms.ScreenLosses {
		losses, err := e.losses(ctx, base, round, units, deltas)
		if err != nil {
			return nil, err
		}
		for i, flags := range screen.Progress(losses, limits) {
			reports[i].Flags = append(reports[i].Flags, flags...)
		}
	}
	for i, r := range reports {
		if r.Odd() {
			odd = append(odd, uint32(i))
		}
	}
	return odd, nil
}

// losses measures what each update alone does to the loss on one batch of its unit and on one held-out batch, the same
// for all: three forward passes an update. Which batches they are is a digest of all updates, which nobody knew when it
// committed to its own.
func (e *Engine) losses(ctx context.Context, base *train.Checkpoint, round uint32, units work.Units,
	deltas [][]*tensor.Tensor) ([]screen.Losses, error) {
	e.computing.Own.Lock() // beside units of others: a round is not to wait for an audit
	defer e.computing.Own.Unlock()
	if e.meter == nil {
		var err error
		if e.meter, err = e.task.Evaluator(); err != nil {
			return nil, err
		}
	}
	defer e.meter.Release()
	var committed []canon.Digest
	for _, u := range units {
		committed = append(committed, u.Commit.Update)
	}
	drawn := canon.Hash("starling/screen-batch/1", committed)
	spec, corpus := e.task.Spec, e.task.Corpus
	held := corpus.ValBatches(int(spec.Batch), int(spec.Length), heldBatches)
	loss := func(params []*tensor.Tensor, tokens []int32) (float64, error) {
		l, err := e.meter.Loss(params, tokens)
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return float64(l), err
	}
	var batch []int32
	var before float64
	var err error
	if len(held) > 0 {
		batch = held[binary.BigEndian.Uint64(drawn[8:16])%uint64(len(held))]
		if before, err = loss(base.Params, batch); err != nil {
			return nil, err
		}
	}
	changes := make([]screen.Losses, len(units))
	assigned := make([]int32, int(spec.Batch)*(int(spec.Length)+1))
	for i, u := range units {
		after := make([]*tensor.Tensor, len(base.Params))
		for k, p := range base.Params {
			after[k] = train.Difference(p, deltas[i][k])
		}
		if err := corpus.Batch(assigned, spec.Address(round, u.Index,
			uint32(binary.BigEndian.Uint64(drawn[:8])%uint64(spec.StepsOf(u.Index)))), int(spec.Length)); err != nil {
			return nil, err
		}
		c := &changes[i]
		if c.Assigned[0], err = loss(base.Params, assigned); err != nil {
			return nil, err
		}
		if c.Assigned[1], err = loss(after, assigned); err != nil {
			return nil, err
		}
		if batch != nil {
			c.Held[0] = before
			if c.Held[1], err = loss(after, batch); err != nil {
				return nil, err
			}
		}
	}
	return changes, nil
}
