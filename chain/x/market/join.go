package market

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/reason"
)

// fill gives the free seats of running jobs to members that return and to open offers, in the order of market.Queue.
func (k *Keeper) fill(ctx context.Context, book *lazyBook) error {
	jobs, err := k.runs.Turn(ctx, k.filled, maxFilled)
	if err != nil {
		return err
	}
	if jobs, err = k.queue(ctx, jobs, book.beacon); err != nil {
		return err
	}
	for _, id := range jobs {
		err := adapter.Isolate(ctx, func(ctx context.Context) error { return k.admit(ctx, id, book) })
		if err != nil {
			sdk.UnwrapSDKContext(ctx).Logger().Error("market: no participant joins the run", "job", id, "error", err)
		}
	}
	return nil
}

// admit adds members to one run.
func (k *Keeper) admit(ctx context.Context, id string, book *lazyBook) error {
	job, err := k.Job(ctx, id)
	if err != nil || job.State() != Running {
		return err
	}
	s, err := k.runs.State(ctx, id)
	if err != nil || s.Present(crew.Worker) >= job.Order.Workers.Max && s.Present(crew.Verifier) >= job.Order.Verifiers &&
		!job.Order.EarnerMayJoin(s) {
		return err
	}
	params, err := k.registry.Params(ctx)
	if err != nil {
		return err
	}
	var back []crew.Member
	for _, m := range s.Members {
		if m.Why != reason.Returning {
			continue
		}
		p, err := k.registry.Get(ctx, m.ID)
		if err != nil {
			return err
		}
		covered, err := covers(ctx, k, job.Order, m.Class(), m.ID, m.Price)
		if err != nil {
			return err
		}
		if covered && p.Eligible(m.Role, params) {
			back = append(back, m)
		}
	}
	b, err := book.open(ctx)
	if err != nil {
		return err
	}
	escrow, err := k.Escrow(ctx, id)
	if err != nil {
		return err
	}
	members := b.Join(job.Order, s, back, escrow.Remaining())
	if len(members) == 0 {
		return nil
	}
	if err := k.engage(ctx, job.Order, members); err != nil {
		return err
	}
	if err := k.runs.Join(ctx, id, members); err != nil {
		return fmt.Errorf("market: %d members: %w", len(members), err)
	}
	b.Take(job.Order, members)
	return nil
}

// Free frees the slot of a member of a run.
func (k *Keeper) Free(ctx context.Context, id string, m crew.Member) error {
	return errors.Join(k.busy.Remove(ctx, collections.Join3(uint32(m.Class()), m.ID, id)),
		k.leased.Remove(ctx, collections.Join(m.ID, id)))
}
