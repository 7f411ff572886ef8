package training

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/x/training/runpb"
	"github.com/starling-network/starling/chain/x/training/trainingpb"
	"github.com/starling-network/starling/chain/x/training/works"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/transition"
	"github.com/starling-network/starling/protocol/run/work"
)

// Errors of disputes, in addition to those of protocol/dispute.
var (
	ErrNoDispute = errors.New("training: no open dispute about this unit")
)

// disputeKey is job, round, unit, and the number of the dispute about the unit, from 0.
type disputeKey = collections.Quad[string, uint32, uint32, uint32]

// Challenge implements trainingpb.MsgServer.
func (k messages) Challenge(ctx context.Context, m *trainingpb.MsgChallenge) (*trainingpb.MsgChallengeResponse, error) {
	commitment, err := runpb.Digest(m.Commitment)
	if err != nil {
		return nil, ErrorTable.Wrap(fmt.Errorf("commitment: %w", err))
	}
	if err := k.bond(ctx, m.Job, m.Sender); err != nil {
		return nil, err
	}
	var game dispute.Dispute
	err = k.step(ctx, m.Job, func(s run.State, env transition.Env) (run.State, []event.Event, error) {
		if err := s.Stands(unitID(m), commitment); err != nil {
			return s, nil, err
		}
		after, events, err := s.Challenge(env, m.Sender, unitID(m))
		if err != nil {
			return s, nil, err
		}
		game, err = k.game(ctx, after, env, m)
		return after, events, err
	})
	if err != nil {
		return nil, err
	}
	return &trainingpb.MsgChallengeResponse{}, disputing(k).open(ctx, game)
}

// bond takes the bond of a challenger, unless the challenger is an active member of the run, whose stake is locked. A
// member that earns its stake has none to lose yet.
func (k messages) bond(ctx context.Context, job, challenger string) error {
	s, err := k.State(ctx, job)
	if err != nil {
		return ErrorTable.Wrap(err)
	}
	if m, _ := s.Member(challenger); m.Active && !m.Earning {
		return nil
	}
	return k.registry.Bond(ctx, challenger)
}

// game returns the dispute that a challenge opens.
func (k messages) game(ctx context.Context, s run.State, env transition.Env,
	m *trainingpb.MsgChallenge) (dispute.Dispute,
	error) {
	d, _ := s.Find(unitID(m))
	admitted, err := k.Admitted(ctx, s.Terms.Spec)
	if err != nil {
		return dispute.Dispute{}, err
	}
	worker, challenger := s.MoveBlocks(d.Unit, m.Sender)
	config, err := admitted.Config(m.Job, d, m.Sender, worker)
	config.ChallengerBlocks = challenger
	if err != nil {
		return dispute.Dispute{}, err
	}
	return dispute.Open(config, m.Segment, env.Height)
}

// disputing advances the disputes of a keeper.
type disputing struct{ *Keeper }

// open stores a new dispute.
func (k disputing) open(ctx context.Context, g dispute.Dispute) error {
	c := g.Config
	earlier := uint32(0)
	within := collections.NewSuperPrefixedQuadRange3[string, uint32, uint32, uint32](c.Job, c.Round, c.Unit)
	err := k.disputes.Walk(ctx, within, func(disputeKey, dispute.Dispute) (bool, error) {
		earlier++
		return false, nil
	})
	if err != nil {
		return err
	}
	key := collections.Join4(c.Job, c.Round, c.Unit, earlier)
	return errors.Join(k.disputes.Set(ctx, key, g), k.pending.Set(ctx, key), emitDispute(ctx, g))
}

