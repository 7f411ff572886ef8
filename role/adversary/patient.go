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
	Every uint32 // in one of so many rounds; 0: in all
	Then  Act
}

// Lies reports whether it is the other in the units of a round.
func (a Patient) Lies(round uint32) bool {
	return round >= a.Round && (a.Every == 0 || round%a.Every == 0)
}

// Play implements Act.
func (a Patient) Play(c Cast) Step {
	step := a.Then.Play(c)
	c.Party.Compute = patient{c.Honest, c.Party.Compute, a}
	return step
}

type patient struct {
	Honest
	then party.Compute
	act  Patient
}

func (p patient) at(base run.Checkpoint) party.Compute {
	if p.act.Lies(base.Round) {
		return p.then
	}
	return p.Honest
}

// Train implements party.Compute.
func (p patient) Train(ctx context.Context, base run.Checkpoint, unit uint32) (*engine.Work, error) {
	return p.at(base).Train(ctx, base, unit)
}

// Oracle implements party.Compute.
func (p patient) Oracle(base run.Checkpoint, g dispute.Game) (dispute.Oracle, error) {
	return p.at(base).Oracle(base, g)
}

// Together is who breaks several rules: each act changes what those before it have left.
type Together []Act

// Play implements Act.
func (a Together) Play(c Cast) Step {
	for _, act := range a {
		c.Step = act.Play(c)
	}
	return c.Step
}
