package party

import (
	"context"
	"errors"

	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role"
)

// lacksLink reports, once, that the values which a stage has received cannot be had, if that is why it could not be
// executed. It returns why. A verifier asks for them again: a member that has them may be back before its deadline.
func lacksLink(ctx context.Context, p *Executor, id work.UnitID, failed error) error {
	lacks, ok := errors.AsType[*role.LacksLink](failed)
	if !ok || ctx.Err() != nil {
		return failed
	}
	p.mu.Lock()
	said := p.said[id] == lacks.Link
	p.mu.Unlock()
	if said {
		return failed
	}
	err := p.Chain.Send(ctx, role.Missing{Work: id, Slice: lacks.Link})
	for _, settled := range []error{refusal.ErrDuplicate, refusal.ErrStale, refusal.ErrWrongPhase, refusal.ErrNotYours,
		refusal.ErrBadSlice} {
		if errors.Is(err, settled) {
			err = nil // it says nothing new, or is not asked
		}
	}
	if err != nil {
		return errors.Join(failed, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.said == nil {
		p.said = map[work.UnitID]uint32{}
	}
	for k := range p.said {
		if k.Round+maxOpen < id.Round {
			delete(p.said, k)
		}
	}
	p.said[id] = lacks.Link
	return failed
}

// maxOpen is how many rounds reports are remembered for: more than are open.
const maxOpen = 64

// probeLink fetches what a stage under audit has received, which its verifier misses, and reports it if it cannot be
// had. It says nothing of another link.
func probeLink(ctx context.Context, p *Executor, a role.Probe) error {
	err := p.begin(ctx, a.Base, a.Unit.Index, false)
	if lacks, ok := errors.AsType[*role.LacksLink](err); ok && lacks.Link == a.Unit.Lost {
		return lacksLink(ctx, p, a.Work, err)
	}
	return err
}