// Move implements trainingpb.MsgServer.
func (k messages) Move(ctx context.Context, m *trainingpb.MsgMove) (*trainingpb.MsgMoveResponse, error) {
	move, err := dispute.Decode(m.Body)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	key, g, err := k.current(ctx, m.Job, unitID(m))
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	s, err := k.State(ctx, m.Job)
	if err != nil {
		return nil, err
	}
	env, failed, err := k.env(ctx, m.Job)
	if err != nil {
		return nil, err
	}
	admitted := works.NewLazy(func() (dispute.Referee, error) { return k.Admitted(ctx, s.Terms.Spec) })
	after, err := g.Apply(env.Height, m.Sender, move, admitted)
	if err := errors.Join(admitted.Err, err); err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	if admitted.Refused != nil {
		sdk.UnwrapSDKContext(ctx).Logger().Info("a leaf answers nothing: its challenger loses", "job", m.Job, "unit", m.Unit,
			"round", m.Round, "challenger", m.Sender, "err", admitted.Refused)
	}
	return &trainingpb.MsgMoveResponse{}, errors.Join(disputing(k).moved(ctx, s, env, key, after), failed())
}

// current returns the dispute about an attempt at a unit whose moves are being made: the oldest open one.
func (k *Keeper) current(ctx context.Context, job string, id work.UnitID) (key disputeKey, g dispute.Dispute,
	err error) {
	it, err := k.pending.Iterate(ctx, collections.NewSuperPrefixedQuadRange3[string, uint32, uint32, uint32](job,
		id.Round, id.Unit))
	if err != nil {
		return key, g, err
	}
	keys, err := it.Keys()
	for _, key := range keys {
		if g, err := k.disputes.Get(ctx, key); err != nil || g.Config.Attempt == id.Attempt {
			return key, g, err
		}
	}
	return key, g, errors.Join(err, fmt.Errorf("%w: attempt %d at unit %d of round %d of %s", ErrNoDispute, id.Attempt,
		id.Unit, id.Round, job))
}

// Refute implements trainingpb.MsgServer.
func (k messages) Refute(ctx context.Context, m *trainingpb.MsgRefute) (*trainingpb.MsgRefuteResponse, error) {
	root, err := runpb.Digest(m.Root)
	if err != nil {
		return nil, ErrorTable.Wrap(fmt.Errorf("root: %w", err))
	}
	entry, err := k.lineage.Get(ctx, collections.Join(m.Job, m.Checkpoint))
	if errors.Is(err, collections.ErrNotFound) || err == nil && entry.Attestation.Checkpoint.Root != root {
		err = ErrorTable.Wrap(fmt.Errorf("%w: checkpoint %d of %s with root %s is not attested", refusal.ErrStale,
			m.Checkpoint, m.Job, root.Short()))
	}
	if err != nil {
		return nil, err
	}
	return &trainingpb.MsgRefuteResponse{},
		k.step(ctx, m.Job, func(s run.State, env transition.Env) (run.State, []event.Event, error) {
			wrong := entry.Attestation.Checkpoint
			after, events, err := s.Refute(env, m.Sender, entry)
			if err != nil {
				return s, nil, err
			}
			l, _ := s.RoundBefore(wrong)
			admitted, err := k.Admitted(ctx, s.Terms.Spec)
			if err != nil {
				return s, nil, err
			}
			if _, err := admitted.Refute(l.Combination(wrong), m.Shown); err != nil {
				return s, nil, fmt.Errorf("%w: %w", refusal.ErrBadVote, err)
			}
			return after, events, nil
		})
}

// moved stores a dispute after a move, and executes its verdict if it has one.
func (k disputing) moved(ctx context.Context, s run.State, env transition.Env, key disputeKey,
	g dispute.Dispute) error {
	if err := errors.Join(k.disputes.Set(ctx, key, g), emitDispute(ctx, g)); err != nil || g.Verdict == nil {
		return err
	}
	if err := k.pending.Remove(ctx, key); err != nil {
		return err
	}
	c := g.Config
	after, events, err := s.Verdict(env, disputed(c), g.Verdict.AsserterLies, g.Verdict.Reason == dispute.Silence,
		g.Loser())
	if err != nil {
		return err
	}
	return errors.Join(k.apply(ctx, s, after, events), k.next(ctx, c, env))
}

