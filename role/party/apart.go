package party

import (
	"context"
	"errors"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/checkpoint"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/engine"
)

// Drawing is how a party gets the answers that units learn from, in a job whose answers are drawn apart; an
// engine.Engine, too.
type Drawing interface {
	Lacks(base terms.Checkpoint, unit uint32) ([]engine.Answers, error)
	Take(ctx context.Context, a work.HandedState, get checkpoint.Getter) error
}

// answers brings the answers that a unit learns from to memory, as far as others serve them. With waits, the workers
// that have committed to them may still be about to publish them.
func answers(ctx context.Context, p *Executor, base terms.Checkpoint, unit uint32, waits bool) error {
	lacking, err := p.Lineage.Lacks(base, unit)
	if err != nil {
		return err
	}
	failed := make([]error, len(lacking))
	p.Blobs.Each(len(lacking), func(i int) { failed[i] = take(ctx, p, lacking[i], waits) })
	return errors.Join(failed...)
}

// take fetches answers: from the worker that has committed to them, or else from any other. Those that cannot be had
// are no error: a unit that learns from them draws them again. They are reported, and the others look for themselves.
func take(ctx context.Context, p *Executor, a engine.Answers, waits bool) error {
	if a.Worker == p.ID {
		return nil
	}
	from, err := p.Chain.Addresses(ctx, a.Worker)
	if err != nil {
		return err
	}
	others, err := p.Chain.Holders(ctx)
	if err != nil {
		return err
	}
	fetch := p.Blobs.Fetch
	if waits && !a.Withheld {
		fetch = p.Blobs.Await
	}
	err = p.Lineage.Take(ctx, a.State, func(ctx context.Context, c blob.CID) ([]byte, error) {
		b, err := fetch(ctx, c, from)
		if err == nil || ctx.Err() != nil {
			return b, err
		}
		return p.Blobs.Fetch(ctx, c, others)
	})
	if err != nil && ctx.Err() == nil && !a.Withheld {
		_ = p.Chain.Send(ctx, role.Missing{Work: a.Work}) // the unit does not depend on the report
	}
	return ctx.Err()
}

// probeAnswers asks the worker that has committed to answers for them, which another member misses, and reports them if
// they cannot be had. It waits, as the worker may be about to publish them. Copies that others serve count, too.
func probeAnswers(ctx context.Context, p *Executor, a role.Probe) error {
	from, err := p.Chain.Addresses(ctx, a.Unit.Worker)
	if err != nil {
		return err
	}
	err = p.Lineage.Take(ctx, a.Unit.Commit.HandedState, func(ctx context.Context, c blob.CID) ([]byte, error) {
		return p.Blobs.Await(ctx, c, from)
	})
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	err = p.Chain.Send(ctx, role.Missing{Work: a.Work})
	for _, settled := range []error{refusal.ErrDuplicate, refusal.ErrStale, refusal.ErrWrongPhase} {
		if errors.Is(err, settled) {
			return nil // it says nothing new
		}
	}
	return err
}
