package party

import (
	"context"
	"errors"
	"slices"

	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role"
)

// lacksLink reports the first link whose values a stage has received and no member serves, if that is why it could not
// be executed. It returns why. A verifier asks for them again: a member that has them may be back before its deadline.
func lacksLink(ctx context.Context, p *Executor, id work.UnitID, failed error) error {
	if lacks, ok := errors.AsType[*role.LacksLink](failed); ok && ctx.Err() == nil {
		return errors.Join(failed, reportLink(ctx, p, role.Missing{Work: id, Slice: lacks.Links[0]}))
	}
	return failed
}

// reportLink sends a report, which the chain refuses if it has it. Earlier reports of this party do not count: a
// verifier that names another link voids the reports of all.
func reportLink(ctx context.Context, p *Executor, m role.Missing) error {
	err := p.Chain.Send(ctx, m)
	for _, settled := range []error{refusal.ErrDuplicate, refusal.ErrStale, refusal.ErrWrongPhase, refusal.ErrNotYours,
		refusal.ErrBadSlice} {
		if errors.Is(err, settled) {
			return nil // it says nothing new, or is not asked
		}
	}
	return err
}

// probeLink fetches what a stage under audit has received, which its verifier misses, and reports it if it cannot be
// had. It says nothing of another link.
func probeLink(ctx context.Context, p *Executor, a role.Probe) error {
	err := p.begin(ctx, a.Base, a.Unit.Index, false)
	if lacks, ok := errors.AsType[*role.LacksLink](err); ok && ctx.Err() == nil &&
		slices.Contains(lacks.Links, a.Unit.Lost) {
		return errors.Join(err, reportLink(ctx, p, role.Missing{Work: a.Work, Slice: a.Unit.Lost}))
	}
	return err
}
