package market

import (
	"context"
	"fmt"

	"cosmossdk.io/collections"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/run"
)

// fill gives the free places of the runs that go on to who is back and to the open offers, the name of the job giving the
// order.
func (k *Keeper) fill(ctx context.Context, beacon canon.Digest) error {
	jobs, err := k.runs.Running(ctx)
	if err != nil {
		return err
	}
	for _, id := range jobs {
		err := adapter.Isolate(ctx, func(ctx context.Context) error { return k.admit(ctx, id, beacon) })
		if err != nil {
			sdk.UnwrapSDKContext(ctx).Logger().Error("market: nobody joins the run", "job", id, "error", err)
		}
	}
	return nil
}

// admit takes members into one run.
func (k *Keeper) admit(ctx context.Context, id string, beacon canon.Digest) error {
	job, err := k.Job(ctx, id)
	if err != nil {
		return err
	}
	s, err := k.runs.State(ctx, id)
	if err != nil || s.Present(run.Worker) >= job.Order.Workers.Max && s.Present(run.Verifier) >= job.Order.Verifiers {
		return err
	}
	var back []run.Member
	for _, m := range s.Members {
		if m.Why != run.WhyReturning {
			continue
		}
		ok, err := k.registry.Eligible(ctx, m.ID, m.Role)
		if err != nil {
			return err
		}
		if ok {
			back = append(back, m)
		}
	}
	offers, err := k.available(ctx)
	if err != nil {
		return err
	}
	escrow, err := k.Escrow(ctx, id)
	if err != nil {
		return err
	}
	members := market.Join(job.Order, s, back, offers, escrow.Remaining(), beacon)
	if len(members) == 0 {
		return nil
	}
	for _, m := range members {
		if err := k.busy.Set(ctx, collections.Join3(uint32(m.Role), m.ID, id)); err != nil {
			return err
		}
	}
	if err := k.runs.Join(ctx, id, members); err != nil {
		return fmt.Errorf("market: %d members: %w", len(members), err)
	}
	return nil
}

// Free gives a member of a run its slot back.
func (k *Keeper) Free(ctx context.Context, id string, m run.Member) error {
	return k.busy.Remove(ctx, collections.Join3(uint32(m.Role), m.ID, id))
}
