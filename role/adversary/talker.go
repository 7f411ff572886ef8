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

// Copies is a worker that commits to what another worker of the round has committed to.
type Copies struct{}

// Install implements Act.
func (Copies) Install(c Setup) Step {
	c.Party.Compute = copier{deviant{Honest: c.Honest, shift: 1}, c}
	return c.Step
}

type copier struct {
	deviant // how it defends itself
	cast    Setup
}

// Train implements party.Compute. The update itself nobody has yet.
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
	return nil, errors.New("adversary: nobody has committed yet")
}

// Equivocates is a worker that commits twice to every unit.
type Equivocates struct{ TrueFirst bool }

// Install implements Act.
func (a Equivocates) Install(c Setup) Step {
	honest := c.Party.Chain
	c.Party.Chain = says{honest, func(ctx context.Context, m role.Action) error {
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

// Install implements Act.
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

// Install implements Act.
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

// Install implements Act.
func (Oversizes) Install(c Setup) Step {
	c.Party.Compute = Fabricator{c.Honest}
	return Moving(c, func(dispute.Move) dispute.Move {
		return dispute.Move{States: &dispute.States{Digests: make([]canon.Digest, 1<<12)}}
	})
}

// Moving is the role of a party whose moves are changed before they are sent.
func Moving(c Setup, change func(dispute.Move) dispute.Move) Step {
	honest := c.Party.Chain
	c.Party.Chain = says{honest, func(ctx context.Context, m role.Action) error {
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

// Install implements Act.
func (Misattests) Install(c Setup) Step {
	honest := c.Party.Chain
	c.Party.Chain = says{honest, func(ctx context.Context, m role.Action) error {
		if a, ok := m.(role.Attest); ok {
			a.Next.Root[0] ^= 1
			m = a
		}
		return honest.Send(ctx, m)
	}}
	return c.Step
}

// Reports is an Act of who says something else about its peers than it measured.
type Reports interface {
	Report(r reporter.Report) reporter.Report
}