// next starts the dispute that waited for the end of another dispute about the same unit, if there is one. The
// deadlines of its parties start now.
func (k disputing) next(ctx context.Context, ended dispute.Config, env transition.Env) error {
	key, g, err := k.current(ctx, ended.Job, disputed(ended))
	if errors.Is(err, ErrNoDispute) {
		return nil
	}
	if err != nil {
		return err
	}
	if g, err = dispute.Open(g.Config, g.Segment, env.Height); err != nil {
		return err
	}
	return errors.Join(k.disputes.Set(ctx, key, g), emitDispute(ctx, g))
}

// expire ends the disputes of a job in which a party missed its deadline. A dispute that waits for another has no
// deadline.
func (k disputing) expire(ctx context.Context, job string, env transition.Env) error {
	keys, err := k.opened(ctx, job)
	if err != nil {
		return err
	}
	for _, key := range keys {
		g, err := k.disputes.Get(ctx, key)
		if err != nil {
			return err
		}
		after := g.Tick(env.Height)
		s, err := k.State(ctx, job)
		if err != nil {
			return err
		}
		c := g.Config
		if _, playing := s.Playing(disputed(c), c.Challenger); !playing || after.Verdict == nil ||
			s.Phase == progress.Halted {
			continue
		}
		if err := k.moved(ctx, s, env, key, after); err != nil {
			return err
		}
	}
	return nil
}

// opened lists the open disputes of a job.
func (k disputing) opened(ctx context.Context, job string) ([]disputeKey, error) {
	it, err := k.pending.Iterate(ctx, collections.NewPrefixedQuadRange[string, uint32, uint32, uint32](job))
	if err != nil {
		return nil, err
	}
	return it.Keys()
}

// closeMoot closes, without a verdict, the disputes that the run no longer waits for: the run is over, or the unit is
// void.
func (k disputing) closeMoot(ctx context.Context, s run.State) error {
	keys, err := k.opened(ctx, s.Terms.Job)
	if err != nil {
		return err
	}
	for _, key := range keys {
		g, err := k.disputes.Get(ctx, key)
		if err != nil {
			return err
		}
		c := g.Config
		if s.Phase != progress.Halted && s.Challenged(disputed(c), c.Challenger) {
			continue
		}
		g = g.Void(sdk.UnwrapSDKContext(ctx).BlockHeight(), s.Unmasked(disputed(c)))
		if err := errors.Join(k.disputes.Set(ctx, key, g), k.pending.Remove(ctx, key), emitDispute(ctx, g)); err != nil {
			return err
		}
	}
	return nil
}

// emitDispute emits the text of the last log record of a dispute.
func emitDispute(ctx context.Context, g dispute.Dispute) error {
	c, last := g.Config, g.Log[len(g.Log)-1]
	return emit(ctx, &trainingpb.EventDispute{Job: c.Job, Round: c.Round, Unit: c.Unit, Line: g.Text(last, nil)})
}

// maxGames is the most disputes in one answer.
const maxGames = 100

// Disputes lists disputes of a job, starting at a given one.
func (q Queries) Disputes(ctx context.Context,
	m *trainingpb.QueryDisputesRequest) (*trainingpb.QueryDisputesResponse, error) {
	most := int(m.Limit)
	if most == 0 || most > maxGames {
		most = maxGames
	}
	r := &trainingpb.QueryDisputesResponse{}
	from := new(collections.Range[disputeKey]).StartInclusive(collections.Join4(m.Job, m.Round, m.Unit, m.Number))
	err := q.disputes.Walk(ctx, from, func(key disputeKey, g dispute.Dispute) (bool, error) {
		switch {
		case key.K1() != m.Job:
			return true, nil
		case len(r.Games) == most:
			r.More, r.Round, r.Unit, r.Number = true, key.K2(), key.K3(), key.K4()
			return true, nil
		}
		r.Games = append(r.Games, canon.MustMarshal(g))
		return false, nil
	})
	return r, err
}
