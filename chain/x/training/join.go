package training

import (
	"context"
	"fmt"

	"github.com/starling-network/starling/chain/x/training/runpb"
	"github.com/starling-network/starling/chain/x/training/trainingpb"
	"github.com/starling-network/starling/protocol/run"
)

// Running lists the jobs whose runs are not over.
func (k *Keeper) Running(ctx context.Context) ([]string, error) {
	it, err := k.active.Iterate(ctx, nil)
	if err != nil {
		return nil, err
	}
	return it.Keys()
}

// Join takes in members while the run of a job goes on, with their history.
func (k *Keeper) Join(ctx context.Context, job string, members []run.Member) error {
	members, err := k.history(ctx, members)
	if err != nil {
		return err
	}
	return k.step(ctx, job, func(s run.State, env run.Env) (run.State, []run.Event, error) { return s.Join(env, members) })
}

// Leave implements trainingpb.MsgServer.
func (k *Keeper) Leave(ctx context.Context, m *trainingpb.MsgLeave) (*trainingpb.MsgLeaveResponse, error) {
	return &trainingpb.MsgLeaveResponse{}, k.step(ctx, m.Job, func(s run.State, env run.Env) (run.State, []run.Event, error) {
		return s.Leave(env, m.Sender)
	})
}

// Return implements trainingpb.MsgServer.
func (k *Keeper) Return(ctx context.Context, m *trainingpb.MsgReturn) (*trainingpb.MsgReturnResponse, error) {
	return &trainingpb.MsgReturnResponse{}, k.step(ctx, m.Job, func(s run.State, env run.Env) (run.State, []run.Event, error) {
		return s.Return(env, m.Sender)
	})
}

// Prove implements trainingpb.MsgServer.
func (k *Keeper) Prove(ctx context.Context, m *trainingpb.MsgProve) (*trainingpb.MsgProveResponse, error) {
	seal, err := runpb.Digest(m.Seal)
	if err != nil {
		return nil, Refusals.Wrap(fmt.Errorf("seal: %w", err))
	}
	return &trainingpb.MsgProveResponse{}, k.step(ctx, m.Job, func(s run.State, env run.Env) (run.State, []run.Event, error) {
		return s.Prove(env, m.Sender, m.Round, m.Unit, m.Attempt, seal)
	})
}
