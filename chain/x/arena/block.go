package arena

import (
	"context"

	"cosmossdk.io/collections"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/protocol/arena"
	"github.com/starling-network/starling/protocol/run/crew"
)

// EndBlock ends the phases of committees and of contests whose last block is past.
func (k *Keeper) EndBlock(ctx context.Context) error {
	if err := k.proceed(ctx, k.waiting, "committee", k.convene, k.delay); err != nil {
		return err
	}
	return k.proceed(ctx, k.until, "contest", k.turn, k.postpone)
}

// proceed ends the phases of a queue whose last block is past. name says what is in the queue.
func (k *Keeper) proceed(ctx context.Context, queue collections.KeySet[untilKey], name string,
	end func(ctx context.Context, id uint64, beacon canon.Digest) error,
	later func(ctx context.Context, id uint64) error) error {
	var due []untilKey
	past := new(collections.Range[untilKey]).EndExclusive(collections.PairPrefix[int64, uint64](height(ctx)))
	if err := queue.Walk(ctx, past, func(key untilKey) (bool, error) {
		due = append(due, key)
		return len(due) == turned, nil
	}); err != nil {
		return err
	}
	if len(due) == 0 {
		return nil
	}
	beacon, err := k.beacon.At(ctx, height(ctx))
	if err != nil || beacon.IsZero() { // a block without a beacon draws nothing
		return err
	}
	for _, key := range due {
		err := adapter.Isolate(ctx, func(ctx context.Context) error { return end(ctx, key.K2(), beacon) })
		if err == nil {
			continue
		}
		// none stops the blocks, is tried again in each, or keeps its coins for ever
		sdk.UnwrapSDKContext(ctx).Logger().Error("arena: a "+name+" cannot proceed", name, key.K2(), "error", err)
		if err := adapter.Isolate(ctx, func(ctx context.Context) error { return later(ctx, key.K2()) }); err != nil {
			if err := queue.Remove(ctx, key); err != nil {
				return err
			}
		}
	}
	return nil
}

// postpone lets the phase of a contest last longer.
func (k *Keeper) postpone(ctx context.Context, id uint64) error {
	old, err := k.contest(ctx, id)
	if err != nil {
		return err
	}
	c := old
	c.Until = height(ctx) + again
	return k.save(ctx, old, c)
}

// turn ends the phase of a contest.
func (k *Keeper) turn(ctx context.Context, id uint64, beacon canon.Digest) error {
	old, err := k.contest(ctx, id)
	if err != nil {
		return err
	}
	w := arena.World{Height: height(ctx), Beacon: beacon,
		Candidates: func() ([]arena.Candidate, error) { return k.candidates(ctx) }}
	if w.Entries, err = k.entered(ctx, id); err != nil {
		return err
	}
	if w.Opinions, err = k.heard(ctx, old); err != nil {
		return err
	}
	c, freed, err := old.Turn(w)
	if err != nil {
		return err
	}
	for _, f := range freed {
		if err := k.free(ctx, f); err != nil {
			return err
		}
	}
	if c.Draws > old.Draws {
		for _, who := range c.Panel {
			e, err := k.evaluators.Get(ctx, who)
			if err != nil {
				return err
			}
			e.Panels++
			if err := k.evaluators.Set(ctx, who, e); err != nil {
				return err
			}
		}
	}
	if c.Committee > 0 && !c.Open() {
		if c, err = k.settle(ctx, c, w); err != nil {
			return err
		}
	}
	if err := k.save(ctx, old, c); err != nil {
		return err
	}
	return k.pay(ctx, c.Terms.Denom, c.Payments) // those of a contest that is over
}

// candidates are the evaluators that are ready and have the stake of a verifier.
func (k *Keeper) candidates(ctx context.Context) (list []arena.Candidate, err error) {
	params, err := k.registry.Params(ctx)
	if err != nil {
		return nil, err
	}
	err = k.evaluators.Walk(ctx, nil, func(who string, e arena.Evaluator) (bool, error) {
		if !e.Free() {
			return false, nil
		}
		p, err := k.registry.Get(ctx, who)
		if err == nil && p.Eligible(crew.Verifier, params) {
			list = append(list, arena.Candidate{Account: who, Stake: p.Firm()})
		}
		return false, nil
	})
	return list, err
}

// free takes an evaluator out of a panel, and a part of the bond of a silent one.
func (k *Keeper) free(ctx context.Context, f arena.Freed) error {
	e, err := k.evaluators.Get(ctx, f.Account)
	if err != nil {
		return err
	}
	e, lost := e.Release(f.Silent)
	if err := k.evaluators.Set(ctx, f.Account, e); err != nil {
		return err
	}
	return k.custody.Pay(ctx, "", "", lost)
}
