package training

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strconv"

	"cosmossdk.io/collections"
	abci "github.com/cometbft/cometbft/abci/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/gogoproto/proto"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/training/trainingpb"
	"github.com/starling-network/starling/chain/x/training/turn"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
)

// apply stores the state that a rule returned, executes the payments that its events require, and emits the events.
func (k *Keeper) apply(ctx context.Context, before, s run.State, events []event.Event) error {
	ctx = turn.Charged(ctx, events)
	paid, err := k.ledger.Settle(ctx, s, events, k.Params)
	if err != nil {
		return err
	}
	missed := map[string]bool{} // all units that an account misses in one block count as one deadline
	for _, e := range events {
		if err := errors.Join(k.trace(ctx, e), k.remember(ctx, s, e, missed, paid.Own())); err != nil {
			return err
		}
		if m, _ := s.Member(e.Who); e.Kind == event.MemberLeft && (e.Why == reason.Left || e.Why == reason.Unopened) {
			if err := k.market.Free(ctx, s.Terms.Job, m); err != nil {
				return err
			}
		}
		sdk.UnwrapSDKContext(ctx).EventManager().EmitEvent(published(&trainingpb.EventRun{
			Job: e.Job, Kind: string(e.Kind), Round: e.Round, Unit: e.Unit, Who: e.Who, Other: e.Other, Why: e.Why,
			Segment: e.Segment,
		}))
	}
	if err := k.reseat(ctx, before, s); err != nil {
		return err
	}
	if s.Phase == progress.Done || s.Phase == progress.Halted {
		job := s.Terms.Job
		if err := errors.Join(k.active.Remove(ctx, job), k.ticks.Remove(ctx, job), unseat(ctx, k, job, s.Members),
			k.market.End(ctx, s), k.rewards.Ended(ctx, job), k.Forget(ctx, s.Terms.Spec)); err != nil {
			return err
		}
	}
	if err := k.runs.Set(ctx, s.Terms.Job, s); err != nil || !before.Disputed() {
		return err
	}
	return disputing{k}.closeMoot(ctx, s)
}

// trace updates the lineage: it adds an attested checkpoint, and removes the checkpoints after the base of a round that
// is rolled back.
func (k *Keeper) trace(ctx context.Context, e event.Event) error {
	switch e.Kind {
	case event.RoundAttested:
		return k.lineage.Set(ctx, collections.Join(e.Job, e.Entry.Attestation.Checkpoint.Round), *e.Entry)
	case event.RolledBack:
		return k.lineage.Clear(ctx, collections.NewPrefixedPairRange[string, uint32](e.Job).StartExclusive(e.Round))
	}
	return nil
}

// remember records results of a run in the registry: audits in the history of a worker, which its next run starts with,
// and missed duties against uptime, each deadline once. It counts no missed deadline before a worker has committed a
// unit, since nothing shows until then that the job can be opened. own: the run pays in the network's own coin.
func (k *Keeper) remember(ctx context.Context, s run.State, e event.Event, missed map[string]bool, own bool) error {
	switch {
	case e.Kind == event.AuditPassed:
		m, _ := s.Member(e.Who)
		return errors.Join(k.registry.Audited(ctx, e.Other, true), k.registry.Answered(ctx, e.Who, m.Price, own))
	case e.Kind == event.UnitReassigned && (e.Why == reason.Odd || e.Why == reason.Outside || e.Why == reason.Distrusted):
		return k.registry.Audited(ctx, e.Who, false)
	case e.Kind == event.AuditBroken && e.Why == reason.Differs: // it is drawn less often for a while, in all runs
		return k.registry.Absent(ctx, e.Who)
	case (e.Kind == event.UnitReassigned || e.Kind == event.AuditMissed) && e.Why == reason.MissedDeadline && s.Opened() &&
		!missed[e.Who]:
		missed[e.Who] = true
		err := k.registry.Missed(ctx, e.Who)
		if e.Kind == event.AuditMissed {
			err = errors.Join(err, k.registry.Absent(ctx, e.Who))
		}
		return err
	}
	return nil
}

