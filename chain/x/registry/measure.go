package registry

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"cosmossdk.io/collections"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/registry/registrypb"
	"github.com/starling-network/starling/chain/x/training/runpb"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run/crew"
)

// measureGas is the gas of a measurement in addition to that of the message, for the blocks that advance it.
const measureGas = 100_000

// AskMeasure implements registrypb.MsgServer.
func (k messages) AskMeasure(ctx context.Context,
	m *registrypb.MsgAskMeasure) (*registrypb.MsgAskMeasureResponse, error) {
	now := sdk.UnwrapSDKContext(ctx)
	now.GasMeter().ConsumeGas(measureGas, "measurement")
	params, err := k.Params(ctx)
	if err != nil {
		return nil, err
	}
	p, err := k.Get(ctx, m.Sender)
	if err == nil && !p.Eligible(crew.Worker, params) {
		err = fmt.Errorf("%w: %s is measured for its work, and is no worker with the stake of one", registry.ErrStake,
			m.Sender)
	}
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	if r, err := k.resting.Get(ctx, m.Sender); err == nil && r.Until > now.BlockHeight() {
		return nil, ErrorTable.Wrap(fmt.Errorf("%w: %s was measured, and may be again from block %d on", ErrRests, m.Sender,
			r.Until))
	} else if err != nil && !errors.Is(err, collections.ErrNotFound) {
		return nil, err
	}
	switch goesOn, err := k.measurements.Has(ctx, m.Sender); {
	case err != nil:
		return nil, err
	case goesOn:
		return nil, ErrorTable.Wrap(fmt.Errorf("%w: %s", ErrMeasured, m.Sender))
	}
	asked, err := registry.Ask(m.Sender, m.Steps, now.BlockHeight())
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	return &registrypb.MsgAskMeasureResponse{}, k.measurements.Set(ctx, m.Sender, asked)
}

// AnswerMeasure implements registrypb.MsgServer.
func (k messages) AnswerMeasure(ctx context.Context,
	m *registrypb.MsgAnswerMeasure) (*registrypb.MsgAnswerMeasureResponse, error) {
	root, err := runpb.Digest(m.Root)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	now := sdk.UnwrapSDKContext(ctx)
	return &registrypb.MsgAnswerMeasureResponse{},
		k.move(ctx, m.Sender, func(at registry.Measurement) (registry.Measurement, error) {
			return at.Answer(root, now.BlockHeight(), now.BlockTime().UnixMilli())
		})
}

// CheckMeasure implements registrypb.MsgServer.
func (k messages) CheckMeasure(ctx context.Context,
	m *registrypb.MsgCheckMeasure) (*registrypb.MsgCheckMeasureResponse, error) {
	result, err := runpb.Digest(m.Result)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	return &registrypb.MsgCheckMeasureResponse{},
		k.move(ctx, m.Participant, func(at registry.Measurement) (registry.Measurement, error) {
			return at.Check(m.Sender, result, sdk.UnwrapSDKContext(ctx).BlockHeight())
		})
}

// OpenMeasure implements registrypb.MsgServer.
func (k messages) OpenMeasure(ctx context.Context,
	m *registrypb.MsgOpenMeasure) (*registrypb.MsgOpenMeasureResponse, error) {
	results, err := runpb.Digests(m.Results)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	at, err := k.measurement(ctx, m.Sender)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	out, err := at.Open(results)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	return &registrypb.MsgOpenMeasureResponse{}, measuring(k).end(ctx, m.Sender, out)
}

func (k messages) measurement(ctx context.Context, id string) (registry.Measurement, error) {
	at, err := k.measurements.Get(ctx, id)
	if errors.Is(err, collections.ErrNotFound) {
		return at, fmt.Errorf("%w: %s is not being measured", registry.ErrMeasure, id)
	}
	return at, err
}

func (k messages) move(ctx context.Context, id string,
	f func(registry.Measurement) (registry.Measurement, error)) error {
	at, err := k.measurement(ctx, id)
	if err == nil {
		at, err = f(at)
	}
	if err != nil {
		return ErrorTable.Wrap(err)
	}
	return k.measurements.Set(ctx, id, at)
}

// measuring advances the measurements of a keeper.
type measuring struct{ *Keeper }

// end ends a measurement: the participant gets the measured rate, or keeps its old one.
func (k measuring) end(ctx context.Context, id string, out registry.Outcome) error {
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
	err := errors.Join(k.measurements.Remove(ctx, id), k.rests(ctx, id, out))
	return errors.Join(err, now.EventManager().EmitTypedEvent(&registrypb.EventMeasured{Participant: id, Rate: out.Rate,
		Why: out.Why}))
}

// maxMeasured is how many measurements a block advances. If there are more, they take turns.
const maxMeasured = 64

