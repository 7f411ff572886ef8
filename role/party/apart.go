package party

import (
	"context"
	"errors"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/checkpoint"
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
// are reported, and are no error: a unit that learns from them draws them again.
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
	return takeBy(ctx, p, a, func(ctx context.Context, c blob.CID) ([]byte, error) {
		b, err := fetch(ctx, c, from)
		if err == nil || ctx.Err() != nil {
			return b, err
		}
		return p.Blobs.Fetch(ctx, c, others)
	})
}

// takeBy fetches answers, and reports those that cannot be had.
func takeBy(ctx context.Context, p *Executor, a engine.Answers, get checkpoint.Getter) error {
	if err := p.Lineage.Take(ctx, a.State, get); err == nil || ctx.Err() != nil || a.Withheld {
		return ctx.Err()
	}
	// It is refused where it says nothing new; the unit does not depend on it.
	_ = p.Chain.Send(ctx, role.Missing{Work: a.Work})
	return ctx.Err()
}

// probeAnswers fetches answers that another member misses from the worker that has committed to them, and from no
// other, which may have drawn them again.
func probeAnswers(ctx context.Context, p *Executor, a role.Probe) error {
	from, err := p.Chain.Addresses(ctx, a.Unit.Worker)
	if err != nil {
		return err
	}
	return takeBy(ctx, p, engine.Answers{Work: a.Work, Worker: a.Unit.Worker, State: a.Unit.Commit.HandedState},
		func(ctx context.Context, c blob.CID) ([]byte, error) { return p.Blobs.Fetch(ctx, c, from) })
}
