package registry

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/registry/registrypb"
	"github.com/starling-network/starling/chain/x/training/runpb"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run"
)

// AskMeasure implements registrypb.MsgServer.
func (k *Keeper) AskMeasure(ctx context.Context, m *registrypb.MsgAskMeasure) (*registrypb.MsgAskMeasureResponse, error) {
	if _, err := k.Get(ctx, m.Sender); err != nil {
		return nil, Refusals.Wrap(err)
	}
	switch goesOn, err := k.measurements.Has(ctx, m.Sender); {
	case err != nil:
		return nil, err
	case goesOn:
		return nil, Refusals.Wrap(fmt.Errorf("%w: %s", ErrMeasured, m.Sender))
	}
	asked, err := registry.Ask(m.Sender, m.Steps, sdk.UnwrapSDKContext(ctx).BlockHeight())
	if err != nil {
		return nil, Refusals.Wrap(err)
	}
	return &registrypb.MsgAskMeasureResponse{}, k.measurements.Set(ctx, m.Sender, asked)
}

// AnswerMeasure implements registrypb.MsgServer.
func (k *Keeper) AnswerMeasure(ctx context.Context, m *registrypb.MsgAnswerMeasure) (*registrypb.MsgAnswerMeasureResponse, error) {
	root, err := runpb.Digest(m.Root)
	if err != nil {
		return nil, Refusals.Wrap(err)
	}
	now := sdk.UnwrapSDKContext(ctx)
	return &registrypb.MsgAnswerMeasureResponse{}, k.move(ctx, m.Sender, func(at registry.Measurement) (registry.Measurement, error) {
		return at.Answer(root, now.BlockHeight(), now.BlockTime().UnixMilli())
	})
}

// CheckMeasure implements registrypb.MsgServer.
func (k *Keeper) CheckMeasure(ctx context.Context, m *registrypb.MsgCheckMeasure) (*registrypb.MsgCheckMeasureResponse, error) {
	result, err := runpb.Digest(m.Result)
	if err != nil {
		return nil, Refusals.Wrap(err)
	}
	return &registrypb.MsgCheckMeasureResponse{}, k.move(ctx, m.Participant, func(at registry.Measurement) (registry.Measurement, error) {
		return at.Check(m.Sender, result, sdk.UnwrapSDKContext(ctx).BlockHeight())
	})
}

// OpenMeasure implements registrypb.MsgServer.
func (k *Keeper) OpenMeasure(ctx context.Context, m *registrypb.MsgOpenMeasure) (*registrypb.MsgOpenMeasureResponse, error) {
	results, err := runpb.Digests(m.Results)
	if err != nil {
		return nil, Refusals.Wrap(err)
	}
	at, err := k.measurement(ctx, m.Sender)
	if err != nil {
		return nil, Refusals.Wrap(err)
	}
	out, err := at.Open(results)
	if err != nil {
		return nil, Refusals.Wrap(err)
	}
	return &registrypb.MsgOpenMeasureResponse{}, k.end(ctx, m.Sender, out)
}

func (k *Keeper) measurement(ctx context.Context, id string) (registry.Measurement, error) {
	at, err := k.measurements.Get(ctx, id)
	if errors.Is(err, collections.ErrNotFound) {
		return at, fmt.Errorf("%w: %s is not being measured", registry.ErrMeasure, id)
	}
	return at, err
}

func (k *Keeper) move(ctx context.Context, id string, f func(registry.Measurement) (registry.Measurement, error)) error {
	at, err := k.measurement(ctx, id)
	if err == nil {
		at, err = f(at)
	}
	if err != nil {
		return Refusals.Wrap(err)
	}
	return k.measurements.Set(ctx, id, at)
}

// end ends a measurement: the participant has its rate, or keeps the one that it had.
func (k *Keeper) end(ctx context.Context, id string, out registry.Outcome) error {
	now := sdk.UnwrapSDKContext(ctx)
	if out.Rate > 0 {
		p, err := k.Get(ctx, id)
		if err != nil {
			return err
		}
		if err := k.participants.Set(ctx, id, p.Rated(out.Rate, now.BlockHeight())); err != nil {
			return err
		}
	}
	err := k.measurements.Remove(ctx, id)
	return errors.Join(err, now.EventManager().EmitTypedEvent(&registrypb.EventMeasured{Participant: id, Rate: out.Rate, Why: out.Why}))
}

// measure moves the measurements on.
func (k *Keeper) measure(ctx context.Context) error {
	it, err := k.measurements.Iterate(ctx, nil)
	if err != nil {
		return err
	}
	all, err := it.Values()
	if err != nil || len(all) == 0 {
		return err
	}
	now := sdk.UnwrapSDKContext(ctx)
	beacon, err := k.beacon.At(ctx, now.BlockHeight())
	if err != nil {
		return err
	}
	params, err := k.Params(ctx)
	if err != nil {
		return err
	}
	checkers, err := k.checkers(ctx, params)
	if err != nil {
		return err
	}
	for _, at := range all {
		err := adapter.Isolate(ctx, func(ctx context.Context) error { return k.tick(ctx, at, params, checkers, beacon) })
		if err != nil {
			now.Logger().Error("registry: the measurement stays as it was", "participant", at.ID, "error", err)
		}
	}
	return nil
}

func (k *Keeper) tick(ctx context.Context, at registry.Measurement, params registry.Params, checkers []string, beacon canon.Digest) error {
	now := sdk.UnwrapSDKContext(ctx)
	after, silent, end := at.Tick(params, checkers, beacon, now.BlockHeight(), now.BlockTime().UnixMilli())
	if silent != "" {
		if err := k.Missed(ctx, silent); err != nil {
			return err
		}
	}
	if end != nil {
		return k.end(ctx, at.ID, *end)
	}
	return k.measurements.Set(ctx, at.ID, after)
}

// checkers are the verifiers who may be drawn to check a measurement, in order of address.
func (k *Keeper) checkers(ctx context.Context, params registry.Params) (ids []string, err error) {
	err = k.participants.Walk(ctx, nil, func(id string, p registry.Participant) (bool, error) {
		if p.Eligible(run.Verifier, params) {
			ids = append(ids, id)
		}
		return false, nil
	})
	return ids, err
}
