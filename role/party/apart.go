package party

import (
	"context"
	"errors"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/checkpoint"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role/engine"
)

// Drawing is how a party gets the answers that units learn from, in a job whose answers are drawn apart; an
// engine.Engine, too.
type Drawing interface {
	Lacks(base terms.Checkpoint, unit uint32) ([]engine.Answers, error)
	Take(ctx context.Context, a work.HandedState, get checkpoint.Getter) error
}

// answers brings the answers that a unit learns from to memory, as far as others serve them: first the worker that has
// committed to them, which may still be about to publish them.
func answers(ctx context.Context, p *Executor, base terms.Checkpoint, unit uint32) error {
	lacking, err := p.Lineage.Lacks(base, unit)
	if err != nil {
		return err
	}
	failed := make([]error, len(lacking))
	p.Blobs.Each(len(lacking), func(i int) { failed[i] = take(ctx, p, lacking[i]) })
	return errors.Join(failed...)
}

// take fetches answers. Those that cannot be had are no error: a unit that learns from them draws them again.
func take(ctx context.Context, p *Executor, a engine.Answers) error {
	if a.Worker == p.ID {
		return nil
	}
	holders, err := p.Chain.Addresses(ctx, a.Worker)
	if err != nil {
		return err
	}
	err = p.Lineage.Take(ctx, a.State, func(ctx context.Context, c blob.CID) ([]byte, error) {
		return await(ctx, p, c, holders)
	})
	if ctx.Err() != nil {
		return err
	}
	return nil
}
