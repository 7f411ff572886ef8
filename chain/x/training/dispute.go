package training

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/x/training/trainingpb"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/run"
)

// Errors of disputes, beside those of protocol/dispute.
var (
	ErrOpening   = errors.New("training: the opening does not show the work of the job")
	ErrNoDispute = errors.New("training: no open dispute about this unit")
)

// Case is the work of one job as a referee knows it.
type Case interface {
	dispute.Referee
	// Config is the dispute of a challenger about a unit, in which a party has some blocks for a move.
	Config(job string, d run.Duty, challenger string, blocks int64) (dispute.Config, error)
}

// Referee reads the opening of a dispute, which anybody may have written: the work with the given digest, or an error.
type Referee func(spec canon.Digest, opening []byte) (Case, error)

// disputeKey is job, round, unit, and which dispute about the unit it is, from 0.
type disputeKey = collections.Quad[string, uint32, uint32, uint32]

// Challenge implements trainingpb.MsgServer.
func (k *Keeper) Challenge(ctx context.Context, m *trainingpb.MsgChallenge) (*trainingpb.MsgChallengeResponse, error) {
	var game dispute.Game
	err := k.step(ctx, m.Job, func(s run.State, env run.Env) (run.State, []run.Event, error) {
		after, events, err := s.Challenge(env, m.Sender, m.Round, m.Unit, m.Attempt)
		if err != nil {
			return s, nil, err
		}
		game, err = k.game(after, env, m)
		return after, events, err
	})
	if err != nil {
		return nil, err
	}
	return &trainingpb.MsgChallengeResponse{}, k.open(ctx, game, m.Opening)
}

// movePatience is how many times the deadline of an audit a party has for a move: it executes the unit again, traces a
// step, and may first have to finish what it is computing. Silence convicts, so the honest must never run out of time.
const movePatience = 4

// game is the dispute that a challenge opens.
func (k *Keeper) game(s run.State, env run.Env, m *trainingpb.MsgChallenge) (dispute.Game, error) {
	d, _ := s.Find(m.Round, m.Unit, m.Attempt)
	work, err := k.referee(s.Terms.Spec, m.Opening)
	if err != nil {
		return dispute.Game{}, fmt.Errorf("%w: %w", ErrOpening, err)
	}
	config, err := work.Config(m.Job, d, m.Sender, movePatience*s.AuditDeadline())
	if err != nil {
		return dispute.Game{}, err
	}
	return dispute.Open(config, m.Segment, env.Height)
}

// open stores a new dispute. The opening is kept until the verdict, for the referee.
func (k *Keeper) open(ctx context.Context, g dispute.Game, opening []byte) error {
	c := g.Config
	earlier := uint32(0)
	within := collections.NewSuperPrefixedQuadRange3[string, uint32, uint32, uint32](c.Job, c.Round, c.Unit)
	err := k.disputes.Walk(ctx, within, func(disputeKey, dispute.Game) (bool, error) {
		earlier++
		return false, nil
	})
	if err != nil {
		return err
	}
	key := collections.Join4(c.Job, c.Round, c.Unit, earlier)
	return errors.Join(k.disputes.Set(ctx, key, g), k.openings.Set(ctx, key, opening), told(ctx, g))
}

// Move implements trainingpb.MsgServer.
func (k *Keeper) Move(ctx context.Context, m *trainingpb.MsgMove) (*trainingpb.MsgMoveResponse, error) {
	move, err := dispute.Decode(m.Body)
	if err != nil {
		return nil, Refusals.Wrap(err)
	}
	key, g, err := k.current(ctx, m.Job, m.Round, m.Unit, m.Attempt)
	if err != nil {
		return nil, Refusals.Wrap(err)
	}
	s, err := k.State(ctx, m.Job)
	if err != nil {
		return nil, err
	}
	var work dispute.Referee
	if g.Asks(move) {
		opening, err := k.openings.Get(ctx, key)
		if err != nil {
			return nil, err
		}
		if work, err = k.referee(s.Terms.Spec, opening); err != nil {
			return nil, fmt.Errorf("training: an opening that was taken: %w", err)
		}
	}
	env, err := k.env(ctx)
	if err != nil {
		return nil, err
	}
	after, err := g.Apply(env.Height, m.Sender, move, work)
	if err != nil {
		return nil, Refusals.Wrap(err)
	}
	return &trainingpb.MsgMoveResponse{}, k.moved(ctx, s, env, key, after)
}

