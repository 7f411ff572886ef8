package party

import (
	"context"
	"errors"

	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/bundle"
)

// lacks reports that the data of a round that the consumer leads cannot be had, if that is why a unit failed.
func lacks(ctx context.Context, p *Executor, id work.UnitID, failed error) error {
	if !errors.Is(failed, bundle.ErrNoData) || ctx.Err() != nil {
		return failed
	}
	err := p.Chain.Send(ctx, role.LacksData{Work: id})
	for _, settled := range []error{refusal.ErrDuplicate, refusal.ErrStale, refusal.ErrWrongPhase, refusal.ErrNotYours} {
		if errors.Is(err, settled) {
			return failed // it says nothing new
		}
	}
	return errors.Join(failed, err)
}

// possess makes sure that a member which attests a round that the consumer leads has its data: any verifier of the
// round can have them from most members then.
func possess(ctx context.Context, p *Executor, a role.Advance) error {
	if !a.Data || len(a.Units) == 0 {
		return nil
	}
	if err := p.begin(ctx, a.Base, a.Units[0].Index, false); err != nil {
		return lacks(ctx, p, a.Work(0), err)
	}
	return nil
}

// probeData fetches the data of a round that another member cannot have, and reports them if this one cannot either.
func probeData(ctx context.Context, p *Executor, a role.Probe) error {
	err := p.begin(ctx, a.Base, a.Unit.Index, false)
	if errors.Is(err, bundle.ErrNoData) && ctx.Err() == nil {
		_ = lacks(ctx, p, a.Work, err)
		return nil
	}
	return err
}
