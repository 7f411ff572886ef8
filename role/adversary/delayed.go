package adversary

import (
	"context"

	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/role/engine"
	"github.com/starling-network/starling/role/party"
)

// DelayedAttack is a worker that is honest up to a round, so that it is hardly audited any more, and another from there
// on.
type DelayedAttack struct {
	Round uint32
	Every uint32 // in one of this number of rounds; 0: in all
	Then  Attack
}

// Lies reports whether it is the other in the units of a round.
func (a DelayedAttack) Lies(round uint32) bool {
	return round >= a.Round && (a.Every == 0 || round%a.Every == 0)
}

// Install implements Attack.
func (a DelayedAttack) Install(c Setup) Step {
	step := a.Then.Install(c)
	c.Party.Compute = delayed{c.Honest, c.Party.Compute, a}
	return step
}

type delayed struct {
	Honest
	then party.Compute
	act  DelayedAttack
}

func (p delayed) at(base terms.Checkpoint) party.Compute {
	if p.act.Lies(base.Round) {
		return p.then
	}
	return p.Honest
}

// Train implements party.Compute.
func (p delayed) Train(ctx context.Context, base terms.Checkpoint, unit uint32) (*engine.Work, error) {
	return p.at(base).Train(ctx, base, unit)
}

// Oracle implements party.Compute.
func (p delayed) Oracle(base terms.Checkpoint, g dispute.Dispute) (dispute.Oracle, error) {
	return p.at(base).Oracle(base, g)
}

// Together breaks several rules: each attack changes the party as the attacks before it have left it.
type Together []Attack

// Install implements Attack.
func (a Together) Install(c Setup) Step {
	for _, act := range a {
		c.Step = act.Install(c)
	}
	return c.Step
}
