package adversary

import (
	"context"
	"errors"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/engine"
	"github.com/starling-network/starling/role/party"
	"github.com/starling-network/starling/role/reporter"
)

// Copies is a worker that sends the commitment of another worker of the round as its own.
type Copies struct{}

// Install implements Attack.
func (Copies) Install(c Setup) Step {
	c.Party.Compute = copier{faultyCompute{Honest: c.Honest, shift: 1}, c}
	return c.Step
}

type copier struct {
	faultyCompute // its defence
	cast          Setup
}

// Train implements party.Compute. The copied update itself is not readable yet.
func (p copier) Train(ctx context.Context, _ terms.Checkpoint, _ uint32) (*engine.Work, error) {
	s, err := p.cast.State(ctx)
	if err != nil {
		return nil, err
	}
	for _, u := range s.Units {
		if u.Worker != p.cast.Party.ID && u.Status != work.Assigned {
			return &engine.Work{Commit: u.Commit}, nil
		}
	}
	return nil, errors.New("adversary: no worker has committed yet")
}

// Equivocates is a worker that commits twice to every unit.
type Equivocates struct{ TrueFirst bool }

// Install implements Attack.
func (a Equivocates) Install(c Setup) Step {
	honest := c.Party.Chain
	c.Party.Chain = tamperedChain{honest, func(ctx context.Context, m role.Action) error {
		commit, ok := m.(role.Commit)
		if !ok {
			return honest.Send(ctx, m)
		}
		other := commit
		other.Commit.Update = canon.Sum("starling/invented/update", commit.Commit.Update[:])
		if a.TrueFirst {
			commit, other = other, commit
		}
		return errors.Join(honest.Send(ctx, other), honest.Send(ctx, commit))
	}}
	return c.Step
}

// GoesSilent is a worker that does nothing more once it has committed to a unit.
type GoesSilent struct{}

// Install implements Attack.
func (GoesSilent) Install(c Setup) Step {
	silent := false
	return func(e role.Event) []role.Action {
		if silent {
			return nil
		}
		if f, ok := e.(role.Finished); ok {
			_, silent = f.Action.(role.Commit)
		}
		return c.Step(e)
	}
}

// Malforms is a worker that skips its training and makes no move in a dispute that is one.
type Malforms struct{}

// Install implements Attack.
func (Malforms) Install(c Setup) Step {
	c.Party.Compute = Fabricator{c.Honest}
	return Moving(c, func(m dispute.Move) dispute.Move {
		switch {
		case m.States != nil:
			m.States.Digests = m.States.Digests[1:]
		case m.Tree != nil && len(m.Tree.Children) > 0:
			m.Tree.Children[0][0] ^= 1
		case m.Nodes != nil:
			m.Nodes.Children[0][0] ^= 1
		}
		return m
	})
}

// Oversizes is a worker that skips its training and makes moves that are too large.
type Oversizes struct{}

// Install implements Attack.
func (Oversizes) Install(c Setup) Step {
	c.Party.Compute = Fabricator{c.Honest}
	return Moving(c, func(dispute.Move) dispute.Move {
		return dispute.Move{States: &dispute.States{Digests: make([]canon.Digest, 1<<12)}}
	})
}

// Moving is the role of a party whose moves are changed before they are sent.
func Moving(c Setup, change func(dispute.Move) dispute.Move) Step {
	honest := c.Party.Chain
	c.Party.Chain = tamperedChain{honest, func(ctx context.Context, m role.Action) error {
		if move, ok := m.(party.Move); ok {
			move.Made = change(move.Made)
			m = move
		}
		return honest.Send(ctx, m)
	}}
	return c.Step
}

// Misattests is a member that attests to another checkpoint than the updates lead to.
type Misattests struct{}

// Install implements Attack.
func (Misattests) Install(c Setup) Step {
	honest := c.Party.Chain
	c.Party.Chain = tamperedChain{honest, func(ctx context.Context, m role.Action) error {
		if a, ok := m.(role.Attest); ok {
			a.Next.Root[0] ^= 1
			m = a
		}
		return honest.Send(ctx, m)
	}}
	return c.Step
}

// Reports is an Attack of a party that reports other measurements of its peers than it made.
type Reports interface {
	Report(r reporter.Report) reporter.Report
}
