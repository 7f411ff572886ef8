// Package screener looks at the updates of a round, and finds those that are odd. It decides nothing about them.
package screener

import (
	"context"
	"encoding/binary"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/meter"
	"github.com/starling-network/starling/exchange/screen"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role/hold"
)

// heldBatches is how many batches of held-out data a look at a round is drawn from.
const heldBatches = 64

// Screener looks at the updates of a round, as far as the terms say.
type Screener struct {
	Screen terms.Screen
	Task   *train.Task
	Turn   *hold.Turn
	meter  *meter.Evaluator // made with the first loss
}

// Odd lists the indices of the units of a round whose updates are odd, in the rounds that the terms screen. The list
// depends on the checkpoint and the updates alone, so that all members find the same.
func (x *Screener) Odd(ctx context.Context, base *train.Checkpoint, round uint32, units work.Units,
	deltas [][]*tensor.Tensor) (odd []uint32, err error) {
	if x.Screen == terms.ScreenOff {
		return nil, nil
	}
	limits := screen.Default
	if spec := x.Task.Spec; spec.Sizes != nil {
		for _, u := range units {
			limits.Steps = append(limits.Steps, spec.StepsOf(u.Index))
		}
	}
	reports := screen.Updates(deltas, limits)
	if x.Screen >= terms.ScreenLosses {
		losses, err := x.losses(ctx, base, round, units, deltas)
		if err != nil {
			return nil, err
		}
		for i, flags := range screen.Progress(losses, limits) {
			reports[i].Flags = append(reports[i].Flags, flags...)
		}
	}
	for i, r := range reports {
		if r.Outlier() {
			odd = append(odd, uint32(i))
		}
	}
	return odd, nil
}

// losses measures what each update alone does to the loss on one batch of its unit and on one held-out batch, the same
// for all: three forward passes an update. The batches are drawn from a digest of all updates, which no worker knew
// when it committed to its own.
func (x *Screener) losses(ctx context.Context, base *train.Checkpoint, round uint32, units work.Units,
	deltas [][]*tensor.Tensor) ([]screen.Losses, error) {
	x.Turn.Own.Lock() // in parallel with units of others: a round must not wait for an audit
	defer x.Turn.Own.Unlock()
	if x.meter == nil {
		var err error
		if x.meter, err = meter.New(x.Task); err != nil {
			return nil, err
		}
	}
	defer x.meter.Release()
	var committed []canon.Digest
	for _, u := range units {
		committed = append(committed, u.Commit.Update)
	}
	drawn := canon.Hash("starling/screen-batch/1", committed)
	spec, corpus := x.Task.Spec, x.Task.Corpus
	batch, err := corpus.HeldOut(binary.BigEndian.Uint64(drawn[8:16]), int(spec.Batch), int(spec.Length), heldBatches)
	if err != nil {
		return nil, err
	}
	loss := func(params []*tensor.Tensor, tokens []int32) (float64, error) {
		l, err := x.meter.Loss(params, tokens)
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return float64(l), err
	}
	var before float64
	if batch != nil {
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
