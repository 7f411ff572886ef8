package adversary

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/engine"
	"github.com/starling-network/starling/role/party"
)

// Circle lets accomplices share their fabricated commitments outside the network.
type Circle interface {
	Tell(lie canon.Digest) error
	Told(lie canon.Digest) (bool, error)
}

// lie names a commitment among accomplices.
func lie(c work.Commitment) canon.Digest {
	return canon.Hash("starling/adversary/lie/1", []any{c.Segments, c.Update})
}

// Memory is a circle of one process.
type Memory struct {
	mu   sync.Mutex
	told map[canon.Digest]bool
}

// Tell implements Circle.
func (m *Memory) Tell(lie canon.Digest) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.told == nil {
		m.told = map[canon.Digest]bool{}
	}
	m.told[lie] = true
	return nil
}

// Told implements Circle.
func (m *Memory) Told(lie canon.Digest) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.told[lie], nil
}

// Tells is another attack by a worker that shares its commitments with its circle.
type Tells struct{ Then Attack }

// Install implements Attack.
func (a Tells) Install(c Setup) Step {
	step := a.Then.Install(c)
	if c.Circle == nil {
		return step
	}
	c.Party.Compute = teller{c.Party.Compute, c.Circle}
	honest := c.Party.Chain
	c.Party.Chain = tamperedChain{honest, func(ctx context.Context, m role.Action) error {
		if commit, ok := m.(role.Commit); ok { // it may have a planted fault
			if err := c.Circle.Tell(lie(commit.Commit)); err != nil {
				return err
			}
		}
		return honest.Send(ctx, m)
	}}
	return step
}

type teller struct {
	party.Compute
	circle Circle
}

// Train implements party.Compute.
func (t teller) Train(ctx context.Context, base terms.Checkpoint, unit uint32) (*engine.Work, error) {
	w, err := t.Compute.Train(ctx, base, unit)
	if err != nil {
		return nil, err
	}
	return w, t.circle.Tell(lie(w.Commit))
}

// Faking is the attack of the workers of a circle that a verifier shields.
var Faking = TrainsLess{Steps: 1}

// Shields is a verifier that passes faked units of workers of its circle, with the seal of the committed state, and
// keeps the rules for all others.
type Shields struct{}

// Install implements Attack.
func (Shields) Install(c Setup) Step {
	if c.Circle != nil {
		faked := Faking.faulty(c.Honest)
		c.Party.Compute = &shield{Honest: c.Honest, faked: faked, circle: c.Circle, sealed: map[place]bool{}}
	}
	return c.Step
}

// place is an attempt at a unit.
type place struct{ round, unit, attempt uint32 }

type shield struct {
	Honest
	faked  faultyCompute
	circle Circle

	mu     sync.Mutex
	sealed map[place]bool // of its circle
}

// Check implements party.Compute.
func (s *shield) Check(ctx context.Context, base terms.Checkpoint,
	at audit.Subject, c work.Commitment,
) (engine.Comparison, error) {
	friend, err := s.circle.Told(lie(c))
	if err != nil {
		return engine.Comparison{}, err
	}
	if !friend {
		return s.Honest.Check(ctx, base, at, c)
	}
	mine, err := s.faked.Train(ctx, base, at.Unit)
	if err != nil {
		return engine.Comparison{}, err
	}
	s.mu.Lock()
	s.sealed[place{at.Round, at.Unit, at.Attempt}] = true
	s.mu.Unlock()
	return s.Compare(mine, at, c), nil // a fault that its friend planted it finds
}

// Unseal implements party.Compute.
func (s *shield) Unseal(ctx context.Context, base terms.Checkpoint,
	at audit.Subject, question canon.Digest,
) (audit.Opening, error) {
	s.mu.Lock()
	friend := s.sealed[place{at.Round, at.Unit, at.Attempt}]
	s.mu.Unlock()
	if !friend {
		return s.Honest.Unseal(ctx, base, at, question)
	}
	mine, err := s.faked.Train(ctx, base, at.Unit)
	if err != nil {
		return audit.Opening{}, err
	}
	return s.Answer(mine, at, question)
}

// Springs is a verifier that convicts the workers of its circle, but only After rounds after their lies, so that the
// rounds built on them are lost: the other half of a pump of rollbacks.
type Springs struct{ After uint32 }

// Install implements Attack.
func (a Springs) Install(c Setup) Step {
	if c.Circle == nil {
		return c.Step
	}
	honest := c.Party.Chain
	c.Party.Chain = tamperedChain{honest, func(ctx context.Context, m role.Action) error {
		if challenge, ok := m.(role.Challenge); ok {
			if early, err := a.early(ctx, c, challenge.Work); err != nil || early {
				return errors.Join(err, fmt.Errorf("adversary: too early to challenge round %d", challenge.Work.Round))
			}
		}
		return honest.Send(ctx, m)
	}}
	return c.Step
}

// early reports whether a unit is a lie of the circle on which more may be built.
func (a Springs) early(ctx context.Context, c Setup, w work.UnitID) (bool, error) {
	s, err := c.State(ctx)
	if err != nil || s.Round >= min(w.Round+a.After, s.Terms.Rounds-1) {
		return false, err
	}
	for _, l := range s.All() {
		for _, u := range l.Units {
			if l.Round == w.Round && u.Index == w.Unit && u.Attempt == w.Attempt {
				return c.Circle.Told(lie(u.Commit))
			}
		}
	}
	return false, nil
}