// current finds the dispute about an attempt at a unit that is being played. It is the oldest open one.
func (k *Keeper) current(ctx context.Context, job string, round, unit, attempt uint32) (key disputeKey, g dispute.Game, err error) {
	it, err := k.openings.Iterate(ctx, collections.NewSuperPrefixedQuadRange3[string, uint32, uint32, uint32](job, round, unit))
	if err != nil {
		return key, g, err
	}
	keys, err := it.Keys()
	for _, key := range keys {
		if g, err := k.disputes.Get(ctx, key); err != nil || g.Config.Attempt == attempt {
			return key, g, err
		}
	}
	return key, g, errors.Join(err, fmt.Errorf("%w: attempt %d at unit %d of round %d of %s", ErrNoDispute, attempt, unit, round, job))
}

// moved stores a game after a move, and carries out its verdict if it has one.
func (k *Keeper) moved(ctx context.Context, s run.State, env run.Env, key disputeKey, g dispute.Game) error {
	if err := errors.Join(k.disputes.Set(ctx, key, g), told(ctx, g)); err != nil || g.Verdict == nil {
		return err
	}
	if err := k.openings.Remove(ctx, key); err != nil {
		return err
	}
	c := g.Config
	after, events, err := s.Verdict(env, c.Round, c.Unit, c.Attempt, g.Verdict.AsserterLies, g.Verdict.Reason == dispute.Silence, g.Loser())
	if err != nil {
		return err
	}
	return errors.Join(k.apply(ctx, s, after, events), k.next(ctx, c, env))
}

// next begins the dispute that waited for the end of another about the same unit, if there is one: its parties have the
// whole time for their moves from now.
func (k *Keeper) next(ctx context.Context, ended dispute.Config, env run.Env) error {
	key, g, err := k.current(ctx, ended.Job, ended.Round, ended.Unit, ended.Attempt)
	if errors.Is(err, ErrNoDispute) {
		return nil
	}
	if err != nil {
		return err
	}
	if g, err = dispute.Open(g.Config, g.Segment, env.Height); err != nil {
		return err
	}
	return errors.Join(k.disputes.Set(ctx, key, g), told(ctx, g))
}

// silence ends the disputes of a job in which somebody let its deadline pass. One that waits for another has none.
func (k *Keeper) silence(ctx context.Context, job string, env run.Env) error {
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
		if _, playing := s.Playing(c.Round, c.Unit, c.Attempt, c.Challenger); !playing || after.Verdict == nil || s.Phase == run.Halted {
			continue
		}
		if err := k.moved(ctx, s, env, key, after); err != nil {
			return err
		}
	}
	return nil
}

// opened lists the open disputes of a job.
func (k *Keeper) opened(ctx context.Context, job string) ([]disputeKey, error) {
	it, err := k.openings.Iterate(ctx, collections.NewPrefixedQuadRange[string, uint32, uint32, uint32](job))
	if err != nil {
		return nil, err
	}
	return it.Keys()
}

// docket closes the disputes without a verdict that the run no longer waits for: it is over, or their unit is gone.
func (k *Keeper) docket(ctx context.Context, s run.State) error {
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
		if s.Phase != run.Halted && s.Challenged(c.Round, c.Unit, c.Attempt, c.Challenger) {
			continue
		}
		g = g.Void(sdk.UnwrapSDKContext(ctx).BlockHeight(), s.Unmasked(c.Round, c.Unit, c.Attempt))
		if err := errors.Join(k.disputes.Set(ctx, key, g), k.openings.Remove(ctx, key), told(ctx, g)); err != nil {
			return err
		}
	}
	return nil
}

// told emits the last line of the log of a game.
func told(ctx context.Context, g dispute.Game) error {
	c := g.Config
	return emit(ctx, &trainingpb.EventDispute{Job: c.Job, Round: c.Round, Unit: c.Unit, Line: g.Log[len(g.Log)-1].Line})
}

// Disputes lists the disputes of a job.
func (q Queries) Disputes(ctx context.Context, m *trainingpb.QueryDisputesRequest) (*trainingpb.QueryDisputesResponse, error) {
	r := &trainingpb.QueryDisputesResponse{}
	within := collections.NewPrefixedQuadRange[string, uint32, uint32, uint32](m.Job)
	err := q.disputes.Walk(ctx, within, func(_ disputeKey, g dispute.Game) (bool, error) {
		r.Games = append(r.Games, canon.MustMarshal(g))
		return false, nil
	})
	return r, err
}
