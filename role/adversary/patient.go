package adversary

import (
	"context"

	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/role/engine"
	"github.com/starling-network/starling/role/party"
)

// Patient is a worker that is honest up to a round, so that it is hardly audited any more, and another from there on.
type Patient struct {
	Round uint32
	Then  Act
}

// Play implements Act.
func (a Patient) Play(c Cast) Step {
	step := a.Then.Play(c)
	c.Party.Compute = patient{c.Honest, c.Party.Compute, a.Round}
	return step
}

type patient struct {
	Honest
	then  party.Compute
	round uint32
}

func (p patient) at(base run.Checkpoint) party.Compute {
	if base.Round < p.round {
		return p.Honest
	}
	return p.then
}

// Train implements party.Compute.
func (p patient) Train(ctx context.Context, base run.Checkpoint, unit uint32) (*engine.Work, error) {
	return p.at(base).Train(ctx, base, unit)
}

// Oracle implements party.Compute.
func (p patient) Oracle(base run.Checkpoint, g dispute.Game) (dispute.Oracle, error) {
	return p.at(base).Oracle(base, g)
}