// measure advances the measurements whose turn it is.
func (k measuring) measure(ctx context.Context) error {
	all, err := k.turn(ctx)
	if err != nil || len(all) == 0 {
		return err
	}
	now := sdk.UnwrapSDKContext(ctx)
	beacon, err := k.beacon.At(ctx, now.BlockHeight())
	if err != nil || beacon.IsZero() { // a block without a beacon draws nothing
		return err
	}
	params, err := k.Params(ctx)
	if err != nil {
		return err
	}
	for _, at := range all {
		err := adapter.Isolate(ctx, func(ctx context.Context) error { return k.tick(ctx, at, params, beacon) })
		if err != nil {
			now.Logger().Error("registry: the measurement stays as it was", "participant", at.ID, "error", err)
		}
	}
	return nil
}

// turn lists the measurements after the last one of the block before, continuing from the beginning after the end.
func (k measuring) turn(ctx context.Context) (all []registry.Measurement, err error) {
	last, err := k.measured.Get(ctx)
	if err != nil && !errors.Is(err, collections.ErrNotFound) {
		return nil, err
	}
	take := func(id string, m registry.Measurement) (bool, error) {
		all = append(all, m)
		return len(all) == maxMeasured, nil
	}
	if err := k.measurements.Walk(ctx, new(collections.Range[string]).StartExclusive(last), take); err != nil {
		return nil, err
	}
	if len(all) < maxMeasured && last != "" {
		if err := k.measurements.Walk(ctx, new(collections.Range[string]).EndInclusive(last), take); err != nil {
			return nil, err
		}
	}
	if len(all) < maxMeasured { // there are no more
		if last == "" {
			return all, nil
		}
		return all, k.measured.Remove(ctx)
	}
	return all, k.measured.Set(ctx, all[len(all)-1].ID)
}

func (k measuring) tick(ctx context.Context, at registry.Measurement, params registry.Params,
	beacon canon.Digest) error {
	now := sdk.UnwrapSDKContext(ctx)
	after, silent, end, err := at.Tick(params, k.checkers(ctx, at.ID), beacon, now.BlockHeight(),
		now.BlockTime().UnixMilli())
	if err != nil {
		return err
	}
	for _, id := range silent {
		if err := k.Missed(ctx, id); err != nil {
			return err
		}
	}
	switch {
	case end != nil:
		return k.end(ctx, at.ID, *end)
	case reflect.DeepEqual(at, after):
		return nil
	}
	return k.measurements.Set(ctx, at.ID, after)
}

// checkers draws verifiers by stake to check the measurement of a participant. Their pools and owners differ from each
// other and from those of the participant.
func (k measuring) checkers(ctx context.Context, id string) registry.Draw {
	return func(seed canon.Digest, n int, beside []string) (ids []string, err error) {
		self, err := k.Get(ctx, id)
		if err != nil {
			return nil, err
		}
		lead, err := Paying(k).Lead(ctx, self)
		if err != nil {
			return nil, err
		}
		pools, owners := []string{lead.Pool}, []string{self.OwnerID()}
		err = k.Verifiers(ctx, seed, func(p registry.Participant) (bool, error) {
			lead, err := Paying(k).Lead(ctx, p)
			if err != nil || slices.Contains(beside, p.ID) || slices.Contains(owners, p.OwnerID()) ||
				lead.Pool != "" && slices.Contains(pools, lead.Pool) {
				return false, err
			}
			ids, pools, owners = append(ids, p.ID), append(pools, lead.Pool), append(owners, p.OwnerID())
			return len(ids) == n, nil
		})
		return ids, err
	}
}

// rest is how long a participant waits before its next measurement.
type rest struct {
	Until  int64  `cbor:"1,keyasint"`
	Failed uint32 `cbor:"2,keyasint"` // consecutive measurements that found no rate
}

// rests records the end of a measurement. The next one may start an epoch later; each consecutive measurement without a
// rate doubles that time, up to 128 epochs. A participant that computes only a part of the program and tries its luck
// therefore gains nothing.
func (k measuring) rests(ctx context.Context, id string, out registry.Outcome) error {
	params, err := k.Params(ctx)
	if err != nil {
		return err
	}
	r, err := k.resting.Get(ctx, id)
	if err != nil && !errors.Is(err, collections.ErrNotFound) {
		return err
	}
	switch {
	case out.Rate > 0:
		r.Failed = 0
	case out.Why != registry.WhyNoChecker: // the participant is not responsible for a missing checker
		r.Failed++
	}
	if out.Why == registry.WhyNoChecker {
		return nil
	}
	r.Until = sdk.UnwrapSDKContext(ctx).BlockHeight() + params.EpochBlocks<<min(r.Failed, 7)
	return k.resting.Set(ctx, id, r)
}