// Part reports whether an account has a part in a run that is not over: it works in the run, or may have to answer for
// its work there.
func (k *Keeper) Part(ctx context.Context, id string) (bool, error) {
	jobs, err := membership(ctx, k, id)
	if err != nil {
		return false, err
	}
	for _, job := range jobs {
		if s, err := k.State(ctx, job); err != nil || !s.Removed(id) || s.Liable(id) {
			return err == nil, err
		}
	}
	return false, nil
}

// maxTicked is how many runs a block ticks. If there are more, they take turns, and their deadlines are later by the
// blocks in between.
const maxTicked = 256

// EndBlock ticks the active runs whose turn it is, each isolated: an error in one run stops no other.
func (k *Keeper) EndBlock(ctx context.Context) error {
	jobs, err := k.Turn(ctx, k.ticked, maxTicked)
	if err != nil {
		return err
	}
	for _, job := range jobs {
		err := adapter.Isolate(ctx, func(ctx context.Context) error { return k.tick(ctx, job, len(jobs) == maxTicked) })
		if err != nil {
			sdk.UnwrapSDKContext(ctx).Logger().Error("training: the run stays as it was", "job", job, "error", err)
			if err := emit(ctx, &trainingpb.EventFault{Job: job, Error: err.Error()}); err != nil {
				return err
			}
		}
	}
	return nil
}

// since returns the height of the last tick of a run if runs take turns, and stores the current height; 0: the block
// before.
func (k *Keeper) since(ctx context.Context, job string, turns bool) (last int64, err error) {
	last, err = k.ticks.Get(ctx, job)
	known := err == nil
	if err != nil && !errors.Is(err, collections.ErrNotFound) {
		return 0, err
	}
	switch {
	case turns:
		return last, k.ticks.Set(ctx, job, sdk.UnwrapSDKContext(ctx).BlockHeight())
	case known:
		return last, k.ticks.Remove(ctx, job)
	}
	return 0, nil
}

// tick advances one run at the end of a block. turns means that the runs take turns.
func (k *Keeper) tick(ctx context.Context, job string, turns bool) error {
	env, failed, err := k.env(ctx, job)
	if err != nil {
		return err
	}
	if env.Last, err = k.since(ctx, job, turns); err != nil {
		return err
	}
	if err := (disputing{k}).expire(ctx, job, env); err != nil {
		return err
	}
	before, err := k.State(ctx, job)
	if err != nil {
		return err
	}
	if env, err = k.market.Hold(ctx, before, env); err != nil {
		return err
	}
	after, events := before.Tick(env)
	if err := failed(); err != nil {
		return err
	}
	if len(events) == 0 && reflect.DeepEqual(before, after) {
		return nil
	}
	return k.apply(ctx, before, after, events)
}

// published returns the same event as sdk.TypedEventToEvent, which encodes JSON twice: every message makes one.
func published(e *trainingpb.EventRun) sdk.Event {
	text := func(key, value string) abci.EventAttribute {
		quoted, _ := json.Marshal(value) // encoding a string never fails
		return abci.EventAttribute{Key: key, Value: string(quoted)}
	}
	number := func(key string, value uint32) abci.EventAttribute {
		return abci.EventAttribute{Key: key, Value: strconv.FormatUint(uint64(value), 10)}
	}
	return sdk.Event{Type: proto.MessageName(e), Attributes: []abci.EventAttribute{
		text("job", e.Job), text("kind", e.Kind), text("other", e.Other), number("round", e.Round),
		number("segment", e.Segment), number("unit", e.Unit), text("who", e.Who), text("why", e.Why),
	}}
}

func emit(ctx context.Context, event proto.Message) error {
	return sdk.UnwrapSDKContext(ctx).EventManager().EmitTypedEvent(event)
}

// membership lists the runs that an account is a member of, which are few.
func membership(ctx context.Context, k *Keeper, id string) (jobs []string, err error) {
	err = k.parts.Walk(ctx, collections.NewPrefixedPairRange[string, string](id),
		func(key collections.Pair[string, string]) (bool, error) {
			jobs = append(jobs, key.K2())
			return false, nil
		})
	return jobs, err
}
