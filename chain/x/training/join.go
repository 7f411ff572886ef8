package training

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"cosmossdk.io/collections"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/training/runpb"
	"github.com/starling-network/starling/chain/x/training/trainingpb"
	"github.com/starling-network/starling/chain/x/training/turn"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/transition"
)

// Running lists the jobs whose runs are not over.
func (k *Keeper) Running(ctx context.Context) ([]string, error) {
	it, err := k.active.Iterate(ctx, nil)
	if err != nil {
		return nil, err
	}
	return it.Keys()
}

// Turn returns at most n active runs whose turn it is in a block, after the run stored in last.
func (k *Keeper) Turn(ctx context.Context, last collections.Item[string], n int) ([]string, error) {
	return adapter.Turn(ctx, k.active, last, n)
}

// Join adds members to a run that is under way, with their history.
func (k *Keeper) Join(ctx context.Context, job string, members []crew.Member) error {
	members, err := k.history(ctx, members)
	if err != nil {
		return err
	}
	return k.step(ctx, job,
		func(s run.State, env transition.Env) (run.State, []event.Event, error) { return s.Join(env, members) })
}

// Feed names the data of the current round of a run that its consumer leads, which the caller has checked.
func (k *Keeper) Feed(ctx context.Context, job string, round uint32, root canon.Digest, cid string) error {
	return k.step(ctx, job, func(s run.State, env transition.Env) (run.State, []event.Event, error) {
		return s.Feed(env, round, root, cid)
	})
}

// reseat records the accounts that became members of a run, and removes those that the run forgot, such as guests.
func (k *Keeper) reseat(ctx context.Context, before, after run.State) error {
	in := func(s run.State) func(crew.Member) bool {
		return func(m crew.Member) bool { _, known := s.Member(m.ID); return known }
	}
	came := slices.DeleteFunc(slices.Clone(after.Members), in(before))
	gone := slices.DeleteFunc(slices.Clone(before.Members), in(after))
	return errors.Join(k.seat(ctx, after.Terms.Job, came), unseat(ctx, k, after.Terms.Job, gone))
}

// seat records that accounts are members of a run. unseat removes these records.
func (k *Keeper) seat(ctx context.Context, job string, members []crew.Member) error {
	var err error
	for _, m := range members {
		err = errors.Join(err, k.parts.Set(ctx, collections.Join(m.ID, job)))
	}
	return err
}

func unseat(ctx context.Context, k *Keeper, job string, members []crew.Member) error {
	var err error
	for _, m := range members {
		err = errors.Join(err, k.parts.Remove(ctx, collections.Join(m.ID, job)))
	}
	return err
}

// Leave implements trainingpb.MsgServer.
func (k messages) Leave(ctx context.Context, m *trainingpb.MsgLeave) (*trainingpb.MsgLeaveResponse, error) {
	return &trainingpb.MsgLeaveResponse{},
		k.step(ctx, m.Job, func(s run.State, env transition.Env) (run.State, []event.Event, error) {
			if m.CannotOpen {
				return s.Decline(env, m.Sender)
			}
			return s.Leave(env, m.Sender)
		})
}

// Exits is a keeper that lets accounts leave their runs.
type Exits struct{ *Keeper }

// Withdraw lets an account leave its first 64 runs, as Leave does. Each has one price, so that an account with many
// runs does not prevent it. The last worker of a run stays, and is late.
func (k Exits) Withdraw(ctx context.Context, id string) error {
	now, free := sdk.UnwrapSDKContext(ctx), adapter.Unmetered(ctx)
	jobs, err := membership(free, k.Keeper, id)
	for _, job := range jobs[:min(len(jobs), 64)] {
		now.GasMeter().ConsumeGas(turn.Gas, "a run that an account leaves")
		err = errors.Join(err, k.step(free, job,
			func(s run.State, env transition.Env) (run.State, []event.Event, error) {
				if after, events, refused := s.Leave(env, id); refused == nil {
					return after, events, nil
				}
				return s, nil, nil
			}))
	}
	return err
}

// Return implements trainingpb.MsgServer.
func (k messages) Return(ctx context.Context, m *trainingpb.MsgReturn) (*trainingpb.MsgReturnResponse, error) {
	return &trainingpb.MsgReturnResponse{},
		k.step(ctx, m.Job, func(s run.State, env transition.Env) (run.State, []event.Event, error) {
			return s.Return(env, m.Sender)
		})
}

// Prove implements trainingpb.MsgServer.
func (k messages) Prove(ctx context.Context, m *trainingpb.MsgProve) (*trainingpb.MsgProveResponse, error) {
	seal, err := runpb.Digest(m.Seal)
	if err != nil {
		return nil, ErrorTable.Wrap(fmt.Errorf("seal: %w", err))
	}
	return &trainingpb.MsgProveResponse{},
		k.step(ctx, m.Job, func(s run.State, env transition.Env) (run.State, []event.Event, error) {
			return s.SubmitProbation(env, m.Sender, unitID(m), seal)
		})
}
